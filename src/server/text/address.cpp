// Reading and printing addresses (address.h).
#include "server/text/address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "server/text/authority.h"

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
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
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

}  // namespace carillon::server
