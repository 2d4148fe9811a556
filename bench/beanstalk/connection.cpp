#include "connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

namespace carillon::bench {
namespace {

constexpr std::size_t kBuffer = 256 << 10;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

int connect_to(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    throw std::runtime_error("no such host: " + host);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
    fail("cannot connect to " + host + ":" + std::to_string(port));
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

}  // namespace

Connection::Connection(const std::string& host, std::uint16_t port, const Dialect& dialect)
    : fd_(connect_to(host, port)), dialect_(&dialect), input_(kBuffer) {}

Connection::Connection(Connection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      dialect_(other.dialect_),
      output_(std::move(other.output_)),
      written_(other.written_),
      input_(std::move(other.input_)),
      begin_(other.begin_),
      end_(other.end_),
      awaited_(other.awaited_),
      sent_at_(other.sent_at_) {}

Connection::~Connection() {
  if (fd_ >= 0) ::close(fd_);
}

void Connection::send(std::string_view commands, std::size_t replies) {
  output_.assign(commands);
  written_ = 0;
  awaited_ = replies;
  sent_at_ = std::chrono::steady_clock::now();
  transfer();
}

void Connection::transfer() {
  while (wants_to_write()) {
    const ssize_t n =
        ::send(fd_, output_.data() + written_, output_.size() - written_, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) fail("cannot send");
    written_ += static_cast<std::size_t>(n);
  }
  std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const ssize_t n = ::recv(fd_, input_.data() + end_, input_.size() - end_, 0);
  if (n == 0) throw std::runtime_error("the server closed the connection");
  if (n < 0 && errno != EAGAIN) fail("cannot receive");
  if (n > 0) end_ += static_cast<std::size_t>(n);
}

std::string_view Connection::next_reply() {
  const std::string_view there(input_.data() + begin_, end_ - begin_);
  const std::size_t length = dialect_->length(there);
  begin_ += length;
  return there.substr(0, length);
}

}  // namespace carillon::bench
