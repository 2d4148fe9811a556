// Reading and printing addresses (address.h).
#include "server/text/address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

#include "server/text/whole_number.h"

namespace carillon::server {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw std::invalid_argument(fmt::format("\"{}\": {}", text, why));
}

Address unix_address(std::string_view text) {
  const std::string_view path = text.substr(kUnix.size());
  if (path.empty()) refuse(text, "names no file; write unix:PATH");
  if (path.size() > kMaxPath)
    refuse(text, fmt::format("the path has {} bytes; the limit is {}", path.size(), kMaxPath));
  return {.host = {}, .port = 0, .path = std::string(path)};
}

Address http_of(const Address& address) {
  constexpr std::uint16_t kBeside = kHttpPort - kBeanstalkPort;
  if (address.is_unix()) return unix_address(to_string(address) + ".http");
  Address http = address;
  if (http.port > UINT16_MAX - kBeside)
    refuse(to_string(address), fmt::format("there is no port {}", http.port + kBeside));
  if (http.port != 0) http.port = static_cast<std::uint16_t>(http.port + kBeside);
  return http;
}

Authority split(std::string_view text) {
  try {
    return split_authority(text);
  } catch (const std::invalid_argument& error) {
    refuse(text, fmt::format("{} (HOST:PORT, [V6]:PORT or unix:PATH)", error.what()));
  }
}

}  // namespace

std::optional<std::uint16_t> read_port(std::string_view text) {
  return whole_number<std::uint16_t>(text);
}

std::uint16_t parse_port(std::string_view text) {
  const auto port = read_port(text);
  if (!port) refuse(text, "not a port, a number from 0 to 65535");
  return *port;
}

Address parse_address(std::string_view text, std::uint16_t default_port) {
  if (text.starts_with(kUnix)) return unix_address(text);

  if (read_port(text)) refuse(text, fmt::format("a port needs its host; write 127.0.0.1:{}", text));
  const Authority parts = split(text);
  const auto port = parts.port ? read_port(*parts.port) : std::optional(default_port);
  if (!port) refuse(text, "the port is not a number from 0 to 65535");
  return {.host = std::string(parts.host), .port = *port, .path = {}};
}

Address http_beside(const Address& address) try {
  return http_of(address);
} catch (const std::invalid_argument& error) {
  throw std::invalid_argument(
      fmt::format("{} for HTTP beside it; name an address with --http", error.what()));
}

Address to_address(const sockaddr* address, socklen_t size) {
  if (address->sa_family == AF_UNIX) {
    const auto* local = reinterpret_cast<const sockaddr_un*>(address);
    const std::size_t length = size - offsetof(sockaddr_un, sun_path);
    return {.host = {},
            .port = 0,
            .path = std::string(local->sun_path, ::strnlen(local->sun_path, length))};
  }
  char host[NI_MAXHOST] = "?";
  char port[NI_MAXSERV] = "0";
  ::getnameinfo(address, size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return {.host = host, .port = parse_port(port), .path = {}};
}

std::string to_string(const Address& address) {
  if (address.is_unix()) return fmt::format("{}{}", kUnix, address.path);
  const bool v6 = address.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.host, address.port)
            : fmt::format("{}:{}", address.host, address.port);
}

// --- Taking apart hosts and URLs.

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
