// ManualClock: a clock that moves when a test says so, so that an hour of timers is tested in a
// millisecond, the same way each time.
//
//   auto clock = std::make_shared<carillon::ManualClock>();
//   carillon::TimerService timers({.clock = clock});
//   timers.schedule_after(30s, [&] { closed = true; });
//   clock->advance(29s);  EXPECT_FALSE(closed);
//   clock->advance(1s);   EXPECT_TRUE(closed);
#pragma once

#include <chrono>
#include <memory>

#include "carillon/timer/timer_clock.h"

namespace carillon {

// advance() stops at each moment at which a timer thread wants to wake, and goes on when all timer
// threads of this clock sleep again. So when it returns, everything due has been handed to the
// executor, in order of time; with TimerExecutor::timer_thread() it has also run.
//
// Thread-safe. advance() and settle() wait for timer threads, so a task that runs on one must not
// call them: they throw std::logic_error there. A task that blocks its timer thread blocks them.
class ManualClock final : public TimerClock {
 public:
  explicit ManualClock(Saturating<SteadyTime> steady = {}, Saturating<WallTime> wall = {});
  ~ManualClock() override;

  SteadyTime now() noexcept override;
  WallTime wall_now() noexcept override;
  std::unique_ptr<TimerAlarm> make_alarm() override;

  // Moves both clocks on, at most to the end of their ranges. Throws std::invalid_argument if
  // `step` is negative.
  void advance(Nanoseconds step);

  // Moves both clocks on in one step and returns at once, without waiting for timer threads. A task
  // that calls it has taken that long. Throws as advance() does.
  void pass(Nanoseconds step);

  // Sets the wall clock, forward or back; the steady clock does not change. Returns when all timer
  // threads sleep again.
  void set_wall(Saturating<WallTime> wall);

  // Returns when all timer threads sleep, and so have handed over everything that is due.
  void settle();

 private:
  struct State;
  class ManualAlarm;

  std::shared_ptr<State> state_;
};

}  // namespace carillon
