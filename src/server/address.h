// Where a server listens: a TCP host and port, or the path of a Unix socket.
//
//   parse_address("127.0.0.1:11300")   parse_address("[::1]:11300")   parse_address("localhost")
//   parse_address("unix:/run/c.sock")
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace carillon::server {

inline constexpr std::uint16_t kBeanstalkPort = 11'300;

struct Address {
  std::string host;        // a name, or a numeric address without brackets; empty for a Unix socket
  std::uint16_t port = 0;  // 0: any free one
  std::string path;        // of a Unix socket; else empty

  bool is_unix() const { return !path.empty(); }
};

// "HOST", "HOST:PORT", "[V6]", "[V6]:PORT" or "unix:PATH"; without a port it is `default_port`.
// Throws std::invalid_argument: the text in quotes, what is wrong with it, and what is allowed.
Address parse_address(std::string_view text, std::uint16_t default_port = kBeanstalkPort);

// The port alone: 0 to 65535. Throws std::invalid_argument.
std::uint16_t parse_port(std::string_view text);

// What the system gives as an address, in numbers.
Address to_address(const sockaddr* address, socklen_t size);

// As parse_address reads it.
std::string to_string(const Address& address);

}  // namespace carillon::server
