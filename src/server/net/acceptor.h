// Accepts connections on one listening socket and hands each to the event loop, which owns one
// Acceptor for each socket that the server listens on.
//
// When the process has no free descriptor, the acceptor logs that, waits 100 ms and tries again.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>

#include "base/log_throttle.h"
#include "server/net/listening_socket.h"

namespace carillon::server {

class Acceptor {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // `on_socket` gets each new connection, non-blocking, and for TCP without Nagle's delay.
  Acceptor(boost::asio::io_context& io, ListeningSocket socket,
           std::function<void(Socket)> on_socket);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void start() { accept(); }
  void stop();

  const ListeningSocket& socket() const { return socket_; }

 private:
  void accept();
  void on_accept(const boost::system::error_code& error, Socket socket);
  void pause();

  ListeningSocket socket_;
  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
  boost::asio::steady_timer pause_;
  std::function<void(Socket)> on_socket_;
  base::LogThrottle failures_;
};

}  // namespace carillon::server
