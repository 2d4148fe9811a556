// Acceptor: accepting, the options of accepted sockets, and the pause after an error (acceptor.h).
#include "server/net/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>

#include <boost/asio/error.hpp>
#include <chrono>
#include <utility>

#include "server/net/clock.h"

namespace carillon::server {
namespace {

namespace asio = boost::asio;
using AnyStream = asio::generic::stream_protocol;

// While no descriptor is free, waiting connections stay in the kernel's queue. Trying again at once
// would spin.
constexpr std::chrono::milliseconds kPause{100};

int family_of(const ListeningSocket& socket) {
  if (socket.is_unix()) return AF_UNIX;
  return socket.bound().host.find(':') != std::string::npos ? AF_INET6 : AF_INET;
}

void prepare(Acceptor::Socket& socket, bool is_tcp) {
  boost::system::error_code ignored;  // if the client is gone again, the first read finds out
  socket.non_blocking(true, ignored);
  if (!is_tcp) return;
  socket.set_option(asio::detail::socket_option::boolean<IPPROTO_TCP, TCP_NODELAY>(true), ignored);
  // Finds clients whose machine vanished while a reserve waits.
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
}

}  // namespace

Acceptor::Acceptor(asio::io_context& io, ListeningSocket socket,
                   std::function<void(Socket)> on_socket)
    : socket_(std::move(socket)), acceptor_(io), pause_(io), on_socket_(std::move(on_socket)) {
  acceptor_.assign(AnyStream(family_of(socket_), 0), socket_.release());
  acceptor_.non_blocking(true);
}

void Acceptor::stop() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void Acceptor::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, Socket socket) {
    on_accept(error, std::move(socket));
  });
}

void Acceptor::on_accept(const boost::system::error_code& error, Socket socket) {
  if (!acceptor_.is_open()) return;
  if (!error) {
    prepare(socket, !socket_.is_unix());
    on_socket_(std::move(socket));
    return accept();
  }
  if (error == asio::error::connection_aborted) return accept();
  if (failures_.pass(read_mono())) {
    spdlog::error("cannot accept a connection on {}: {}; trying again", to_string(socket_.bound()),
                  error.message());
  }
  pause();
}

void Acceptor::pause() {
  pause_.expires_after(kPause);
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error) accept();
  });
}

}  // namespace carillon::server
