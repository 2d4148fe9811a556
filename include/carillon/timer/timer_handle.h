// TimerHandle: the name of one timer of a TimerService, by which it is cancelled, moved and asked
// after.
#pragma once

#include <chrono>
#include <cstdint>

#include "carillon/timer/detail/durations.h"
#include "carillon/timer/timer_clock.h"

namespace carillon {
namespace detail {
struct TimerBlock;
}

enum class TimerState {
  kPending,  // waits for its time
  kDue,  // its time has come, and it waits for its turn with the executor; can still be cancelled
  kRunning,  // its task runs now
  kOver,     // it has run, was cancelled or was returned by stop(); or the handle is empty
};

// A value: copy it, keep it, lose it; the timer does not mind. Once its timer is over a handle is
// harmless for ever, also after the service has been destroyed, and never means another timer.
//
// Thread safety: any thread may call anything at any time, on the same timer too, in particular
// from inside tasks. Nothing here waits for another thread, except cancel_and_wait().
class TimerHandle {
 public:
  TimerHandle() noexcept = default;  // empty

  // True: it will never run (again), and its task has been destroyed; a periodic timer that is
  // running ends after this run, and its task is destroyed then. False: it has run, is running, or
  // is over. Of all calls to cancel(), and firing, exactly one wins. O(1).
  bool cancel() noexcept;

  // As cancel(), and if the task is running now, returns when that run has ended and, of a timer
  // that is over by then, the task has been destroyed. Called from inside that very run, returns at
  // once.
  //
  // It waits for a task. So do not hold a lock which that task may want; nor may two tasks wait for
  // each other.
  bool cancel_and_wait() noexcept;

  // True: it fires at the new time, earlier or later, and not at the old one. A periodic timer goes
  // on from there. False: it is due, running or over. O(1); a move to later is a few stores. The
  // new time is on the clock by which the timer was scheduled.
  template <class Rep, class Period>
  bool reschedule_after(std::chrono::duration<Rep, Period> delay) {
    return move_by(detail::to_ns(delay));
  }
  // False, too, if the timer is on the other clock.
  template <class Duration>
  bool reschedule_at(std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
    return move_to(detail::to_ns(time.time_since_epoch()), false);
  }
  template <class Duration>
  bool reschedule_at(std::chrono::time_point<std::chrono::system_clock, Duration> time) {
    return move_to(detail::to_ns(time.time_since_epoch()), true);
  }

  TimerState state() const noexcept;

  explicit operator bool() const noexcept { return block_ != nullptr; }  // not empty
  friend bool operator==(const TimerHandle&, const TimerHandle&) noexcept = default;

  // For the service.
  TimerHandle(detail::TimerBlock& block, std::uint32_t generation) noexcept
      : block_(&block), generation_(generation) {}

 private:
  bool move_by(std::int64_t delay);
  bool move_to(std::int64_t time, bool on_wall_clock);
  void end_move(std::int64_t deadline) noexcept;

  detail::TimerBlock* block_ = nullptr;
  std::uint32_t generation_ = 0;
};

}  // namespace carillon
