// Reports to the event loop when a client closes its half of a connection while earlier input from
// it is still unread.
//
// Why: while a reserve waits, the connection reads only up to a bound. If more input is there, the
// connection does not see that the stream has ended, and a job would go to a client that is gone.
// Boost.Asio does not report the end of a stream behind unread input, so this class has an epoll
// instance of its own. beanstalkd notices such a client at once, and clients may rely on that
// (server.differential compares the two).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

#include "carillon/queue/engine.h"

namespace carillon::server {

class HangUpWatch {
 public:
  HangUpWatch(boost::asio::io_context& io, std::function<void(queue::ClientId)> on_hang_up);

  // Calls on_hang_up(client) once, when the peer of the socket `fd` has closed its half. May be
  // called again before that. The watch ends when `fd` is closed.
  void watch(int fd, queue::ClientId client);

 private:
  void await();
  void report();

  boost::asio::posix::stream_descriptor epoll_;
  std::function<void(queue::ClientId)> on_hang_up_;
};

}  // namespace carillon::server
