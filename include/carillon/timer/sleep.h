// Sleep: what a coroutine awaits in order to sleep. TimerService::sleep_for() and sleep_until()
// return it.
//
//   co_await timers.sleep_for(10ms);
//   co_await timers.sleep_until(midnight);                               // a system_clock time follows the wall clock
//   if (!co_await timers.sleep_for(1h, stop_token)) co_return;           // false: somebody asked it to stop
//
// Contracts
// ---------
//  - A sleep is a one-shot timer whose task resumes the coroutine: what timer_service.h says of
//    those holds, never early in particular. It begins with co_await, not with the call of
//    sleep_for().
//  - The coroutine resumes where tasks run: on the service's executor, also when it is asked to
//    stop.
//  - Asked to stop, it wakes at once, if its time has not come by then: of the two, exactly one is
//    the outcome. If the token was asked before co_await, the coroutine goes on without having
//    slept.
//  - When the service is stopped, a coroutine that sleeps gets TimersStopped. It is resumed for
//    that by who drops the timers that stop() returned, or runs their tasks, on that thread: so
//    TimerService's destructor resumes all that sleep. The same if an executor of your own drops a
//    DueTask. What leaves the coroutine then, if its promise lets exceptions out, ends the program,
//    because a destructor runs it; at any other time it goes to on_error.
//  - co_await throws what schedule_after() throws: TimersStopped, TooManyTimers, std::bad_alloc.
//  - A coroutine that sleeps may be destroyed, which cancels its timer; but not while its time may
//    come, or somebody asks it to stop, on another thread: who destroys a coroutine must know that
//    nobody resumes it.
//  - Memory: the timer's block. Nothing is allocated; with a stop token neither.
#pragma once

#include <atomic>
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

// When a sleep ends: after a delay from co_await on, or at a time of a clock, in ns.
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
  // True: the time has come. False: it was asked to stop before. Throws TimersStopped.
  bool outcome() const;

 private:
  enum class State { kAwake, kAsleep, kTimeHasCome, kServiceStopped };

  class Resume;  // the timer's task
  struct WakeUp {
    Sleeper& sleeper;
    void operator()() const noexcept;
  };

  static constexpr unsigned kSubmitted = 1;
  static constexpr unsigned kAsked = 2;

  static void wake(TimerHandle timer) noexcept;
  bool wait_until_submitted() const noexcept;
  void time_has_come();
  void will_not_come() noexcept;
  std::int64_t now() const noexcept;

  const SleepTime time_;
  const std::stop_token stop_;
  State state_ = State::kAwake;
  std::int64_t deadline_ = 0;
  const TimerCore* core_ = nullptr;
  TimerHandle timer_;
  Resume* task_ = nullptr;  // wherever it is moved to
  std::coroutine_handle<> coroutine_;
  std::atomic<unsigned> stopping_{0};  // with a stop token only
  std::optional<std::stop_callback<WakeUp>> wake_up_;
};

}  // namespace detail

// An awaitable: a value that says how long to sleep. It may be kept and awaited many times, while
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

// The same, with a result: true if the time has come, false if the token was asked to stop before.
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
