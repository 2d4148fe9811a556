// WheelDescriptor: a wheel for your own event loop. It has one file descriptor, which is readable
// when timers are due. Linux only.
//
//   struct Connection : carillon::TimerNode { int socket; };
//
//   carillon::WheelDescriptor<> timers;
//   epoll_event event{.events = EPOLLIN, .data = {.fd = timers.descriptor()}};
//   epoll_ctl(epoll, EPOLL_CTL_ADD, timers.descriptor(), &event);
//
//   timers.schedule_after(connection, 30s);
//   for (;;) {
//     for (const epoll_event& event : wait(epoll)) {
//       if (event.data.fd == timers.descriptor()) {
//         timers.dispatch([](carillon::TimerNode& node) { drop(static_cast<Connection&>(node)); });
//       } else ...
//     }
//   }
//
// For any loop that waits for descriptors: epoll, poll, select, io_uring. Use it where timers and
// connections belong to one thread; TimerService is for many threads. Any TimerSet can be the
// model.
//
// Contracts
// ---------
//  - Timers belong to the caller, as with any TimerSet: the contracts in wheel/timer_set.h about
//    order, limits, re-entrancy and exceptions hold here.
//  - Never early: a timer fires at or after its time on the steady clock. Late by up to one tick
//    plus its slack, and by what the loop does meanwhile.
//  - The descriptor is level-triggered: readable while something is due. The loop need not read
//    from it: dispatch() makes it unreadable again. dispatch() may also be called at any other
//    time.
//  - One system call sets the descriptor's time. It is made when a timer is scheduled that is
//    earlier than all others, and at most once per dispatch(). Scheduling a later timer, cancelling
//    one and moving one to later make no system call. So if the earliest timer was cancelled, the
//    loop wakes once for nothing.
//  - A wake-up may come before a timer is due, when the wheel has something to cascade:
//    next_wakeup() of the model.
//  - An empty wheel does not wake the loop, except once after the cancelling of its last timer.
//
// Not thread-safe: it belongs to the thread of its loop. Neither copied nor moved.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "carillon/timer/detail/deadline_descriptor.h"
#include "carillon/timer/detail/durations.h"
#include "carillon/timer/detail/tick_scale.h"
#include "carillon/timer/timer_clock.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/saturated.h"
#include "carillon/wheel/slack.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

template <TimerSet Model = HierarchicalWheel<>>
class WheelDescriptor {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Timers that are due within the same tick fire together, at its end. Throws
  // std::invalid_argument if the tick is less than 1 ns, and std::system_error if there is no
  // descriptor left.
  explicit WheelDescriptor(Nanoseconds tick = std::chrono::milliseconds(1))
      : WheelDescriptor(tick, std::chrono::steady_clock::now()) {}
  // For a loop that has a time of its own, and for tests: time begins at `start`.
  template <std::convertible_to<TimePoint> Time>
  WheelDescriptor(Nanoseconds tick, Time start)
      : scale_(checked(tick)), model_(scale_.at(detail::to_ns(start.time_since_epoch()))) {}
  WheelDescriptor(const WheelDescriptor&) = delete;
  WheelDescriptor& operator=(const WheelDescriptor&) = delete;
  ~WheelDescriptor() = default;

  // The loop waits until this descriptor is readable.
  int descriptor() const noexcept { return descriptor_.get(); }

  // --- timers
  //
  // O(1). They throw what the model's operations throw.

  // It may fire anywhere in [time, time + slack]. A node that is armed is moved, as by
  // reschedule_at().
  void schedule_at(TimerNode& node, Saturating<TimePoint> time, Nanoseconds slack = {}) {
    const Tick tick = tick_for(time, slack);
    model_.schedule(node, Moment{tick});
    call_for(tick);
  }
  template <class Rep, class Period>
  void schedule_after(TimerNode& node, std::chrono::duration<Rep, Period> delay,
                      Nanoseconds slack = {}) {
    schedule_at(node, from_now(detail::to_ns(delay)), slack);
  }

