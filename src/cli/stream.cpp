// Connects to a server, and reads and writes with limits on the waiting time.

#include "cli/stream.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "cli/error_text.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

constexpr std::chrono::seconds kConnectLimit{5};
constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

// Returns 0 or an errno value.
int connect_within_limit(int fd, const sockaddr* address, socklen_t size, int interrupt_fd) {
  if (::connect(fd, address, size) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_for(fd, POLLOUT, kConnectLimit, interrupt_fd)) return ETIMEDOUT;
  int error = 0;
  socklen_t error_size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return errno;
  return error;
}

// A worker may wait for hours in a reserve. Keep-alive detects within 60 s that the server's
// machine is gone.
void set_tcp_options(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

bool is_on_this_machine(const server::Address& address) {
  if (address.is_unix() || address.host == "localhost") return true;
  boost::system::error_code error;
  const auto numeric = boost::asio::ip::make_address(address.host, error);
  return !error && numeric.is_loopback();
}

[[noreturn]] void cannot_connect(const server::Address& address, int error, std::string_view text) {
  const std::string name = server::to_string(address);
  const bool nobody = error == ECONNREFUSED || error == ENOENT;
  std::string advice;
  if (nobody && is_on_this_machine(address)) {
    const bool usual = name == fmt::format("127.0.0.1:{}", server::kBeanstalkPort);
    advice = fmt::format("; start one with: carillon serve{}", usual ? "" : " --listen " + name);
  }
  throw Unavailable(fmt::format("cannot connect to {}: {}{}", name, text, advice));
}

base::FileDescriptor connect_unix(const server::Address& address, int interrupt_fd) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  // parse_address() refuses paths that do not fit.
  std::memcpy(name.sun_path, address.path.data(),
              std::min(address.path.size(), sizeof name.sun_path - 1));
  base::FileDescriptor fd(::socket(AF_UNIX, kSocketFlags, 0));
  if (!fd) cannot_connect(address, errno, error_text(errno));
  const int error = connect_within_limit(fd.get(), reinterpret_cast<const sockaddr*>(&name),
                                         sizeof name, interrupt_fd);
  if (error != 0) cannot_connect(address, error, error_text(error));
  return fd;
}

base::FileDescriptor connect_tcp(const server::Address& address, int interrupt_fd) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (failed != 0) cannot_connect(address, 0, lower_first(::gai_strerror(failed)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);

  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    base::FileDescriptor fd(::socket(one->ai_family, kSocketFlags, 0));
    if (!fd) {
      error = errno;
      continue;
    }
    error = connect_within_limit(fd.get(), one->ai_addr, one->ai_addrlen, interrupt_fd);
    if (error != 0) continue;
    set_tcp_options(fd.get());
    return fd;
  }
  cannot_connect(address, error, error_text(error));
}

}  // namespace

Stream Stream::connect(const server::Address& address, int interrupt_fd) {
  Stream stream(
      address.is_unix() ? connect_unix(address, interrupt_fd) : connect_tcp(address, interrupt_fd),
      server::to_string(address));
  stream.interrupt_on(interrupt_fd);
  return stream;
}

Stream Stream::connect(const ServerAddress& server, int interrupt_fd) {
  const auto token = server.token();
  Stream stream = connect_without_token(server, interrupt_fd);
  if (!token) return stream;
  stream.send("auth " + *token + "\r\n");
  const std::string reply = stream.read_line();
  if (reply == "AUTHENTICATED") return stream;
  if (reply == "NOT_AUTHENTICATED")
    throw Failure(fmt::format("{} does not know the token", stream.peer()));
  throw Failure(
      fmt::format("{} takes no tokens: it answered {}", stream.peer(), reply.substr(0, 60)));
}

Stream Stream::connect_without_token(const ServerAddress& server, int interrupt_fd) {
  const server::Address& address = server;
  Stream stream = connect(address, interrupt_fd);
  if (server.uses_tls()) stream.begin_tls(server);
  return stream;
}

Stream::Stream(base::FileDescriptor fd, std::string peer)
    : fd_(std::move(fd)), peer_(std::move(peer)) {}

void Stream::lost(std::string_view why) const {
  throw Unavailable(fmt::format("lost the connection to {}: {}", peer_, why));
}

void Stream::wait_until(short events, Patience patience) {
  if (wait_for(fd_.get(), events, patience, interrupt_fd_)) return;
  throw Unavailable(
      fmt::format("{} has not answered for {}", peer_, server::short_duration(*patience)));
}

void Stream::begin_tls(const ServerAddress& server) {
  try {
    auto tls = std::make_unique<TlsClient>(server.host, server.ca_file());
    while (true) {
      const bool done = tls->shake_hands();
      send_as_it_is(tls->take_output());
      if (done) break;
      tls->add_input(receive_as_it_is(kPatience));
    }
    tls->decrypt(received_);  // what has come behind the handshake
    tls_ = std::move(tls);
  } catch (const Unavailable&) {
    throw;
  } catch (const Failure& error) {
    throw Failure(fmt::format("{}: {}", peer_, error.what()));
  }
}

void Stream::send(std::string_view bytes) {
  if (!tls_) return send_as_it_is(bytes);
  constexpr std::size_t kAtOnce = 64 << 10;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kAtOnce, bytes.size()))) {
    tls_->encrypt(bytes.substr(0, kAtOnce));
    send_as_it_is(tls_->take_output());
  }
}

void Stream::send_as_it_is(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      wait_until(POLLOUT, kPatience);
    } else if (errno != EINTR) {
      lost(error_text(errno));
    }
  }
}

std::string Stream::receive_as_it_is(Patience patience) {
  std::array<char, 65'536> buffer;
  while (true) {
    wait_until(POLLIN, patience);
    const ssize_t count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (count == 0) lost("closed by the server");
    if (count > 0) return {buffer.data(), static_cast<std::size_t>(count)};
    if (errno != EAGAIN && errno != EINTR) lost(error_text(errno));
  }
}

void Stream::receive_more(Patience patience) {
  if (!tls_) {
    received_ += receive_as_it_is(patience);
    return;
  }
  const std::size_t before = received_.size();
  while (received_.size() == before) {
    tls_->add_input(receive_as_it_is(patience));
    if (!tls_->decrypt(received_) && received_.size() == before) lost("closed by the server");
    send_as_it_is(tls_->take_output());
  }
}

std::string Stream::read_line(Patience patience) {
  std::size_t end = 0;
  while ((end = received_.find("\r\n")) == std::string::npos) {
    if (received_.size() > kMaxLine) {
      throw Failure(fmt::format(
          "{} does not speak the beanstalk protocol: it sent {} bytes without a line end", peer_,
          received_.size()));
    }
    receive_more(patience);
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 2);
  return line;
}

std::string Stream::read_exactly(std::size_t count) {
  while (received_.size() < count) receive_more(kPatience);
  std::string bytes = received_.substr(0, count);
  received_.erase(0, count);
  return bytes;
}

std::string Stream::read_some(Patience patience) {
  while (received_.empty()) receive_more(patience);
  return std::exchange(received_, {});
}

}  // namespace carillon::cli
