// Alarm on an Asio timer, WallClockWatch on a timerfd (alarm.h).
#include "server/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <chrono>
#include <limits>
#include <utility>

namespace carillon::server {

// std::chrono::steady_clock is CLOCK_MONOTONIC, the clock of the engine's wake-ups.
void Alarm::set(std::optional<std::uint64_t> mono_ns) {
  if (!mono_ns || (armed_for_ && *armed_for_ <= *mono_ns)) return;
  armed_for_ = mono_ns;
  constexpr auto kForEver = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto ns = static_cast<std::int64_t>(std::min(*mono_ns, kForEver));
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns)));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) armed_for_.reset();
  });
}

WallClockWatch::WallClockWatch(boost::asio::io_context& io, std::function<void()> on_set)
    : timer_(io, ::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC)),
      on_set_(std::move(on_set)) {
  arm();
  watch();
}

// The timer never expires, but the kernel cancels it when the wall clock is set, and that wakes the
// loop.
void WallClockWatch::arm() {
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<time_t>::max();
  ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never,
                    nullptr);
}

void WallClockWatch::watch() {
  timer_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) return;
                      std::uint64_t expirations = 0;
                      [[maybe_unused]] const auto read =
                          ::read(timer_.native_handle(), &expirations, sizeof expirations);
                      arm();
                      on_set_();
                      watch();
                    });
}

}  // namespace carillon::server
