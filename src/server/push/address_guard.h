// Decides to which addresses jobs may be pushed: public ones, and those that are allowed. So a user
// who may set an endpoint cannot reach the machines behind the server (server-side request
// forgery).
//
//   AddressGuard guard({parse_network("10.1.0.0/16")});
//   guard.allows(asio::ip::make_address("169.254.169.254"));    // false: link-local
//
// Thread safety: const methods are pure.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::server::push {

struct Network {
  boost::asio::ip::address address;
  unsigned bits = 0;  // bits of its prefix

  bool has(const boost::asio::ip::address& other) const;
};

// Reads 10.0.0.0/8, fd00::/8, or one address. Throws std::invalid_argument.
Network parse_network(const std::string& text);

// The end of the error message for an address that is not allowed.
inline constexpr std::string_view kNotAllowed =
    "is not public, and not allowed (see carillon serve --push-allow)";

class AddressGuard {
 public:
  explicit AddressGuard(std::vector<Network> allowed = {}) : allowed_(std::move(allowed)) {}

  // An IPv4 address within an IPv6 one (mapped, NAT64, 6to4) counts as itself.
  bool allows(const boost::asio::ip::address& address) const;

  // Throws std::invalid_argument if the host is an address that is not allowed. A name is not
  // looked up here: what it stands for may change until the server connects.
  void require_allowed(const std::string& host) const;

 private:
  std::vector<Network> allowed_;
};

}  // namespace carillon::server::push
