// HangUpWatch, on an epoll instance that waits for EPOLLRDHUP (hang_up_watch.h).
#include "server/net/hang_up_watch.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <utility>

namespace carillon::server {

HangUpWatch::HangUpWatch(boost::asio::io_context& io,
                         std::function<void(queue::ClientId)> on_hang_up)
    : epoll_(io, ::epoll_create1(EPOLL_CLOEXEC)), on_hang_up_(std::move(on_hang_up)) {
  await();
}

void HangUpWatch::watch(int fd, queue::ClientId client) {
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLONESHOT;
  event.data.u64 = client;
  const int epoll = epoll_.native_handle();
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST)
    ::epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

void HangUpWatch::await() {
  epoll_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) return;
                      report();
                      await();
                    });
}

void HangUpWatch::report() {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.native_handle(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) on_hang_up_(events[static_cast<std::size_t>(i)].data.u64);
}

}  // namespace carillon::server
