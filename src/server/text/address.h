// Addresses. The first kind is where a server listens: a TCP host and port, or the path of a Unix
// socket. The command line parses addresses, run_server() listens on them, and the log prints them.
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
  bool operator==(const Address&) const = default;
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

// --- The host and port of a URL, of the header Host and of an address in a flag, taken apart. All
// code that reads a host uses this, so that all code means the same host. A host is never cut: a
// text that is not wholly a host is refused.
//
//   split_authority("[::1]:80")                   // host "::1", port "80", is_address
//   split_authority("jobs.example.org")           // no port
//   split_authority("127.0.0.1.example.org:80")   // a name, all of it
//   split_url("http://[::1]:80/a?b")              // "http", "[::1]:80", "/a?b"
//
// Why not the parser of Boost.URL: version 1.81 takes the first four numbers of the name above for
// an address, and the rest of it for a path. Thread safety: pure.

// Its parts point into the text.
struct Authority {
  // A name, or an address without brackets.
  std::string_view host;
  // As it is written: it may be empty, or no number.
  std::optional<std::string_view> port = {};
  // If not, the host is a name, which getaddrinfo(3) does not take for an address either.
  bool is_address = false;
};

// Reads HOST, HOST:PORT, [V6] or [V6]:PORT. Throws std::invalid_argument, which says what is wrong:
// - no host; a user or a password in front of it;
// - an IPv4 address that is not four decimal numbers (127.1, 0x7f000001, 0177.0.0.1);
// - brackets around anything except an IPv6 address without a zone;
// - a byte that no name may have: only letters, digits, and - . _ are allowed
// - a name that no name server can have: over 253 bytes, or a part between dots that is empty or
//   has over 63 bytes. A dot may end it.
Authority split_authority(std::string_view text);

// SCHEME://AUTHORITY and what follows it.
struct Url {
  std::string_view scheme;
  std::string_view authority;
  // From the first of / ? # behind the authority on. May be empty.
  std::string_view resource;
};

// Returns nullopt if the text has no "://". Checks neither part.
std::optional<Url> split_url(std::string_view text);

}  // namespace carillon::server
