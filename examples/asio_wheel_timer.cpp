// An echo server on Asio that drops clients which are silent for 200 ms, and two clients that try
// it.
//
// Each packet pushes a timer back. With asio::steady_timer that costs O(log n) in a heap, with
// wheel_timer O(1). Only one line differs between the two; it is marked.

#include <carillon/asio/wheel_timer.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;
using namespace std::chrono_literals;

using Timer = carillon::wheel_timer;  // was: net::steady_timer

constexpr auto kIdleLimit = 200ms;

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket)
      : socket_(std::move(socket)), idle_(socket_.get_executor()) {}

  void read() {
    idle_.expires_after(kIdleLimit);
    idle_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->drop();
    });
    socket_.async_read_some(net::buffer(data_),
                            [self = shared_from_this()](error_code error, std::size_t size) {
                              error ? self->end() : self->echo(size);
                            });
  }

 private:
  void echo(std::size_t size) {
    net::async_write(socket_, net::buffer(data_, size),
                     [self = shared_from_this()](error_code error, std::size_t) {
                       error ? self->end() : self->read();
                     });
  }
  void drop() {
    std::puts("server: dropped a silent client");
    end();
  }
  void end() {
    idle_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

  tcp::socket socket_;
  Timer idle_;
  std::array<char, 1024> data_{};
};

class Server {
 public:
  explicit Server(net::io_context& io)
      : acceptor_(io, tcp::endpoint(net::ip::address_v4::loopback(), 0)) {
    accept();
  }
  tcp::endpoint address() const { return acceptor_.local_endpoint(); }
  void close() { acceptor_.close(); }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error) return;
      std::make_shared<Session>(std::move(socket))->read();
      accept();
    });
  }

  tcp::acceptor acceptor_;
};

// Sends its name `times` times, 20 ms apart, and then nothing until it is dropped.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(net::io_context& io, std::string name, int times)
      : socket_(io), pause_(io), name_(std::move(name)), left_(times) {}

  void start(const tcp::endpoint& server) {
    socket_.connect(server);
    talk();
  }

 private:
  void talk() {
    if (left_-- > 0) net::write(socket_, net::buffer(name_));
    net::async_read(
        socket_, net::buffer(reply_.data(), name_.size()),
        [self = shared_from_this()](error_code error, std::size_t) { self->replied(error); });
  }
  void replied(error_code error) {
    if (error) {
      std::printf("%s: dropped with %d things unsaid\n", name_.c_str(), std::max(left_, 0));
      return;
    }
    pause_.expires_after(20ms);
    pause_.async_wait([self = shared_from_this()](error_code) { self->talk(); });
  }

  tcp::socket socket_;
  Timer pause_;
  std::string name_;
  int left_;
  std::array<char, 64> reply_{};
};

}  // namespace

int main() {
  net::io_context io(1);
  Server server(io);
  std::make_shared<Client>(io, "quiet", 1)->start(server.address());
  std::make_shared<Client>(io, "talkative", 8)->start(server.address());
  Timer closing(io, 500ms);
  closing.async_wait([&](error_code) { server.close(); });
  io.run();  // returns when no client is connected and no timer waits
  std::puts("all timers are done");
  return 0;
}
