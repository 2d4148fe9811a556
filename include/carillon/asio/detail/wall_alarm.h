// WallAlarm: asio::system_timer that also goes off when the wall clock is set. Asio sleeps by the
// steady clock, and reads the wall clock only every 5 minutes. Linux only.
#pragma once

#if defined(__linux__)
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

#include "carillon/asio/net.h"
#include "carillon/wheel/saturated.h"

namespace carillon {
inline namespace CARILLON_ASIO_NAMES {
namespace asio_detail {

class WallAlarm {
  using Clock = std::chrono::system_clock;

 public:
  // Throws std::system_error if no descriptor is left.
  explicit WallAlarm(const net::any_io_executor& executor) : descriptor_(executor, open()) {}

  // Ends the present wait with an error.
  void expires_at(Clock::time_point time) {
    descriptor_.cancel();
    using std::chrono::nanoseconds;
    // A time of 0 would switch the timer off.
    const auto ns =
        std::max<std::int64_t>(saturated<nanoseconds>(time.time_since_epoch()).count(), 1);
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    // Fails with ECANCELED if the clock was set since the last call. The timer is set nevertheless.
    ::timerfd_settime(descriptor_.native_handle(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET,
                      &when, nullptr);
  }

  template <class Handler>
  void async_wait(Handler&& handler) {
    descriptor_.async_wait(net::posix::descriptor_base::wait_read, std::forward<Handler>(handler));
  }
  void cancel() { descriptor_.cancel(); }

 private:
  static int open() {
    const int descriptor = ::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (descriptor < 0)
      throw std::system_error(errno, std::generic_category(), "carillon: no timerfd for a wheel");
    return descriptor;
  }

  net::posix::basic_stream_descriptor<net::any_io_executor> descriptor_;
};

}  // namespace asio_detail
}  // namespace CARILLON_ASIO_NAMES
}  // namespace carillon
#endif
