// WheelQueue: asio's timer queue, which holds the timers of one execution context, as a timing
// wheel.
#pragma once

#include <algorithm>
#include <boost/asio/detail/chrono_time_traits.hpp>
#include <boost/asio/detail/op_queue.hpp>
#include <boost/asio/detail/timer_queue.hpp>
#include <boost/asio/detail/timer_queue_base.hpp>
#include <boost/asio/detail/wait_op.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/version.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <ratio>
#include <type_traits>
#include <utility>

#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

// Asio calls these types and functions by their names.
// NOLINTBEGIN(readability-identifier-naming)
namespace carillon {

// The traits of wheel_timer, as asio::wait_traits are those of asio::steady_timer. `Base`: the
// wait_traits of the clock.
template <class Clock, class TickPeriod, TimerSet Model, class Base>
struct wheel_traits : Base {};

namespace detail {

// Converts between times of a clock and ticks of a wheel. Tick n begins n tick lengths after the
// clock's epoch; times before the epoch count as the epoch.
template <class Clock, class Period>
struct TickTimes {
  using time_point = typename Clock::time_point;
  using duration = typename Clock::duration;
  using Count = typename duration::rep;
  using Units = std::ratio_divide<Period, typename duration::period>;
  static_assert(Clock::is_steady,
                "the hand of a wheel never goes back, so its clock must not either");
  static_assert(std::is_integral_v<Count> && Units::den == 1,
                "a tick is a whole number of units of the clock");

  // Returns the tick that contains `time`.
  static Tick at(time_point time) noexcept {
    const Count count = time.time_since_epoch().count();
    return count <= 0 ? 0 : static_cast<Tick>(count / Units::num);
  }
  // Returns the first tick that does not begin before `time`.
  static Tick not_before(time_point time) noexcept {
    const Count count = time.time_since_epoch().count();
    return count <= 0 ? 0 : static_cast<Tick>((count - 1) / Units::num + 1);
  }
  // Returns the time at which `tick` begins, at most the end of the clock's range.
  static time_point begin(Tick tick) noexcept {
    if (std::cmp_greater(tick, std::numeric_limits<Count>::max() / Units::num))
      return time_point::max();
    return time_point(duration(static_cast<Count>(tick) * static_cast<Count>(Units::num)));
  }
};

// Has the interface of boost::asio::detail::timer_queue. The reactor calls every function under its
// lock.
template <class Traits, class Period, TimerSet Model>
class WheelQueue : public boost::asio::detail::timer_queue_base {
  using Times = TickTimes<typename Traits::clock_type, Period>;
  using Operations = boost::asio::detail::op_queue<boost::asio::detail::operation>;
  using WaitOp = boost::asio::detail::wait_op;

 public:
  using time_type = typename Traits::time_type;
  using duration_type = typename Traits::duration_type;

  // Asio keeps one of these in each timer object. The node is armed exactly while waits are queued.
  class per_timer_data : TimerNode {
    friend class WheelQueue;
    boost::asio::detail::op_queue<WaitOp> waits_;
  };

  WheelQueue() : wheel_(Times::at(Traits::now())) {}
  ~WheelQueue() override = default;

  // Does nothing if the model has no reserve().
  void reserve(std::size_t timers) {
    if constexpr (requires { wheel_.reserve(timers); }) {
      if (timers > 0) wheel_.reserve(timers);
    }
  }

  // Returns true if the reactor must be woken, because the timer is due before earliest_, until
  // which the reactor may sleep.
  bool enqueue_timer(const time_type& time, per_timer_data& timer, WaitOp* wait) {
    bool earlier = false;
    if (!timer.armed()) {
      const Tick tick = Times::not_before(time);
      wheel_.schedule(timer, tick);  // may throw, so nothing is changed before
      earlier = tick < earliest_;
      if (earlier) earliest_ = tick;
    }
    timer.waits_.push(wait);
    return earlier;
  }

  bool empty() const override { return wheel_.empty(); }
  long wait_duration_msec(long most) const override {
    return wait_for(most, &Wait::total_milliseconds, std::milli{});
  }
  long wait_duration_usec(long most) const override {
    return wait_for(most, &Wait::total_microseconds, std::micro{});
  }

