// TimerSleep: the awaitable by which a coroutine sleeps. TimerService::sleep_for() and
// sleep_until() return it; with a stop token they return a StoppableSleep.
//
//   for (;;) {  // TimersStopped ends it, when the service is stopped
//     co_await timers.sleep_for(10ms);
//     poll();
//   }
//   co_await timers.sleep_until(midnight);           // follows the wall clock
//   while (co_await timers.sleep_for(1h, token)) ...  // until it is asked to stop
//
// Contracts
// ---------
//  - co_await on a TimerSleep returns nothing: the time has come. On a StoppableSleep it returns
//    true if the time has come, and false if the token was asked to stop before. Do not drop that:
//    a loop that does spins once it has been asked. (clang warns, g++ does not.)
//  - If the service is stopped first, co_await throws TimersStopped. So a loop that sleeps ends
//    then, and the service's destructor does not wait for it. A Coroutine (coroutine.h) passes the
//    exception on to whoever awaits it, and a detached one ends. A coroutine type of your own whose
//    promise ends the program for each exception must catch this one.
//  - A sleep is a one-shot timer whose task resumes the coroutine. So what timer_service.h says of
//    one-shot timers holds, in particular that they are never early. The sleep begins with
//    co_await, not with the call of sleep_for().
//  - The coroutine resumes where tasks run: on the service's executor, also when it is asked to
//    stop.
//  - A coroutine that is asked to stop while it sleeps wakes at once. If it was asked before
//    co_await, it goes on without a sleep.
//  - When the service is stopped while a coroutine sleeps, the thread that destroys the timers
//    returned by stop(), or runs their tasks, resumes the coroutine. So TimerService's destructor
//    resumes all coroutines that sleep. If an executor of your own destroys a DueTask, that resumes
//    the coroutine, too, and co_await throws TimersStopped. An exception that the promise lets out
//    goes to TimerOptions::on_error; or, from such a destructor, as one line to standard error.
//  - co_await also throws TooManyTimers, TimersForked, std::bad_alloc, and std::system_error if the
//    timer thread cannot be started.
//  - A coroutine that sleeps may be destroyed, which cancels its timer. But nobody may resume it at
//    that moment: its time must not come, and nobody may ask it to stop, on another thread.
//  - Memory: the timer's block. Nothing is allocated on the heap, with a stop token neither.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
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
  std::int64_t slack = 0;
};

// A sleep under way, in the coroutine's frame.
class Sleeper {
 public:
  Sleeper(const SleepTime& time, std::stop_token stop) noexcept
      : time_(time), stop_(std::move(stop)) {}
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper();

  bool await_ready() noexcept;
  void await_suspend(std::coroutine_handle<> coroutine);

  // The handle that a timer will have; and the submission of the timer, which may throw, and
  // returns the same handle.
  static TimerHandle handle(NewTimer& timer) noexcept;
  static TimerHandle submit(const SleepTime& time, NewTimer& timer);
  // Returns true if the time has come already: it needs no timer. Then throws what submit() would
  // throw if the service was stopped, or is the parent's.
  static bool is_over_already(const SleepTime& time);

 protected:
  // Returns true if the time has come, and false if the sleep was asked to stop. Throws
  // TimersStopped.
  bool time_came() const;

 private:
  enum class State { kAwake, kAsleep, kTimeHasCome, kAskedToStop };

  static constexpr unsigned kSubmitted = 1;
  static constexpr unsigned kAsked = 2;

  class Resume;  // the timer's task
  struct WakeUp {
    Sleeper& sleeper;
    void operator()() const noexcept;
  };

  static void wake(TimerHandle timer, std::int64_t slack) noexcept;
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
  Resume* task_ = nullptr;  // follows the task when that is moved
  std::coroutine_handle<> coroutine_;
  std::atomic<unsigned> stopping_{0};  // with a stop token only
  std::optional<std::stop_callback<WakeUp>> wake_up_;
};

class UntilItsTime : public Sleeper {
 public:
  using Sleeper::Sleeper;
  void await_resume() const { static_cast<void>(time_came()); }
};

class UntilAskedToStop : public Sleeper {
 public:
  using Sleeper::Sleeper;
  [[nodiscard]] bool await_resume() const { return time_came(); }
};

}  // namespace detail

// An awaitable: a value that says how long to sleep. It may be kept, and awaited many times while
// its service lives.
template <class Awaiter>
class [[nodiscard]] BasicSleep {
 public:
  explicit BasicSleep(const detail::SleepTime& time, std::stop_token stop = {}) noexcept
      : time_(time), stop_(std::move(stop)) {}

  Awaiter operator co_await() const noexcept { return {time_, stop_}; }

  // A sleep as an operation of Asio: sleep(token). Include carillon/asio/sleep.h.
  template <class Token>
  auto operator()(Token&& token) const
      -> decltype(begin_in_asio(std::declval<const BasicSleep&>(), std::forward<Token>(token))) {
    return begin_in_asio(*this, std::forward<Token>(token));
  }

  // Used by that header: begins a sleep that calls `task` at its end, on the service's executor.
  // Calls before(timer) before the timer can be due. If the service refuses the timer, calls
  // refused(exception). The task is destroyed after either.
  template <class F, class Before, class Refused>
  void begin(F&& task, Before&& before, Refused&& refused) const {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    before(detail::Sleeper::handle(timer));
    try {
      detail::Sleeper::submit(time_, timer);
    } catch (...) {
      refused(std::current_exception());
    }
  }
  const detail::SleepTime& time() const noexcept { return time_; }
  const std::stop_token& stop_token() const noexcept { return stop_; }

 private:
  detail::SleepTime time_;
  std::stop_token stop_;
};

using TimerSleep = BasicSleep<detail::UntilItsTime>;
using StoppableSleep = BasicSleep<detail::UntilAskedToStop>;

}  // namespace carillon
