// WheelService: the timers of one kind in one execution context, on a timing wheel.
//
// It is a service of the context, as Asio calls what a context has once. A lock guards the wheel.
// One alarm, a timer of Asio's, goes off at the wheel's next wake-up. It takes what is due from the
// wheel, and posts the handlers. While timers are pending, the alarm is set: the context has work.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <ratio>
#include <type_traits>
#include <utility>
#include <vector>

#include "carillon/asio/detail/timer_wait.h"
#include "carillon/asio/detail/wall_alarm.h"
#include "carillon/asio/net.h"
#include "carillon/require.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {
inline namespace CARILLON_ASIO_NAMES {
namespace asio_detail {

// A part of each timer object. The node is armed exactly while there are waits.
struct WaitEntry : TimerNode {
  WaitList waits;
};

// Converts between times of a clock and ticks of a wheel. Tick n begins n tick lengths after the
// clock's epoch; times before the epoch count as the epoch.
template <class Clock, class Period>
struct TickTimes {
  using Time = typename Clock::time_point;
  using Duration = typename Clock::duration;
  using Count = typename Duration::rep;
  using Units = std::ratio_divide<Period, typename Duration::period>;
  static_assert(std::is_integral_v<Count> && Units::den == 1,
                "a tick is a whole number of units of the clock");

  // Returns the tick that contains `time`.
  static Tick at(Time time) noexcept {
    const Count count = time.time_since_epoch().count();
    return count <= 0 ? 0 : static_cast<Tick>(count / Units::num);
  }
  // Returns the first tick that does not begin before `time`.
  static Tick not_before(Time time) noexcept {
    const Count count = time.time_since_epoch().count();
    return count <= 0 ? 0 : static_cast<Tick>((count - 1) / Units::num + 1);
  }
  // Returns the time at which `tick` begins, at most the end of the clock's range.
  static Time begin(Tick tick) noexcept {
    if (std::cmp_greater(tick, std::numeric_limits<Count>::max() / Units::num)) return Time::max();
    return Time(Duration(static_cast<Count>(tick) * static_cast<Count>(Units::num)));
  }
};

template <class Clock>
struct AlarmOf {
  using Type = net::basic_waitable_timer<Clock, net::wait_traits<Clock>, net::any_io_executor>;
};
#if defined(__linux__)
template <>
struct AlarmOf<std::chrono::system_clock> {
  using Type = WallAlarm;
};
#endif

template <class Clock, class Period, TimerSet Model>
class WheelService : public net::execution_context::service {
  using Times = TickTimes<Clock, Period>;
  using Time = typename Clock::time_point;

 public:
  // NOLINTNEXTLINE(readability-identifier-naming): Asio's name
  static inline net::execution_context::id id;

  explicit WheelService(net::execution_context& context)
      : service(context), wheel_(std::in_place, Times::at(Clock::now())) {}

  // Takes `wait`. Throws what the alarm throws, and std::bad_alloc; then nothing was started, and
  // the wait is the caller's.
  template <class Executor>
  void start(WaitEntry& entry, Time time, TimerWait& wait, const Executor& executor) {
    const std::lock_guard lock(mutex_);
    if (!entry.armed()) {
      const Tick tick = Times::not_before(time);
      wheel_->schedule(entry, Moment{tick});
      try {
        if (tick < alarm_at_) set_alarm(tick, executor);
      } catch (...) {
        wheel_->cancel(entry);
        throw;
      }
    }
    wait.entry = &entry;
    entry.waits.push(wait);
  }

  // Ends the first `most` waits of a timer with operation_aborted. Returns how many these are.
  std::size_t cancel(WaitEntry& entry,
                     std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept {
    WaitList cancelled;
    std::size_t count = 0;
    {
      const std::lock_guard lock(mutex_);
      for (; count < most && !entry.waits.empty(); ++count) take(entry.waits.pop(), cancelled);
      if (count > 0 && entry.waits.empty()) disarm(entry);
    }
    complete(cancelled, TimerWait::End::kCancelled);
    return count;
  }

  // The same for one wait. Does nothing if the wait is out already.
  void cancel(TimerWait& wait) noexcept {
    {
      const std::lock_guard lock(mutex_);
      WaitEntry* const entry = std::exchange(wait.entry, nullptr);
      if (entry == nullptr) return;
      entry->waits.remove(wait);
      if (entry->waits.empty()) disarm(*entry);
    }
    wait.complete(TimerWait::End::kCancelled);
  }

  // REQUIRES: `to` has no waits.
  void move(WaitEntry& from, WaitEntry& to) noexcept {
    const std::lock_guard lock(mutex_);
    CARILLON_REQUIRE(to.waits.empty());
    carillon::detail::NodeAccess::move(from, to);
    to.waits = std::exchange(from.waits, WaitList());
    to.waits.for_each([&](TimerWait& wait) { wait.entry = &to; });
  }

  // The context ends. Handlers are destroyed outside of the lock: they may own timers.
  void shutdown() noexcept override {
    WaitList rest;
    {
      const std::lock_guard lock(mutex_);
      alarm_.reset();
      alarm_at_ = kNever;
      wheel_->clear([&](TimerNode& node) { take_all(node, rest); });
    }
    while (!rest.empty()) rest.pop().drop();
  }

 private:
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();

  static void take(TimerWait& wait, WaitList& into) noexcept {
    wait.entry = nullptr;
    into.push(wait);
  }
  static void take_all(TimerNode& node, WaitList& into) noexcept {
    WaitList& waits = static_cast<WaitEntry&>(node).waits;
    while (!waits.empty()) take(waits.pop(), into);
  }
  static void complete(WaitList& waits, TimerWait::End how) noexcept {
    while (!waits.empty()) waits.pop().complete(how);
  }

  void disarm(WaitEntry& entry) noexcept {
    wheel_->cancel(entry);
    if (wheel_->empty()) stop_alarm();
  }
  void stop_alarm() noexcept {
    if (alarm_at_ == kNever) return;
    alarm_at_ = kNever;
    alarm_->cancel();
  }

  // The alarm needs an executor of the context: that of the first timer. Its handler does not run
  // there but at once, in a thread that runs the context.
  template <class Executor>
  void set_alarm(Tick tick, const Executor& executor) {
    if (!alarm_.has_value())
      alarm_.emplace(
          net::any_io_executor(net::prefer(executor, net::execution::outstanding_work.untracked)));
    set_alarm(tick);
  }
  void set_alarm(Tick tick) {
    alarm_at_ = kNever;  // if this throws
    alarm_->expires_at(Times::begin(tick));
    alarm_->async_wait(net::bind_executor(net::system_executor(), [this](Error cancelled) {
      if (!cancelled) look();
    }));
    alarm_at_ = tick;
  }

  // The alarm has gone off; or one has that was cancelled too late, which does no harm.
  void look() {
    WaitList due;
    WaitList refused;
    std::exception_ptr trouble;
    {
      const std::lock_guard lock(mutex_);
      if (!alarm_.has_value()) return;  // the context ends
      const std::optional<Tick> next = advance(due, refused);
      try {
        next.has_value() ? set_alarm(*next) : stop_alarm();
      } catch (...) {  // the next wait that is started tries again
        trouble = std::current_exception();
      }
    }
    complete(due, TimerWait::End::kExpired);
    complete(refused, TimerWait::End::kNoMemory);
    if (trouble != nullptr) std::rethrow_exception(trouble);
  }

  std::optional<Tick> advance(WaitList& due, WaitList& refused) noexcept {
    Tick now = Times::at(Clock::now());
    try {
      if (now < wheel_->now()) {
        if constexpr (Clock::is_steady) {
          now = wheel_->now();
        } else {
          begin_again(now, refused);
        }
      }
      wheel_->advance(now, [&](TimerNode& node) { take_all(node, due); });
      return wheel_->next_wakeup();
    } catch (const std::bad_alloc&) {
      // No memory to move timers down a level. No timer is lost; the next tick tries again.
      return now + 1;
    }
  }

  // The clock was set back to `now`. The hand of a wheel never goes back, so the timers go to a new
  // wheel. Throws std::bad_alloc, with nothing changed; a timer for which there is no memory later
  // than that is refused.
  void begin_again(Tick now, WaitList& refused) {
    std::vector<TimerNode*> timers;
    timers.reserve(wheel_->size());
    wheel_->clear([&](TimerNode& node) { timers.push_back(&node); });
    wheel_.emplace(now);
    for (TimerNode* timer : timers) {
      try {
        wheel_->schedule(*timer, timer->expiry());
      } catch (const std::bad_alloc&) {
        take_all(*timer, refused);
      }
    }
  }

  std::mutex mutex_;
  std::optional<Model> wheel_;  // never empty
  std::optional<typename AlarmOf<Clock>::Type> alarm_;
  Tick alarm_at_ = kNever;  // what the alarm is set to
};

}  // namespace asio_detail
}  // namespace CARILLON_ASIO_NAMES
}  // namespace carillon
