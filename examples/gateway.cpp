// A TCP message channel that closes silent connections: a gateway, and three clients that try it,
// over real sockets on 127.0.0.1.
//
// A packet is a line. The first line of a client is its name; each other line is a message, such as
// "grace hello", that the gateway passes on to grace. carillon::IdleTracker is the gateway's list
// of connections: a packet costs one touch, and a connection without a packet for its time-out is
// handed over to be closed.
//
// bench/gateway is the load program: 100 000 such connections.

#include <carillon/idle/idle_tracker.h>

#include <boost/asio.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

constexpr std::chrono::milliseconds kTick{20};
constexpr carillon::Ticks kTimeout{10};

struct Session {
  explicit Session(tcp::socket accepted) : socket(std::move(accepted)) {}
  tcp::socket socket;
  carillon::IdleId id;
  std::string name;  // empty before the first line
  std::string input;
};

class Gateway {
 public:
  // Stops when `sessions` connections have ended.
  Gateway(net::io_context& io, int sessions)
      : acceptor_(io, {net::ip::address_v4::loopback(), 0}), timer_(io), left_(sessions) {
    accept();
    count_ticks();
  }
  tcp::endpoint address() const { return acceptor_.local_endpoint(); }

  std::string closed, hung_up;  // names, each after a space

 private:
  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error) return;
      socket.non_blocking(true);
      const auto session = std::make_shared<Session>(std::move(socket));
      session->id = connections_.add(session);
      read(session);
      accept();
    });
  }

  void read(const std::shared_ptr<Session>& session) {
    net::async_read_until(session->socket, net::dynamic_buffer(session->input, 1000), '\n',
                          [this, session](error_code error, std::size_t size) {
                            if (error) return end(*session);
                            connections_.touch(session->id);
                            handle(*session, session->input.substr(0, size - 1));
                            session->input.erase(0, size);
                            read(session);
                          });
  }

  void handle(Session& session, const std::string& line) {
    if (line.empty()) return;  // only keeps the connection alive
    if (session.name.empty()) {
      std::printf("gateway: %s logs in\n", line.c_str());
      users_[session.name = line] = &session;
      return;
    }
    const std::size_t space = line.find(' ');
    const auto to = users_.find(line.substr(0, space));
    if (space == std::string::npos || to == users_.end()) return;
    const std::string message = session.name + ":" + line.substr(space) + "\n";
    error_code ignored;  // a client that reads too slowly loses messages
    to->second->socket.write_some(net::buffer(message), ignored);
  }

  // Counts ticks, each at least kTick long, so no connection is closed too early. If the process is
  // held up, that counts as one tick, however long it is: clients are not blamed for it.
  void count_ticks() {
    timer_.expires_after(kTick);
    timer_.async_wait([this](error_code) {
      connections_.advance(connections_.now() + 1,
                           [](carillon::IdleId, std::shared_ptr<Session>&& session) {
                             std::printf("gateway: %s is silent\n", session->name.c_str());
                             session->socket.close();  // its read() ends with an error
                           });
      if (acceptor_.is_open()) count_ticks();
    });
  }

  void end(Session& session) {
    const bool was_idle = !connections_.remove(session.id);
    (was_idle ? closed : hung_up) += " " + session.name;
    users_.erase(session.name);
    if (--left_ == 0) acceptor_.close();
  }

  tcp::acceptor acceptor_;
  net::steady_timer timer_;
  int left_;
  carillon::IdleTracker<std::shared_ptr<Session>> connections_{kTimeout};
  std::map<std::string, Session*> users_;
};

// Logs in and sends `messages` messages, two ticks apart. Then hangs up, or stays and is silent.
class Client {
 public:
  Client(net::io_context& io, const tcp::endpoint& gateway, std::string name, int messages,
         bool stays)
      : socket_(io), pause_(io), name_(std::move(name)), left_(messages), stays_(stays) {
    socket_.connect(gateway);
    send(name_ + "\n");
  }

 private:
  void send(const std::string& line) {
    error_code ignored;  // a closed connection is found by the read below
    net::write(socket_, net::buffer(line), ignored);
    pause_.expires_after(2 * kTick);
    pause_.async_wait([this](error_code) { left_-- > 0 ? send("grace hello\n") : fall_silent(); });
  }
  void fall_silent() {
    if (!stays_) return socket_.close();
    net::async_read(socket_, net::dynamic_buffer(received_), [this](error_code, std::size_t) {
      std::printf("%s: the gateway has closed my connection\n", name_.c_str());
    });
  }

  tcp::socket socket_;
  net::steady_timer pause_;
  std::string name_, received_;
  int left_;
  bool stays_;
};

}  // namespace

int main() {
  net::io_context io(1);
  Gateway gateway(io, 3);
  const Client ada(io, gateway.address(), "ada", 12, false);
  const Client bob(io, gateway.address(), "bob", 1, true);
  const Client grace(io, gateway.address(), "grace", 12, false);
  io.run();  // until all clients have ended
  std::printf("hung up:%s; closed:%s\n", gateway.hung_up.c_str(), gateway.closed.c_str());
  return 0;
}
