// Taking apart hosts and URLs (authority.h).
#include "server/text/authority.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <stdexcept>
#include <string>

namespace carillon::server {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kHostBytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
// RFC 1035, section 2.3.4: of the 255 bytes of a name in a message the first and the last are not
// written.
constexpr std::size_t kMostName = 253;
constexpr std::size_t kMostLabel = 63;

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(why);
}

bool is_made_of(std::string_view text, std::string_view bytes) {
  return text.find_first_not_of(bytes) == std::string_view::npos;
}

// Returns true if a look-up or a browser may take the name for an IPv4 address: its last part is a
// number (https://url.spec.whatwg.org/#ends-in-a-number-checker).
bool ends_in_a_number(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (last.empty()) return false;
  const bool is_hex = last.starts_with("0x") || last.starts_with("0X");
  return is_hex ? is_made_of(last.substr(2), kHexDigits) : is_made_of(last, kDigits);
}

// Asio stops reading at a NUL.
bool is_v4(std::string_view text) {
  boost::system::error_code error;
  boost::asio::ip::make_address_v4(text, error);
  return !error && is_made_of(text, "0123456789.");
}

// Allows no zone.
bool is_v6(std::string_view text) {
  boost::system::error_code error;
  boost::asio::ip::make_address_v6(text, error);
  return !error && is_made_of(text, "0123456789abcdefABCDEF:.");
}

// A dot at the end of a name stands for the root.
void check_lengths(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.size() > kMostName)
    refuse(fmt::format("the host has {} bytes; a name has at most {}", name.size(), kMostName));
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    if (end == at)
      refuse("the host has nothing before or between dots: a name is written as jobs.example.org");
    if (end - at > kMostLabel)
      refuse(fmt::format("a part of the host has {} bytes; between dots are at most {}", end - at,
                         kMostLabel));
    at = end + 1;
  }
}

void check_name(std::string_view name) {
  if (name.empty()) refuse("there is no host");
  if (!is_made_of(name, kHostBytes))
    refuse("the host has a byte that no name has: a name is letters, digits, and any of - . _");
  if (ends_in_a_number(name))
    refuse("the host ends in a number as an IPv4 address does: write it as 127.0.0.1");
  check_lengths(name);
}

Authority split_bracketed(std::string_view text) {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) refuse("the ] is missing: write an IPv6 address as [::1]");
  const std::string_view host = text.substr(1, close - 1);
  const std::string_view rest = text.substr(close + 1);
  const std::size_t zone = std::min(host.find('%'), host.size());
  if (!is_v6(host.substr(0, zone))) refuse("in the brackets is no IPv6 address");
  if (zone < host.size())
    refuse("an IPv6 address with a zone, %eth0, means something on one machine only: use another");
  if (rest.empty()) return {.host = host, .is_address = true};
  if (rest.front() != ':') refuse("behind the ] is no port");
  return {.host = host, .port = rest.substr(1), .is_address = true};
}

}  // namespace

Authority split_authority(std::string_view text) {
  if (text.find('@') != std::string_view::npos)
    refuse("there is a user or a password in front of the host");
  if (text.starts_with('[')) return split_bracketed(text);
  const std::size_t colon = std::min(text.find(':'), text.size());
  Authority parts{.host = text.substr(0, colon)};
  if (colon < text.size()) parts.port = text.substr(colon + 1);
  if (parts.port && parts.port->find(':') != std::string_view::npos)
    refuse(is_v6(text) ? fmt::format("an IPv6 address is written in brackets: [{}]", text)
                       : "there is more than one :");
  parts.is_address = is_v4(parts.host);
  if (!parts.is_address) check_name(parts.host);
  return parts;
}

std::optional<Url> split_url(std::string_view text) {
  constexpr std::string_view kSlashes = "://";
  const std::size_t at = text.find(kSlashes);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + kSlashes.size());
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  return Url{
      .scheme = text.substr(0, at), .authority = rest.substr(0, end), .resource = rest.substr(end)};
}

}  // namespace carillon::server
