// Where a server listens: a TCP host and port, or the path of a Unix socket. The command line
// parses addresses, run_server() listens on them, and the log prints them.
//
//   parse_address("127.0.0.1:11300")   parse_address("[::1]:11300")   parse_address("localhost")
//   parse_address("unix:/run/c.sock")
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carillon::server {

inline constexpr std::uint16_t kBeanstalkPort = 11'300;
inline constexpr std::uint16_t kHttpPort = 11'380;

struct Address {
  // A name, or a numeric address without brackets. Empty for a Unix socket.
  std::string host;
  // 0: the system chooses a free port.
  std::uint16_t port = 0;
  // The path of a Unix socket. Empty for TCP.
  std::string path;

  bool is_unix() const { return !path.empty(); }
};

// Reads "HOST", "HOST:PORT", "[V6]", "[V6]:PORT" or "unix:PATH". Without a port, the port is
// `default_port`. Throws std::invalid_argument, whose message has the text in quotes, what is wrong
// with it, and what is allowed.
Address parse_address(std::string_view text, std::uint16_t default_port = kBeanstalkPort);

// Returns where a server that speaks the beanstalk protocol at `address` answers HTTP, unless it
// was told otherwise: at port + 80 of the same host, or at unix:PATH.http. Port 0 stays. Throws
// std::invalid_argument if there is no such port or path.
Address http_beside(const Address& address);

// Reads text that is only a port: 0 to 65535. Throws std::invalid_argument.
std::uint16_t parse_port(std::string_view text);
// The same; none if the text is not a port.
std::optional<std::uint16_t> read_port(std::string_view text);

// Converts a system address; host and port are numeric.
Address to_address(const sockaddr* address, socklen_t size);

// The text that parse_address() reads.
std::string to_string(const Address& address);

}  // namespace carillon::server
