// The machine's clocks, and their alarm. The alarm polls up to three descriptors: an event that
// wakes it, and a timer for each clock. The timers are set to a moment. A time-out would not do: if
// the process is stopped (SIGSTOP, a debugger, a frozen container), the kernel begins ppoll() again
// with what was left of it. The timer on the wall clock also notices when that clock is set.
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "carillon/timer/detail/deadline_descriptor.h"
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
    const bool watches_wall = wall != WallTime::max() && watch_wall_clock(wall);
    if (wall != WallTime::max() && !watches_wall) {
      // No descriptor is left to watch the wall clock by: check it every second.
      const nanoseconds left = std::clamp<nanoseconds>(wall - std::chrono::system_clock::now(),
                                                       nanoseconds(0), nanoseconds(kSecond));
      steady = std::min<SteadyTime>(steady, std::chrono::steady_clock::now() + left);
    }
    const bool ends = steady != SteadyTime::max();
    const bool is_over = ends && steady <= std::chrono::steady_clock::now();
    if (ends && !is_over && steady != set_to_) {
      deadline_.set(steady.time_since_epoch().count());
      set_to_ = steady;
    }
    // A descriptor of -1 is left out.
    pollfd watched[3] = {{wake_.get(), POLLIN, 0},
                         {ends ? deadline_.get() : -1, POLLIN, 0},
                         {watches_wall ? wall_.get() : -1, POLLIN, 0}};
    ::poll(watched, std::size(watched), is_over ? 0 : -1);
    if (watched[0].revents != 0) empty(wake_);
    // The read fails with ECANCELED if the clock was set.
    if (watched[2].revents != 0) empty(wall_);
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
    // ECANCELED means that the clock was set since the last call. The timer is set nevertheless.
    return ::timerfd_settime(wall_.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when,
                             nullptr) == 0 ||
           errno == ECANCELED;
  }

  Descriptor wake_;
  detail::DeadlineDescriptor deadline_;
  SteadyTime set_to_ = SteadyTime::max();  // what deadline_ is set to
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
