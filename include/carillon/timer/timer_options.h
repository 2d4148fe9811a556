// TimerOptions: how a TimerService is set up.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "carillon/timer/timer_clock.h"
#include "carillon/timer/timer_executor.h"

namespace carillon {

struct TimerOptions {
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  // Timers that are due within the same tick fire together, at its end. A longer tick means fewer
  // wake-ups and more lateness. At least 1 ns.
  Nanoseconds tick = std::chrono::milliseconds(1);

  TimerExecutor executor = TimerExecutor::timer_thread();

  // While this many timers are pending, another one is refused with TooManyTimers. The limit is
  // exact. Cost: scheduling a timer, and the end of a timer, each change a counter that all threads
  // share.
  std::size_t max_pending = kUnlimited;

  std::shared_ptr<TimerClock> clock = nullptr;  // null means machine_clock()

  // The timer thread's name. The pool's threads have this name with "-0", "-1" … behind it. The
  // system shows 15 characters.
  std::string name = "carillon";

  // The number of shards, each with wheels of its own, over which threads that schedule are spread;
  // it is rounded up to a power of two, 1024 at most. 0 means twice the number of processors,
  // between 4 and 64. Timers that one thread has scheduled for the same tick fire in the order of
  // scheduling.
  unsigned shards = 0;

  // Called with each exception that a task throws, on the thread that ran the task. An exception
  // that this function throws is dropped. If it is empty, the error goes to standard error, as one
  // line.
  std::function<void(std::exception_ptr)> on_error = nullptr;

  // A run that takes longer is counted, and reported to on_slow_task when it ends, on the thread
  // that ran it. 0 turns this off.
  Nanoseconds slow_task = {};
  std::function<void(std::chrono::nanoseconds took)> on_slow_task = nullptr;
};

// What a periodic timer does if its next time has passed when a run ends.
enum class MissedRuns {
  kSkip,   // skips all times that have passed; the later ones do not change
  kBurst,  // runs once for each time that has passed, without a pause
  kDelay,  // waits a whole period from now, and counts on from there
};

}  // namespace carillon
