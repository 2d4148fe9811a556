// The exceptions by which a TimerService refuses a timer.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace carillon {

// TimerOptions::max_pending timers are pending already. The timer was not scheduled, and its task
// has been destroyed.
class TooManyTimers : public std::runtime_error {
 public:
  TooManyTimers(std::size_t max_pending, std::size_t pending)
      : std::runtime_error("carillon: a timer was refused: " + std::to_string(pending) +
                           " timers are pending, and max_pending is " +
                           std::to_string(max_pending)),
        max_(max_pending),
        pending_(pending) {}

  std::size_t max_pending() const noexcept { return max_; }
  std::size_t pending() const noexcept { return pending_; }  // when it was refused

 private:
  std::size_t max_;
  std::size_t pending_;
};

// stop() or drain() has been called. The timer was not scheduled, and its task has been destroyed.
// A coroutine that was waiting for a time gets this error, so that it ends (sleep.h,
// with_timeout.h).
class TimersStopped : public std::runtime_error {
 public:
  TimersStopped()
      : std::runtime_error(
            "carillon: a timer was refused, or a wait ended early: its service was stopped, or its "
            "executor dropped the task") {}
};

// The service was used before fork(), and this is a child: the service's threads are in the parent
// alone. Make a new service in the child, or use the service for the first time after fork().
class TimersForked : public std::logic_error {
 public:
  TimersForked()
      : std::logic_error(
            "carillon: a timer service that was used before fork() has no threads in the child; "
            "make a new one there") {}
};

}  // namespace carillon
