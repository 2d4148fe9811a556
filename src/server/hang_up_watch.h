// Notices that clients have closed their half of a connection while what they sent before is still
// unread.
//
// A connection whose reserve waits is not read beyond a bound, so it may never come to the end of
// the stream; but the client that has closed it is to be answered, or forgotten. Boost.Asio has no
// event for that, hence an epoll instance of our own beside its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

#include "carillon/queue/engine.h"

namespace carillon::server {

class HangUpWatch {
 public:
  HangUpWatch(boost::asio::io_context& io, std::function<void(queue::ClientId)> on_hang_up);

  // Calls on_hang_up(client) once, when the peer of the socket `fd` has closed its half. Until then
  // it may be called again. The watch ends when `fd` is closed.
  void watch(int fd, queue::ClientId client);

 private:
  void await();
  void report();

  boost::asio::posix::stream_descriptor epoll_;
  std::function<void(queue::ClientId)> on_hang_up_;
};

}  // namespace carillon::server
