// The table of addresses that are not public (address_guard.h). Sources: the special-purpose
// address registries of IANA for IPv4 and IPv6 (RFC 6890).
#include "server/push/address_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "server/text/whole_number.h"

namespace carillon::server::push {

namespace {

namespace ip = boost::asio::ip;

constexpr std::array kNotPublic = {
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
    // In IPv6 only 2000::/3 is public, without these.
    "2001::/23", "2001:db8::/32", "3fff::/20"};

const std::vector<Network>& not_public() {
  static const std::vector<Network> all = [] {
    std::vector<Network> networks;
    for (const char* text : kNotPublic) networks.push_back(parse_network(text));
    return networks;
  }();
  return all;
}

template <typename Bytes>
bool same_prefix(const Bytes& a, const Bytes& b, unsigned bits) {
  for (std::size_t n = 0; n < a.size() && bits > 0; ++n) {
    const unsigned here = std::min(bits, 8u);
    if (((a[n] ^ b[n]) >> (8 - here)) != 0) return false;
    bits -= here;
  }
  return true;
}

// Returns the IPv4 address to which packets for an IPv6 address may go in the end.
std::optional<ip::address_v4> v4_within(const ip::address_v6& address) {
  const auto bytes = address.to_bytes();
  const auto v4_at = [&](std::size_t at) {
    return ip::address_v4({bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]});
  };
  if (address.is_v4_mapped()) return v4_at(12);
  static const Network nat64 = parse_network("64:ff9b::/96");
  static const Network six_to_four = parse_network("2002::/16");
  if (nat64.has(address)) return v4_at(12);
  if (six_to_four.has(address)) return v4_at(2);
  return std::nullopt;
}

}  // namespace

bool Network::has(const ip::address& other) const {
  if (address.is_v4() != other.is_v4()) return false;
  return address.is_v4() ? same_prefix(address.to_v4().to_bytes(), other.to_v4().to_bytes(), bits)
                         : same_prefix(address.to_v6().to_bytes(), other.to_v6().to_bytes(), bits);
}

Network parse_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  boost::system::error_code error;
  const ip::address address = ip::make_address(text.substr(0, slash), error);
  const unsigned most = address.is_v4() ? 32 : 128;
  const auto bits = slash == std::string::npos
                        ? std::optional(most)
                        : whole_number<unsigned>(std::string_view(text).substr(slash + 1));
  if (!error && bits && *bits <= most) return {.address = address, .bits = *bits};
  throw std::invalid_argument(
      fmt::format("\"{}\": write an address, or a network such as 10.0.0.0/8 or fd00::/8", text));
}

bool AddressGuard::allows(const ip::address& address) const {
  const auto is_in = [&](const std::vector<Network>& networks) {
    return std::any_of(networks.begin(), networks.end(),
                       [&](const Network& network) { return network.has(address); });
  };
  if (is_in(allowed_)) return true;
  if (address.is_v6()) {
    if (const auto inner = v4_within(address.to_v6())) return allows(ip::address(*inner));
    static const Network global = parse_network("2000::/3");
    if (!global.has(address)) return false;
  }
  return !is_in(not_public());
}

void AddressGuard::require_allowed(const std::string& host) const {
  boost::system::error_code error;
  const ip::address address = ip::make_address(host, error);
  if (error || allows(address)) return;
  throw std::invalid_argument(fmt::format("the address {} {}", host, kNotAllowed));
}

}  // namespace carillon::server::push
