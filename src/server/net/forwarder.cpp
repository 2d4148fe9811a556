// Accepting, connecting and copying (forwarder.h).
#include "server/net/forwarder.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <utility>

namespace carillon::server {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds kOneTry{1'000};
constexpr milliseconds kBetweenTries{100};

}  // namespace

// A client, and its connection to the node that serves. Each operation under way has a share of it;
// close() ends them all.
class Forwarder::Passage : public std::enable_shared_from_this<Passage> {
 public:
  Passage(Forwarder& owner, Acceptor::Socket client, Speaks protocol)
      : owner_(owner),
        protocol_(protocol),
        client_(std::move(client)),
        server_(*owner.io_),
        resolver_(*owner.io_),
        timer_(*owner.io_) {}

  // Connects to the node that serves, and tries again until kPatience is over.
  void connect() {
    const std::optional<Destination>& destination = owner_.destination_;
    const bool is_http = protocol_ == Speaks::kHttp;
    if (!destination || (is_http && !destination->http)) return again();
    const Address& to = is_http ? *destination->http : destination->beanstalk;
    timer_.expires_after(kOneTry);
    timer_.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (!cancelled && !self->is_connected_) self->give_up_try();
    });
    resolver_.async_resolve(to.host, std::to_string(to.port),
                            [self = shared_from_this()](const error_code& error, auto found) {
                              if (error) return self->again();
                              self->connect_to(found);
                            });
  }

  bool is_connected() const { return is_connected_; }

  void close() {
    is_closed_ = true;
    error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
    resolver_.cancel();
    timer_.cancel();
    owner_.passages_.erase(shared_from_this());
  }

 private:
  void connect_to(const tcp::resolver::results_type& found) {
    asio::async_connect(server_, found,
                        [self = shared_from_this()](const error_code& error, const tcp::endpoint&) {
                          if (error || self->is_closed_) return self->again();
                          self->is_connected_ = true;
                          self->timer_.cancel();
                          error_code ignored;
                          self->server_.non_blocking(true, ignored);
                          self->server_.set_option(tcp::no_delay(true), ignored);
                          self->server_.set_option(asio::socket_base::keep_alive(true), ignored);
                          self->copy(self->client_, self->server_);
                          self->copy(self->server_, self->client_);
                        });
  }

  void give_up_try() {
    error_code ignored;
    resolver_.cancel();
    server_.close(ignored);
  }

  void again() {
    if (is_closed_) return;
    if (steady_clock::now() >= until_) return close();
    give_up_try();
    timer_.expires_after(kBetweenTries);
    timer_.async_wait([self = shared_from_this()](const error_code&) {
      if (!self->is_closed_) self->connect();
    });
  }

  // Copies until `from` has ended, and says so to the other side. What the server has not read
  // when it ends, nobody will.
  template <typename From, typename To>
  void copy(From& from, To& to) {
    from.async_wait(From::wait_read, [self = shared_from_this(), &from, &to](error_code error) {
      if (self->is_closed_) return;
      std::array<char, kPiece>& piece = self->owner_.piece_;
      const std::size_t size = error ? 0 : from.read_some(asio::buffer(piece), error);
      if (error == asio::error::would_block) return self->copy(from, to);
      if (error == asio::error::eof && self->is_client(from)) {
        to.shutdown(To::shutdown_send, error);
        return;
      }
      if (error) return self->close();
      const auto bytes = std::make_shared<const std::string>(piece.data(), size);
      asio::async_write(to, asio::buffer(*bytes),
                        [self, &from, &to, bytes](const error_code& failed, std::size_t) {
                          if (failed) return self->close();
                          self->copy(from, to);
                        });
    });
  }

  bool is_client(const Acceptor::Socket&) const { return true; }
  bool is_client(const tcp::socket&) const { return false; }

  Forwarder& owner_;
  const Speaks protocol_;
  Acceptor::Socket client_;
  tcp::socket server_;
  tcp::resolver resolver_;
  asio::steady_timer timer_;
  const steady_clock::time_point until_ = steady_clock::now() + kPatience;
  bool is_connected_ = false;
  bool is_closed_ = false;
};

Forwarder::Forwarder(std::size_t max_connections) : max_connections_(max_connections) {}

Forwarder::~Forwarder() {
  stop();
}

void Forwarder::start(const std::vector<ListeningSocket>& sockets) {
  io_ = std::make_unique<asio::io_context>(1);
  for (const ListeningSocket& socket : sockets) {
    const Speaks protocol = socket.speaks();
    acceptors_.push_back(std::make_unique<Acceptor>(
        *io_, socket.duplicate(),
        [this, protocol](Acceptor::Socket client) { accept(std::move(client), protocol); }));
    acceptors_.back()->start();
  }
  thread_ = std::thread([this] { io_->run(); });
  const std::lock_guard lock(mutex_);
  runs_ = true;
}

void Forwarder::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    runs_ = false;
  }
  io_->stop();
  thread_.join();
  while (!passages_.empty()) std::shared_ptr<Passage>(*passages_.begin())->close();
  acceptors_.clear();
  io_.reset();
  destination_.reset();
}

void Forwarder::lead_to(const std::optional<Destination>& destination) {
  const std::lock_guard lock(mutex_);
  if (!runs_) return;
  asio::post(*io_, [this, destination] {
    if (destination == destination_) return;
    destination_ = destination;
    const std::set<std::shared_ptr<Passage>> all = passages_;
    for (const std::shared_ptr<Passage>& passage : all) {
      if (passage->is_connected()) passage->close();
    }
  });
}

void Forwarder::accept(Acceptor::Socket client, Speaks protocol) {
  if (passages_.size() >= max_connections_) return;
  const auto passage = std::make_shared<Passage>(*this, std::move(client), protocol);
  passages_.insert(passage);
  passage->connect();
}

}  // namespace carillon::server
