// RunningLoop: a test fixture that runs an event loop on real sockets in a thread of its own, with
// a store in memory; and Peer, a blocking client for it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/event_loop.h"
#include "server/net/listening_socket.h"
#include "test_server.h"

namespace carillon::server {

// A blocking client. A read that gets nothing for 20 s ends as at the end of the stream.
class Peer {
 public:
  // `receive_buffer`: bytes that the kernel keeps for the client while it does not read; 0: the
  // kernel's choice.
  explicit Peer(const Address& address, int receive_buffer = 0)
      : fd_(::socket(address.is_unix() ? AF_UNIX : AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer != 0)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in tcp{};
    tcp.sin_family = AF_INET;
    tcp.sin_port = htons(address.port);
    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    address.path.copy(local.sun_path, sizeof local.sun_path - 1);
    const auto* name =
        address.is_unix() ? reinterpret_cast<sockaddr*>(&local) : reinterpret_cast<sockaddr*>(&tcp);
    const socklen_t size = address.is_unix() ? sizeof local : sizeof tcp;
    EXPECT_EQ(::connect(fd_, name, size), 0) << to_string(address);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { ::close(fd_); }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  // Reads exactly this many bytes, or fewer at the end of the stream.
  std::string read(std::size_t bytes) {
    std::string got;
    while (got.size() < bytes) {
      char buffer[65'536];
      const ssize_t n = ::recv(fd_, buffer, std::min(sizeof buffer, bytes - got.size()), 0);
      if (n <= 0) break;
      got.append(buffer, static_cast<std::size_t>(n));
    }
    return got;
  }

  std::string read_line() {
    std::string line;
    std::string next;
    do line += next = read(1);
    while (!next.empty() && next != "\n");
    return line;
  }

  std::string say(std::string_view bytes, std::string_view expected) {
    send(bytes);
    return read(expected.size());
  }

  bool at_end() { return read(1).empty(); }
  // Throws away what has come, and tells whether the server has closed the connection. Does not
  // wait.
  bool is_closed() {
    char bytes[1'024];
    ssize_t n = 0;
    do n = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
  // Bytes that have arrived and were not read. Does not wait.
  std::size_t bytes_to_read() const {
    int bytes = 0;
    ::ioctl(fd_, FIONREAD, &bytes);
    return static_cast<std::size_t>(bytes);
  }
  bool has_input() const { return bytes_to_read() > 0; }
  void end_input() { ::shutdown(fd_, SHUT_WR); }

  // Closes the connection with a reset instead of an orderly end.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

class RunningLoop : public ::testing::Test {
 protected:
  void start(ServerOptions options = {}, Tokens* tokens = nullptr) {
    const Address any{.host = "127.0.0.1", .port = 0, .path = {}};
    std::vector<ListeningSocket> sockets = listen_on(any);
    for (ListeningSocket& local : listen_on({.host = {}, .port = 0, .path = path_}))
      sockets.push_back(std::move(local));
    tcp_ = sockets.front().bound();
    for (ListeningSocket& socket : listen_on(any)) {
      http_ = socket.bound();
      socket.speak(Speaks::kHttp);
      sockets.push_back(std::move(socket));
    }
    options.beanstalk.tokens = tokens;
    loop_ = std::make_unique<EventLoop>(store_, std::move(sockets), options, nullptr, tokens);
    thread_ = std::thread([this] { end_ = loop_->run(); });
  }

  using End = EventLoop::End;
  // Waits until the loop ends, and returns why it has ended.
  End end() {
    thread_.join();
    loop_.reset();
    return end_;
  }

  End terminate() {
    ::kill(::getpid(), SIGTERM);
    return end();
  }

  void TearDown() override {
    if (thread_.joinable()) terminate();
  }

  std::string path_ =
      ::testing::TempDir() + "carillon-loop-" + std::to_string(::getpid()) + ".sock";
  Address tcp_;
  Address http_;
  beanstalk::BreakableStore store_;
  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
  End end_ = End::kSignal;
};

}  // namespace carillon::server
