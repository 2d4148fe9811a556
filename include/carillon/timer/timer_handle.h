// TimerHandle: refers to one timer of a TimerService, to cancel it, to move it to another time, or
// to ask for its state.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "carillon/timer/detail/durations.h"
#include "carillon/timer/timer_clock.h"

namespace carillon {
namespace detail {
struct TimerBlock;
}

enum class TimerState {
  kPending,  // its time has not come
  kDue,      // its time has come, and it waits for the executor; it can still be cancelled
  kRunning,  // its task runs now
  kOver,     // it has run, was cancelled or was returned by stop(); or the handle is empty
};

// A value: copying, keeping and destroying a handle has no effect on the timer. As with a pointer,
// a const handle may cancel and move its timer: [timeout] { timeout.cancel(); }. A handle whose
// timer is over is safe to use for ever, also after the service has been destroyed, and never
// refers to another timer.
//
// Thread safety: any thread may call anything at any time, also for the same timer, and from inside
// tasks. Nothing here waits for another thread, except cancel_and_wait().
//
// In a child of fork(), the parent's timers do not run, and cannot be moved. cancel_and_wait()
// waits for no thread there: the parent's threads are not in the child.
class TimerHandle {
 public:
  TimerHandle() noexcept = default;  // empty

  // Returns true if this call has cancelled the timer: it will not run (again), and its task has
  // been destroyed. A periodic timer that is running ends after this run, and its task is destroyed
  // then. Returns false if the timer has run, is running (one-shot), or is over. Exactly one wins:
  // one call of cancel(), or the firing. O(1).
  bool cancel() const noexcept;

  // As cancel(). When it returns, the task is not running, and if the timer is over, the task's
  // destructor has ended, too: it waits for the thread that runs the task, and for one that has
  // cancelled the timer a moment ago. Returns at once if it is called from inside that run or that
  // destructor. (The task of a timer that stop() takes back belongs to the caller of stop(). This
  // does not wait for its destructor.)
  //
  // Do not hold a lock that the task may take, and do not let two tasks wait for each other.
  bool cancel_and_wait() const noexcept;

  // Returns true if the timer was moved: it fires at the new time, earlier or later, and not at the
  // old one. A periodic timer goes on from the new time. Returns false if the timer is due, running
  // or over. O(1); a move to later is a few stores. The delay counts on the clock by which the
  // timer was scheduled.
  //
  // Inside a run of a periodic timer, that run can move its own timer, to the time of the next run,
  // or cancel it, which ends it after the run. A task gets its handle as its argument:
  //
  //   timers.schedule_every(10s, [&](carillon::TimerHandle self) {
  //     if (!poll()) self.reschedule_after(100ms);  // and then 10 s after that
  //     if (finished()) self.cancel();
  //   });
  //
  // The handle that schedule_every() returns is no way to do so: the task may run before it is
  // stored.
  template <class Rep, class Period>
  bool reschedule_after(std::chrono::duration<Rep, Period> delay) const {
    return move_by(detail::to_ns(delay));
  }
  // The same with a time; they also return false if the timer is on the other clock.
  template <class Duration>
  bool reschedule_at(std::chrono::time_point<std::chrono::steady_clock, Duration> time) const {
    return move_to(detail::to_ns(time.time_since_epoch()), false);
  }
  template <class Duration>
  bool reschedule_at(std::chrono::time_point<std::chrono::system_clock, Duration> time) const {
    return move_to(detail::to_ns(time.time_since_epoch()), true);
  }

  TimerState state() const noexcept;

  explicit operator bool() const noexcept { return block_ != nullptr; }  // not empty
  friend bool operator==(const TimerHandle&, const TimerHandle&) noexcept = default;

  // Used by the service.
  // When a pending or due timer must fire, in ns of its clock.
  struct Due {
    std::int64_t time;
    bool on_wall_clock;
  };
  bool get_due(Due& due) const noexcept;
  TimerHandle(detail::TimerBlock& block, std::uint32_t generation) noexcept;

 private:
  friend struct std::hash<TimerHandle>;

  bool move_by(std::int64_t delay) const;
  bool move_to(std::int64_t time, bool on_wall_clock) const;
  void end_move(std::int64_t deadline) const noexcept;
  bool is_of_parent() const noexcept;

  detail::TimerBlock* block_ = nullptr;
  std::uint32_t generation_ = 0;
  std::uint32_t forks_ = 0;  // fork count when the handle was made; differs in a child
};

// Returns the handle of the timer whose task the calling thread is running, the innermost one; an
// empty handle outside of tasks. For code that a task calls; the task itself gets its handle as its
// argument, if it takes one.
TimerHandle this_timer() noexcept;

}  // namespace carillon

template <>
struct std::hash<carillon::TimerHandle> {
  std::size_t operator()(const carillon::TimerHandle& handle) const noexcept {
    const std::size_t block = std::hash<carillon::detail::TimerBlock*>()(handle.block_);
    return (block ^ handle.generation_) * 0x9e37'79b9'7f4a'7c15U;
  }
};
