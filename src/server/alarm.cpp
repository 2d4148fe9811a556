// Alarm and WallClockWatch, each on a timerfd (alarm.h).
#include "server/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/asio/error.hpp>
#include <limits>
#include <utility>

namespace carillon::server {

namespace {

void read_expirations(boost::asio::posix::stream_descriptor& timer) {
  std::uint64_t expirations = 0;
  [[maybe_unused]] const auto read =
      ::read(timer.native_handle(), &expirations, sizeof expirations);
}

}  // namespace

Alarm::Alarm(boost::asio::io_context& io)
    : timer_(io, ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {
  watch();
}

void Alarm::set(std::optional<std::uint64_t> mono_ns) {
  if (!mono_ns || (armed_for_ && *armed_for_ <= *mono_ns)) return;
  armed_for_ = mono_ns;
  constexpr std::uint64_t kNsInSecond = 1'000'000'000;
  itimerspec at{};
  at.it_value.tv_sec = static_cast<time_t>(*mono_ns / kNsInSecond);
  at.it_value.tv_nsec = static_cast<long>(*mono_ns % kNsInSecond);
  if (*mono_ns == 0) at.it_value.tv_nsec = 1;  // 0 would disarm it
  ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void Alarm::watch() {
  timer_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) return;
                      read_expirations(timer_);
                      armed_for_.reset();
                      watch();
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
                      read_expirations(timer_);
                      arm();
                      on_set_();
                      watch();
                    });
}

}  // namespace carillon::server