  void get_ready_timers(Operations& ready) override {
    const Tick now = std::max(Times::at(Traits::now()), wheel_.now());
    const auto complete = [&](TimerNode& node) {
      auto& waits = static_cast<per_timer_data&>(node).waits_;
      while (WaitOp* wait = waits.front()) {
        waits.pop();
        wait->ec_ = boost::system::error_code();
        ready.push(wait);
      }
    };
    try {
      wheel_.advance(now, complete);
      earliest_ = wheel_.next_wakeup().value_or(kNever);
    } catch (const std::bad_alloc&) {
      // No memory to move timers down a level. No timer is lost; the next tick tries again.
      earliest_ = now + 1;
    }
  }

  // Called when the context ends.
  void get_all_timers(Operations& all) override {
    wheel_.clear([&](TimerNode& node) { all.push(static_cast<per_timer_data&>(node).waits_); });
  }

  std::size_t cancel_timer(per_timer_data& timer, Operations& cancelled,
                           std::size_t most = std::numeric_limits<std::size_t>::max()) {
    std::size_t count = 0;
    for (; count < most && timer.waits_.front() != nullptr; ++count) cancel_first(timer, cancelled);
    if (timer.waits_.empty()) wheel_.cancel(timer);
    return count;
  }

  void cancel_timer_by_key(per_timer_data* timer, Operations& cancelled, void* key) {
    boost::asio::detail::op_queue<WaitOp> others;
    while (WaitOp* wait = timer->waits_.front()) {
      if (wait->cancellation_key_ == key) {
        cancel_first(*timer, cancelled);
      } else {
        timer->waits_.pop();
        others.push(wait);
      }
    }
    timer->waits_.push(others);
    if (timer->waits_.empty()) wheel_.cancel(*timer);
  }

  // REQUIRES: `target` has no waits.
  void move_timer(per_timer_data& target, per_timer_data& source) {
    if (&target == &source) return;
    target.waits_.push(source.waits_);
    carillon::detail::NodeAccess::move(source, target);
  }

 private:
  using Wait = decltype(Traits::to_posix_duration(duration_type()));

  static constexpr Tick kNever = std::numeric_limits<Tick>::max();

  static void cancel_first(per_timer_data& timer, Operations& cancelled) {
    WaitOp* const wait = timer.waits_.front();
    timer.waits_.pop();
    wait->ec_ = boost::asio::error::operation_aborted;
    cancelled.push(wait);
  }

  // Returns how many Units are left until the tick earliest_ begins, at most `most`. Rounded up: if
  // the reactor woke a moment early, it would find nothing due and sleep again.
  template <class Unit>
  long wait_for(long most, std::int64_t (Wait::*total)() const, Unit) const {
    if (earliest_ == kNever) return most;
    const Wait wait =
        Traits::to_posix_duration(Traits::subtract(Times::begin(earliest_), Traits::now()));
    if (wait.ticks() <= 0) return 0;
    const std::int64_t units = (wait.*total)();
    return units >= most ? most : static_cast<long>(units) + 1;
  }

  Model wheel_;
  Tick earliest_ = kNever;  // no timer is due before; the reactor has been told
};

}  // namespace detail
}  // namespace carillon

namespace boost::asio::detail {

template <class Clock, class Period, class Model, class Base>
using wheel_time_traits =
    chrono_time_traits<Clock, carillon::wheel_traits<Clock, Period, Model, Base>>;

#if BOOST_ASIO_VERSION < 103500
template <class Clock, class Period, class Model, class Base>
class timer_queue<chrono_time_traits<Clock, carillon::wheel_traits<Clock, Period, Model, Base>>>
    : public carillon::detail::WheelQueue<wheel_time_traits<Clock, Period, Model, Base>, Period,
                                          Model> {};
#else
// Since Asio 1.35 (Boost 1.89) the queue gets an allocator, and the number of timers to reserve
// memory for.
template <class Clock, class Period, class Model, class Base, class Allocator>
class timer_queue<chrono_time_traits<Clock, carillon::wheel_traits<Clock, Period, Model, Base>>,
                  Allocator>
    : public carillon::detail::WheelQueue<wheel_time_traits<Clock, Period, Model, Base>, Period,
                                          Model> {
 public:
  timer_queue(const Allocator&, std::size_t timers) { this->reserve(timers); }
};
#endif

}  // namespace boost::asio::detail
// NOLINTEND(readability-identifier-naming)
