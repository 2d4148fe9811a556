// Interval: for a coroutine, what a periodic timer is for a task: one tick after the other, at a
// fixed rate.
//
//   carillon::Interval interval(timers, {.period = 10s, .first = 0s});
//   for (;;) {  // TimersStopped ends it, when the service is stopped
//     co_await interval.tick();
//     report();
//   }
//   while (co_await interval.tick(token)) report();  // until it is asked to stop
//
// Why: a loop that sleeps for a period after its work drifts, by as long as the work takes.
//
// Contracts
// ---------
//  - tick() returns a sleep (sleep.h): a TimerSleep, or with a stop token a StoppableSleep. So all
//    that is said there holds, in Asio's coroutines too (asio/sleep.h), and
//    with_timeout(timers, interval.tick(), 1s) waits for at most a second.
//  - The times are those of schedule_every() with the same Every (timer_service.h): `first` from
//    the construction (one period if it is empty), then whole periods from there, on the steady
//    clock. Each tick may be late by the slack. If the next time has passed when tick() is called,
//    MissedRuns decides.
//  - A tick that was given up before its time comes again: tick() gives the same time until that
//    has passed.
//
// Thread safety: none; an interval belongs to one coroutine. It must not outlive the service.
#pragma once

#include <cstdint>
#include <stop_token>
#include <utility>

#include "carillon/timer/sleep.h"
#include "carillon/timer/timer_service.h"

namespace carillon {

class Interval {
 public:
  // Throws std::invalid_argument if the period is not positive.
  Interval(TimerService& timers, const Every& every);

  // Moves on to the next time, and returns the sleep until then.
  TimerSleep tick() noexcept { return TimerSleep(next()); }
  StoppableSleep tick(std::stop_token stop) noexcept {
    return StoppableSleep(next(), std::move(stop));
  }

  // The next tick comes one period from now, and the others after it.
  void reset() noexcept;

 private:
  std::int64_t now() const noexcept;
  detail::SleepTime next() noexcept;

  TimerService* timers_;
  Every every_;
  std::int64_t due_;        // ns of the steady clock
  bool was_given_ = false;  // due_ was the time of a tick
};

}  // namespace carillon
