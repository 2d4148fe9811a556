// with_timeout: awaits something, but not for longer than that.
//
//   // An operation that can be told to stop: it is, and is waited for.
//   std::optional<Reply> reply = co_await carillon::with_timeout(
//       timers, [&](std::stop_token stop) { return call(server, request, stop); }, 5s);
//   if (!reply) ...                                                     // timed out
//
//   // Any other awaitable: it is given up.
//   bool in_time = co_await carillon::with_timeout(timers, std::move(task), 5s);     // of a task without a result
//
// The result is std::optional<T> where the awaitable's is T: nothing, if it timed out. Of void it
// is bool, false if it timed out; of T& std::optional<std::reference_wrapper<T>>; of T&&
// std::optional<T>, moved from there. What the awaitable throws is thrown here.
//
// Who wins
// --------
// The first of: the awaitable ends; the time is over; the service is stopped. Exactly one of them
// decides the result, whatever comes at the same moment.
//  - An operation, which is a callable that takes a std::stop_token and returns an awaitable, is
//    told to stop when the time is over, and co_await goes on when it has ended: it may refer to
//    what its caller owns. What it returns or throws by then is dropped. One that ignores its token
//    makes co_await as late.
//  - Any other awaitable is given up: co_await goes on at once, and the awaitable goes on too, by
//    itself, until it ends; what it returns or throws is dropped, and then it is destroyed. So it
//    must own what it uses, or that must live long enough. An awaitable that never ends is never
//    freed.
//  - When the service is stopped, the same happens as when the time is over, and co_await throws
//    TimersStopped: when the timer that stop() returned is dropped (sleep.h). To run its task by
//    hand says that the time is over.
//  - An operation can be told to stop by a token of yours too: with_timeout(timers, operation, 5s,
//    stop_token). That decides nothing: what it returns or throws then is the result.
//
// The awaitable is started on the calling thread, within co_await. co_await goes on where the
// awaitable ends, or, if that is given up, where the service runs its tasks. The time counts from
// co_await on.
//
// A coroutine that waits here may be destroyed while nobody can resume it; the operation is told to
// stop and the awaitable given up then, so both must own what they use.
//
// co_await throws what schedule_after() throws; then nothing was started, and the awaitable is
// destroyed. Allocates the frame of a coroutine, a state, and for an operation that of its stop
// token.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "carillon/timer/detail/awaiting.h"
#include "carillon/timer/detail/timeout_state.h"
#include "carillon/timer/timer_errors.h"
#include "carillon/timer/timer_service.h"

namespace carillon {

// What with_timeout() returns: an awaitable that is awaited once. `What` is an awaitable, or an
// operation.
template <class What>
class [[nodiscard]] WithTimeout {
  using State = detail::TimeoutResult<detail::ResultOf<What>>;

 public:
  WithTimeout(TimerService& timers, What what, std::int64_t delay, std::stop_token stop)
      : timers_(timers), what_(std::move(what)), delay_(delay), stop_(std::move(stop)) {}

  class Awaiter {
   public:
    explicit Awaiter(WithTimeout&& call) noexcept : call_(std::move(call)) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    ~Awaiter() {
      if (state_ != nullptr) state_->abandon();
    }

    bool await_ready() const noexcept { return false; }

    // False: the awaitable has ended already.
    bool await_suspend(std::coroutine_handle<> caller) {
      auto state = std::make_shared<State>(caller, detail::Operation<What>);
      detail::Driver driver = detail::drive(state, std::move(call_.what_));
      state->set_timer(call_.timers_.schedule_after(std::chrono::nanoseconds(call_.delay_),
                                                    detail::Expire(state)));
      state_ = state;
      if constexpr (detail::Operation<What>) state->stop_with(call_.stop_);
      driver.start();
      return !state->meet();  // the caller may be on its way, and this object gone, after that
    }

    typename State::Result await_resume() { return std::exchange(state_, nullptr)->take(); }

   private:
    WithTimeout call_;
    std::shared_ptr<State> state_;
  };

  Awaiter operator co_await() && noexcept { return Awaiter(std::move(*this)); }

 private:
  TimerService& timers_;
  What what_;
  std::int64_t delay_;
  std::stop_token stop_;
};

template <detail::Operation F, class Rep, class Period>
WithTimeout<std::decay_t<F>> with_timeout(TimerService& timers, F&& operation,
                                          std::chrono::duration<Rep, Period> delay,
                                          std::stop_token stop = {}) {
  return {timers, std::forward<F>(operation), detail::to_ns(delay), std::move(stop)};
}

template <class A, class Rep, class Period>
requires(!detail::Operation<A> && detail::Awaitable<A>) WithTimeout<std::decay_t<A>> with_timeout(
    TimerService& timers, A&& awaitable, std::chrono::duration<Rep, Period> delay) {
  return {timers, std::forward<A>(awaitable), detail::to_ns(delay), std::stop_token()};
}

}  // namespace carillon
