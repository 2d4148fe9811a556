// Sleep: the awaitable by which a coroutine sleeps. TimerService::sleep_for() and sleep_until()
// return it.
//
//   co_await timers.sleep_for(10ms);
//   co_await timers.sleep_until(midnight);  // a system_clock time follows the wall clock
//   if (!co_await timers.sleep_for(1h, stop_token)) co_return;  // it was asked to stop
//
// Contracts
// ---------
//  - A sleep is a one-shot timer whose task resumes the coroutine. So what timer_service.h says of
//    one-shot timers holds, in particular that they are never early. The sleep begins with
//    co_await, not with the call of sleep_for().
//  - The coroutine resumes where tasks run: on the service's executor, also when it is asked to
//    stop.
//  - A coroutine that is asked to stop while it sleeps wakes at once. Either its time has come or
//    it was asked to stop: exactly one of the two is the outcome. If the token was asked to stop
//    before co_await, the coroutine goes on without a sleep.
//  - When the service is stopped, co_await throws TimersStopped in a coroutine that sleeps. The
//    thread that destroys the timers returned by stop(), or runs their tasks, resumes the coroutine
//    for that. So TimerService's destructor resumes all coroutines that sleep. The same happens if
//    an executor of your own destroys a DueTask. If the coroutine's promise lets an exception out
//    then, the program ends, because the coroutine runs inside a destructor; at any other time the
//    exception goes to TimerOptions::on_error.
//  - co_await throws what schedule_after() throws: TimersStopped, TooManyTimers, std::bad_alloc.
//  - A coroutine that sleeps may be destroyed, which cancels its timer. But nobody may resume it at
//    that moment: its time must not come, and nobody may ask it to stop, on another thread.
//  - Memory: the timer's block. Nothing is allocated on the heap, with a stop token neither.
#pragma once

#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "carillon/timer/detail/timer_block.h"
#include "carillon/timer/timer_handle.h"

namespace carillon {

class TimerService;

namespace detail {

class TimerCore;

// When a sleep ends, in ns: a delay that counts from co_await, or a time on a clock.
struct SleepTime {
  TimerService* service;
  TimerKind clock;
  bool is_delay;
  std::int64_t ns;
};

// A sleep under way, in the coroutine's frame.
class Sleeper {
 public:
  Sleeper(const SleepTime& time, std::stop_token stop) noexcept
      : time_(time), stop_(std::move(stop)) {}
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper();

  bool await_ready() const noexcept { return stop_.stop_requested(); }
  void await_suspend(std::coroutine_handle<> coroutine);

 protected:
  // Returns true if the time has come, false if the coroutine was asked to stop before. Throws
  // TimersStopped.
  bool outcome() const;

 private:
  enum class State { kAwake, kAsleep, kTimeHasCome, kServiceStopped };

  class Resume;  // the timer's task
  struct WakeUp {
    Sleeper& sleeper;
    void operator()() const noexcept;
  };

  static void wake(TimerHandle timer) noexcept;
  void time_has_come();
  void will_not_come() noexcept;
  std::int64_t now() const noexcept;

  const SleepTime time_;
  const std::stop_token stop_;
  State state_ = State::kAwake;
  std::int64_t deadline_ = 0;
  const TimerCore* core_ = nullptr;
  TimerHandle timer_;
  Resume* task_ = nullptr;  // follows the task when that is moved
  std::coroutine_handle<> coroutine_;
  std::optional<std::stop_callback<WakeUp>> wake_up_;
};

}  // namespace detail

// An awaitable: a value that says how long to sleep. It may be kept, and awaited many times while
// its service lives.
class [[nodiscard]] Sleep {
 public:
  explicit Sleep(const detail::SleepTime& time) noexcept : time_(time) {}

  auto operator co_await() const noexcept {
    struct Awaiter : detail::Sleeper {
      using Sleeper::Sleeper;
      void await_resume() const { static_cast<void>(outcome()); }
    };
    return Awaiter(time_, std::stop_token());
  }

 private:
  detail::SleepTime time_;
};

// A Sleep with a result: true if the time has come, false if the token was asked to stop before.
class [[nodiscard]] StoppableSleep {
 public:
  StoppableSleep(const detail::SleepTime& time, std::stop_token stop) noexcept
      : time_(time), stop_(std::move(stop)) {}

  auto operator co_await() const noexcept {
    struct Awaiter : detail::Sleeper {
      using Sleeper::Sleeper;
      bool await_resume() const { return outcome(); }
    };
    return Awaiter(time_, stop_);
  }

 private:
  detail::SleepTime time_;
  std::stop_token stop_;
};

}  // namespace carillon