  // `node` may be armed or not.
  void reschedule_at(TimerNode& node, Saturating<TimePoint> time, Nanoseconds slack = {}) {
    const Tick tick = tick_for(time, slack);
    model_.reschedule(node, Moment{tick});
    call_for(tick);
  }
  template <class Rep, class Period>
  void reschedule_after(TimerNode& node, std::chrono::duration<Rep, Period> delay,
                        Nanoseconds slack = {}) {
    reschedule_at(node, from_now(detail::to_ns(delay)), slack);
  }

  // Returns true if the timer was armed; it will not fire. Never makes a system call.
  bool cancel(TimerNode& node) noexcept { return model_.cancel(node); }

  // --- the loop

  // Calls on_expire(TimerNode&) for each timer that is due now, at most `limit` times; if more are
  // due, the descriptor stays readable. Returns how many timers fired. An exception from on_expire
  // is thrown on; the other timers fire in the next call.
  template <class OnExpire>
  std::size_t dispatch(OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    return dispatch_at(std::chrono::steady_clock::now(), std::forward<OnExpire>(on_expire), limit);
  }
  // The same for a loop that has read the clock already. A `now` before that of the last call
  // counts as the latter.
  template <std::convertible_to<TimePoint> Time, class OnExpire>
  std::size_t dispatch_at(Time now, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    const Tick to = std::max<Tick>(scale_.at(detail::to_ns(now.time_since_epoch())), model_.now());
    const Settle settle{*this, to};
    return model_.advance(to, std::forward<OnExpire>(on_expire), limit);
  }

  // Returns the time at which the descriptor becomes, or became, readable; nothing if no time is
  // set.
  std::optional<TimePoint> readable_at() const noexcept {
    if (told_ == kNever) return std::nullopt;
    return TimePoint(std::chrono::nanoseconds(scale_.begin(told_)));
  }

  // --- the model
  std::size_t size() const noexcept { return model_.size(); }
  bool empty() const noexcept { return model_.empty(); }

  // Disarms every timer and hands each to sink(TimerNode&), in no particular order.
  template <class Sink>
  void clear(Sink&& sink) {
    model_.clear(std::forward<Sink>(sink));
  }

  const Model& model() const noexcept { return model_; }

 private:
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();

  // At the end of a dispatch, also by an exception: sets the descriptor to the next time, which
  // also makes it unreadable.
  struct Settle {
    WheelDescriptor& timers;
    Tick now;
    bool nested;  // the model refuses it
    explicit Settle(WheelDescriptor& all, Tick to) noexcept
        : timers(all), now(to), nested(std::exchange(all.dispatching_, true)) {}
    Settle(const Settle&) = delete;
    Settle& operator=(const Settle&) = delete;
    ~Settle() {
      if (nested) return;
      timers.dispatching_ = false;
      const Tick next = timers.model_.next_wakeup().value_or(kNever);
      if (next < timers.told_ || timers.told_ <= now) timers.tell(next);
    }
  };

  static std::int64_t checked(Nanoseconds tick) {
    if (tick.count() >= 1) return tick.count();
    throw std::invalid_argument("carillon: the tick of a WheelDescriptor is " +
                                std::to_string(tick.count()) + " ns; it must be at least 1 ns");
  }

  static TimePoint from_now(std::int64_t delay) noexcept {
    const std::int64_t now = detail::to_ns(std::chrono::steady_clock::now().time_since_epoch());
    return TimePoint(std::chrono::nanoseconds(detail::add_ns(now, delay)));
  }

  // The first tick that does not begin before `time`; with slack, the cheapest of the ticks from
  // there on (slack.h).
  Tick tick_for(TimePoint time, Nanoseconds slack) const noexcept {
    const Tick tick = scale_.not_before(detail::to_ns(time.time_since_epoch()));
    return slack.count() < scale_.tick()
               ? tick
               : relaxed_expiry(tick, static_cast<Tick>(slack.count() / scale_.tick()));
  }

  void call_for(Tick tick) noexcept {
    if (tick < told_ && !dispatching_) tell(tick);
  }
  void tell(Tick tick) noexcept {
    if (tick == kNever) {
      descriptor_.never();
    } else {
      descriptor_.set(scale_.begin(tick));
    }
    told_ = tick;
  }

  detail::DeadlineDescriptor descriptor_;
  const detail::TickScale scale_;
  Model model_;
  Tick told_ = kNever;  // the tick that the descriptor is set to
  bool dispatching_ = false;
};

}  // namespace carillon
