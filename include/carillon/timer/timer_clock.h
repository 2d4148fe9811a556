// TimerClock: where a timer service gets its time from, and sleeps by. The machine's clocks, or one
// of your own.
#pragma once

#include <chrono>
#include <memory>

namespace carillon {

using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

// What one timer thread sleeps on.
class Alarm {
 public:
  virtual ~Alarm() = default;

  // Sleeps until the steady clock is at `steady`, or the wall clock at `wall`, whichever comes
  // first, or somebody calls wake(), or the wall clock is set while `wall` is not WallTime::max().
  // May return early, must not return late. Only the timer thread calls it.
  virtual void sleep_until(SteadyTime steady, WallTime wall) = 0;

  // Ends the present sleep, or else the next one at once. Any thread.
  virtual void wake() noexcept = 0;

  // A timer thread that sleeps on this alarm is about to start, and has ended. wake() may still
  // come.
  virtual void open() {}
  virtual void close() noexcept {}
};

class TimerClock {
 public:
  virtual ~TimerClock() = default;

  // Both may be called by any thread at any time. The steady clock never goes back; the wall clock
  // may.
  virtual SteadyTime now() noexcept = 0;
  virtual WallTime wall_now() noexcept = 0;

  // An alarm for a timer thread that is about to start. It may outlive the clock object.
  virtual std::unique_ptr<Alarm> make_alarm() = 0;
};

// The machine's clocks: CLOCK_MONOTONIC, which stops while the machine is suspended, and
// CLOCK_REALTIME, which does not.
std::shared_ptr<TimerClock> machine_clock();

}  // namespace carillon
