// TimerClock: the clock that tells a timer service the time, and by which it sleeps: the machine's
// clocks, or one of your own.
#pragma once

#include <chrono>
#include <memory>

#include "carillon/wheel/saturated.h"

namespace carillon {

using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
// Takes durations of any unit; one beyond 292 years counts as 292 years.
using Nanoseconds = Saturating<std::chrono::nanoseconds>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

// The sleep of one timer thread.
class TimerAlarm {
 public:
  virtual ~TimerAlarm() = default;

  // Sleeps until the first of these: the steady clock is at `steady`; the wall clock is at `wall`;
  // somebody calls wake(); the wall clock is set, if `wall` is not WallTime::max(). May return
  // early, must not return late. Only the timer thread calls it.
  virtual void sleep_until(SteadyTime steady, WallTime wall) = 0;

  // As sleep_until(). The timer thread has timers that are due, but another thread is at work on
  // them, and will call wake() in a moment. A clock of your own that goes on when all timer threads
  // sleep must not count this as sleep.
  virtual void await_wake(SteadyTime steady, WallTime wall) { sleep_until(steady, wall); }

  // Ends the present sleep. If nobody sleeps, the next sleep ends at once. Any thread may call it.
  virtual void wake() noexcept = 0;

  // open() is called when a timer thread that sleeps on this alarm is about to start, close() when
  // it has ended. wake() may still be called after that.
  virtual void open() {}
  virtual void close() noexcept {}
};

class TimerClock {
 public:
  virtual ~TimerClock() = default;

  // Any thread may call both at any time. The steady clock never goes back; the wall clock may.
  virtual SteadyTime now() noexcept = 0;
  virtual WallTime wall_now() noexcept = 0;

  // Makes an alarm for a timer thread that is about to start. The alarm may outlive the clock
  // object.
  virtual std::unique_ptr<TimerAlarm> make_alarm() = 0;
};

// The machine's clocks: CLOCK_MONOTONIC, which stops while the machine is suspended, and
// CLOCK_REALTIME, which does not.
std::shared_ptr<TimerClock> machine_clock();

}  // namespace carillon
