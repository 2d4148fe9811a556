// TimerOptions: how a TimerService is set up.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "carillon/timer/executor.h"
#include "carillon/timer/timer_clock.h"

namespace carillon {

struct TimerOptions {
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  // Timers due within the same tick fire together, at its end: the lateness that saves wake-ups. At
  // least 1 ns.
  std::chrono::nanoseconds tick = std::chrono::milliseconds(1);

  Executor executor = Executor::timer_thread();

  // With so many timers pending, another is refused with TooManyTimers. Exact; costs each schedule
  // and each end of a timer an atomic operation that all threads share.
  std::size_t max_pending = kUnlimited;

  std::shared_ptr<TimerClock> clock = nullptr;  // null: machine_clock()

  // The timer thread's name, and with "-0", "-1" … that of the pool's threads; the system shows 15
  // characters.
  std::string name = "carillon";

  // Threads that schedule are spread over so many wheels. 0: twice as many as processors, between 4
  // and 64. Timers due in the same tick fire in the order scheduled if they were scheduled by one
  // thread.
  unsigned shards = 0;

  // Gets what tasks throw, on the thread that ran the task. What it throws itself is dropped.
  // Empty: a line on standard error.
  std::function<void(std::exception_ptr)> on_error = nullptr;

  // A run that takes longer is counted, and reported to on_slow_task when it ends, on the thread
  // that ran it. 0: never.
  std::chrono::nanoseconds slow_task{0};
  std::function<void(std::chrono::nanoseconds took)> on_slow_task = nullptr;
};

// What a periodic timer does when its next time has passed before its task has ended.
enum class Missed {
  kSkip,   // leaves out the times that have passed; the others stay where they were
  kBurst,  // runs once for each, at once, until it has caught up
  kDelay,  // waits a whole period from now on, and counts from there
};

}  // namespace carillon
