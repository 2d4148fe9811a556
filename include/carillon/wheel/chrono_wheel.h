// ChronoWheel: a wheel whose times are of std::chrono. For owners who would rather not count ticks.
//
//   using namespace std::chrono;
//   carillon::ChronoWheel<milliseconds> wheel(steady_clock::now());
//   wheel.schedule_after(session, 30s);
//   wheel.schedule_at(report, steady_clock::now() + 5min, 10s);      // within 10 s after that
//   ...
//   wheel.advance(steady_clock::now(), [](carillon::TimerNode& node) { ... });
//   sleep_until(wheel.next_wakeup());
//
// A tick is one Resolution, counted from the epoch of the clock. Times are rounded so that no timer
// is early. The wheel asks no clock: as with any TimerSet, time is what the owner passes to
// advance(). In an event loop that waits for descriptors, WheelDescriptor (carillon/timer) also
// wakes the loop. The 60-second, 60-minute wheel that looks like a clock is ClockWheel
// (clock_wheel.h).
//
// Contracts: those of TimerSet (timer_set.h), and
//  - Never early: a timer fires in an advance to its time or later. It is late by less than one
//    Resolution, its slack, and what the owner waits.
//  - Delays count from now(), which is the time that the last advance() was told; inside on_expire,
//    that the running one was told. An owner who has been busy since then passes a time.
//  - Times before the clock's epoch count as the epoch. Durations and times of any unit are taken;
//    one beyond the range of the clock becomes the end of the range (saturated.h).
//  - A nested advance() or clear() throws std::logic_error and changes nothing.
//
// Not thread-safe. Each call costs what it costs the model, and a division.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/saturated.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

template <class Resolution = std::chrono::milliseconds, class Clock = std::chrono::steady_clock,
          TimerSet Model = HierarchicalWheel<>>
class ChronoWheel {
 public:
  using Duration = typename Clock::duration;
  using TimePoint = typename Clock::time_point;

  static constexpr Duration kTick = Resolution(1);
  static_assert(kTick > Duration::zero(), "the clock is too coarse for this resolution");
  static_assert(std::integral<typename Duration::rep>, "the clock counts in integers");

  template <std::convertible_to<TimePoint> Time>
  explicit ChronoWheel(Time start)
      : model_(tick_before(saturated<TimePoint>(start))), now_(saturated<TimePoint>(start)) {}

  // They throw what the model throws. A timer with slack may fire anywhere in [time, time + slack].
  void schedule_at(TimerNode& node, Saturating<TimePoint> time, Saturating<Duration> slack = {}) {
    model_.schedule(node, Moment{tick_from(time)}, whole_ticks(slack));
  }
  void schedule_after(TimerNode& node, Saturating<Duration> delay,
                      Saturating<Duration> slack = {}) {
    schedule_at(node, saturated_sum(now_, delay.value()), slack);
  }

  // `node` may be armed or not.
  void reschedule_at(TimerNode& node, Saturating<TimePoint> time, Saturating<Duration> slack = {}) {
    if (whole_ticks(slack) != 0) return schedule_at(node, time, slack);
    model_.reschedule(node, Moment{tick_from(time)});
  }
  void reschedule_after(TimerNode& node, Saturating<Duration> delay,
                        Saturating<Duration> slack = {}) {
    reschedule_at(node, saturated_sum(now_, delay.value()), slack);
  }

  // Returns true if the timer was armed; it will not fire.
  bool cancel(TimerNode& node) noexcept { return model_.cancel(node); }

  // Calls on_expire(TimerNode&) for each timer due at or before `to`, at most `limit`. Returns how
  // many fired. Throws std::invalid_argument if `to` is before now(), and what on_expire throws.
  template <std::convertible_to<TimePoint> Time, class OnExpire>
  std::size_t advance(Time time, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    const Busy busy(*this, "advance");
    const auto to = saturated<TimePoint>(time);
    if (to < now_)
      CARILLON_THROW std::invalid_argument("carillon: advance() of a ChronoWheel would go back");
    now_ = to;
    return model_.advance(tick_before(to), std::forward<OnExpire>(on_expire), limit);
  }

  // A time before which no timer fires; none if no timer is pending.
  std::optional<TimePoint> next_wakeup() const noexcept {
    const std::optional<Tick> tick = model_.next_wakeup();
    if (!tick) return std::nullopt;
    return *tick > ticks(Duration::max()) ? TimePoint::max()
                                          : TimePoint(static_cast<Rep>(*tick) * kTick);
  }

  TimePoint now() const noexcept { return now_; }
  std::size_t size() const noexcept { return model_.size(); }
  bool empty() const noexcept { return model_.empty(); }

  // Disarms every timer and hands each to sink(TimerNode&), in no particular order.
  template <class Sink>
  void clear(Sink&& sink) {
    const Busy busy(*this, "clear");
    model_.clear(std::forward<Sink>(sink));
  }

  const Model& model() const noexcept { return model_; }

 private:
  using Rep = typename Duration::rep;

  // Lives within advance() and clear(). The model refuses a nested call, too, but now_ must not
  // have been changed by then.
  struct Busy {
    bool& busy;
    Busy(ChronoWheel& wheel, const char* call) : busy(wheel.busy_) {
      if (busy) {
        CARILLON_THROW std::logic_error(
            std::string("carillon: ") + call +
            "() of a ChronoWheel was called from inside on_expire or clear()");
      }
      busy = true;
    }
    ~Busy() { busy = false; }
  };

  static constexpr Tick ticks(Duration duration) noexcept {
    return static_cast<Tick>(duration / kTick);
  }

  // The last tick that does not begin after `time`.
  static constexpr Tick tick_before(TimePoint time) noexcept {
    return ticks(std::max(time.time_since_epoch(), Duration::zero()));
  }

  // The first tick that does not begin before `time`.
  static constexpr Tick tick_from(TimePoint time) noexcept {
    const Duration since = std::max(time.time_since_epoch(), Duration::zero());
    return ticks(since) + (since % kTick == Duration::zero() ? 0 : 1);
  }

  static constexpr Tick whole_ticks(Duration slack) noexcept {
    return slack <= Duration::zero() ? 0 : ticks(slack);
  }

  Model model_;
  TimePoint now_;
  bool busy_ = false;
};

}  // namespace carillon
