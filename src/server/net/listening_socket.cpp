// Binding TCP and Unix sockets, and taking those that systemd passes (listening_socket.h).
#include "server/net/listening_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/start_error.h"

namespace carillon::server {
namespace {

constexpr int kBacklog = 1024;
constexpr int kFirstInherited = 3;  // SD_LISTEN_FDS_START of sd_listen_fds(3)

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

void set_option(int fd, int level, int option) {
  const int on = 1;
  ::setsockopt(fd, level, option, &on, sizeof on);
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_UNIX) return true;
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

ListeningSocket describe(Descriptor fd, bool unlink_path) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  ::getsockname(fd.get(), address, &size);
  return {fd.release(), to_address(address, size), is_loopback(address), unlink_path};
}

std::string advice(int error, const Address& address) {
  if (error == EADDRINUSE)
    return "another program listens there: stop it, or choose another address";
  if (error == EADDRNOTAVAIL) return "this machine has no such address";
  if (error == EACCES && !address.is_unix())
    return "ports below 1024 need root: choose another port";
  return std::strerror(error);
}

[[noreturn]] void fail(const Address& address, const std::string& why) {
  throw base::StartError(fmt::format("cannot listen on {}: {}", to_string(address), why));
}

std::vector<ListeningSocket> bind_tcp(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) fail(address, fmt::format("no such host ({})", ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);

  std::vector<ListeningSocket> sockets;
  int last_error = EADDRNOTAVAIL;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Descriptor fd(
        ::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, each->ai_protocol));
    if (fd.get() < 0) {
      last_error = errno;
      continue;
    }
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR);
    if (each->ai_family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY);
    last_error = ::bind(fd.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (last_error == 0) {
      sockets.push_back(describe(std::move(fd), false));
    } else if (last_error != EADDRNOTAVAIL) {
      // Do not go on with the name's other addresses: that would hide that this one is taken.
      fail(address, advice(last_error, address));
    }
  }
  if (sockets.empty()) fail(address, advice(last_error, address));
  return sockets;
}

bool is_answered(const sockaddr_un& address) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// bind() makes the file of a Unix socket. Returns 0, or the error number.
int bind_file(int fd, const sockaddr_un& address, std::optional<mode_t> mode) {
  const auto bind = [&] {
    const auto* name = reinterpret_cast<const sockaddr*>(&address);
    return ::bind(fd, name, sizeof address) == 0 ? 0 : errno;
  };
  if (!mode) return bind();
  const mode_t before = ::umask(~*mode & 0777);
  const int error = bind();
  ::umask(before);
  return error;
}

// The file has its mode from its first moment and its group before listen(). Until then the kernel
// refuses every connection.
std::vector<ListeningSocket> bind_unix(const Address& address, const SocketAccess& access) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  address.path.copy(local.sun_path, sizeof local.sun_path - 1);

  struct stat file {};
  if (::stat(address.path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) fail(address, "there is a file of that name which is no socket");
    if (is_answered(local)) fail(address, advice(EADDRINUSE, address));
    ::unlink(address.path.c_str());
  }
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail(address, std::strerror(errno));
  const int error = bind_file(fd.get(), local, access.mode);
  if (error != 0) fail(address, advice(error, address));
  std::vector<ListeningSocket> sockets;
  sockets.push_back(describe(std::move(fd), true));
  constexpr auto kSameOwner = static_cast<uid_t>(-1);
  if (access.group && ::lchown(address.path.c_str(), kSameOwner, access.group->id) != 0) {
    fail(address,
         fmt::format("it cannot be given to the group \"{}\": {}; only root gives files to "
                     "groups that it is not in",
                     access.group->name, std::strerror(errno)));
  }
  return sockets;
}

int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  int number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

bool is_listening_stream(int fd) {
  int listens = 0;
  int type = 0;
  socklen_t size = sizeof(int);
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
         ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      bound_(std::move(other.bound_)),
      loopback_(other.loopback_),
      unlink_path_(std::exchange(other.unlink_path_, false)),
      speaks_(other.speaks_) {}

ListeningSocket::~ListeningSocket() {
  if (fd_ >= 0) ::close(fd_);
  if (unlink_path_) ::unlink(bound_.path.c_str());
}

ListeningSocket ListeningSocket::duplicate() const {
  const int fd = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) fail(bound_, std::strerror(errno));
  ListeningSocket other(fd, bound_, loopback_, false);
  other.speak(speaks_);
  return other;
}

void ListeningSocket::listen() {
  if (::listen(fd_, kBacklog) != 0) fail(bound_, advice(errno, bound_));
}

std::vector<ListeningSocket> bind_to(const Address& address, const SocketAccess& access) {
  return address.is_unix() ? bind_unix(address, access) : bind_tcp(address);
}

std::vector<ListeningSocket> listen_on(const Address& address, const SocketAccess& access) {
  std::vector<ListeningSocket> sockets = bind_to(address, access);
  for (ListeningSocket& socket : sockets) socket.listen();
  return sockets;
}

std::vector<ListeningSocket> inherited_sockets() {
  std::vector<ListeningSocket> sockets;
  const int count =
      number_in_environment("LISTEN_PID") == ::getpid() ? number_in_environment("LISTEN_FDS") : 0;
  const char* const text = std::getenv("LISTEN_FDNAMES");
  std::string_view names = text != nullptr ? text : "";
  for (int fd = kFirstInherited; fd < kFirstInherited + count; ++fd) {
    if (!is_listening_stream(fd)) {
      throw base::StartError(
          fmt::format("descriptor {} inherited from systemd is no listening stream socket", fd));
    }
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    sockets.push_back(describe(Descriptor(fd), false));
    const std::string_view name = names.substr(0, names.find(':'));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    if (name == "http") sockets.back().speak(Speaks::kHttp);
  }
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  return sockets;
}

}  // namespace carillon::server
