// The machine's clocks, and their alarm. The alarm polls two descriptors: an event that wakes it,
// and a timer that notices when the wall clock is set.
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "carillon/timer/timer_clock.h"

namespace carillon {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t kSecond = 1'000'000'000;

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

timespec as_timespec(nanoseconds time) noexcept {
  const std::int64_t ns = std::max<std::int64_t>(time.count(), 0);
  timespec result{};
  result.tv_sec = static_cast<time_t>(ns / kSecond);
  result.tv_nsec = static_cast<long>(ns % kSecond);
  return result;
}

class MachineAlarm final : public TimerAlarm {
 public:
  MachineAlarm() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_.get() < 0)
      throw std::system_error(errno, std::generic_category(),
                              "carillon: no eventfd for a timer thread");
  }

  void sleep_until(SteadyTime steady, WallTime wall) override {
    nanoseconds left = steady == SteadyTime::max() ? nanoseconds::max()
                                                   : steady - std::chrono::steady_clock::now();
    if (wall != WallTime::max() && !watch_wall_clock(wall)) {
      // No descriptor is left to watch the wall clock by: look at it every second.
      left = std::min(left, std::clamp<nanoseconds>(wall - std::chrono::system_clock::now(),
                                                    nanoseconds(0), nanoseconds(kSecond)));
    }
    const timespec timeout = as_timespec(left);
    pollfd watched[2] = {{wake_.get(), POLLIN, 0}, {wall_.get(), POLLIN, 0}};
    const nfds_t count = wall != WallTime::max() && wall_.get() >= 0 ? 2 : 1;
    ::ppoll(watched, count, left == nanoseconds::max() ? nullptr : &timeout, nullptr);
    if ((watched[0].revents & POLLIN) != 0) empty(wake_);
    // The read fails with ECANCELED if the clock was set.
    if (count == 2 && watched[1].revents != 0) empty(wall_);
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    // Fails only if it has been woken 2^64 times already.
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

 private:
  static void empty(const Descriptor& descriptor) noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(descriptor.get(), &count, sizeof count);
  }

  bool watch_wall_clock(WallTime until) noexcept {
    if (wall_.get() < 0)
      wall_ = Descriptor(::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (wall_.get() < 0) return false;
    itimerspec when{};
    // A time of 0 would switch the timer off.
    when.it_value = as_timespec(std::max(until.time_since_epoch(), nanoseconds(1)));
    // ECANCELED means that the clock was set since the last call. The timer is set all the same.
    return ::timerfd_settime(wall_.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when,
                             nullptr) == 0 ||
           errno == ECANCELED;
  }

  Descriptor wake_;
  Descriptor wall_{-1};
};

class MachineClock final : public TimerClock {
 public:
  SteadyTime now() noexcept override { return std::chrono::steady_clock::now(); }
  WallTime wall_now() noexcept override { return std::chrono::system_clock::now(); }
  std::unique_ptr<TimerAlarm> make_alarm() override { return std::make_unique<MachineAlarm>(); }
};

}  // namespace

std::shared_ptr<TimerClock> machine_clock() {
  // Never destroyed: services may outlive main().
  static const auto* const clock =
      new std::shared_ptr<TimerClock>(std::make_shared<MachineClock>());
  return *clock;
}

}  // namespace carillon
