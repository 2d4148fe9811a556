// with_timeout: awaits something, but not for longer than a given time. timeout_at: not beyond a
// given time, of the steady or of the system clock.
//
//   // An operation that can be told to stop: it is told, and co_await waits until it has ended.
//   std::optional<Reply> reply = co_await carillon::with_timeout(
//       timers, [&](std::stop_token stop) { return call(server, request, stop); }, 5s);
//   if (!reply) ...  // timed out
//   // Several steps that share a deadline:
//   auto more = co_await carillon::timeout_at(timers, operation, deadline);
//
//   // Any other awaitable: it is moved in, and given up. (This one has no result.)
//   bool in_time = co_await carillon::with_timeout(timers, std::move(task), 5s);
//
// The type of the result depends on that of the awaitable:
//   T      std::optional<T>; empty if it did not end in time
//   T&&    std::optional<T>, moved from the result; empty if it did not end in time
//   T&     std::optional<std::reference_wrapper<T>>; empty if it did not end in time
//   void   bool; false if it did not end in time
// An exception from the awaitable is thrown on.
//
// Which comes first
// -----------------
// The awaitable ends, the time is over, or the service is stopped: the first of these decides the
// result, and exactly one does, even if two come at the same moment. What ends without waiting is
// in time, also if the time is 0; an operation, if it has not been told to stop meanwhile.
//  - An operation is a callable that takes a std::stop_token and returns an awaitable. When the
//    time is over, it is told to stop, and co_await goes on when it has ended; so it may refer to
//    what its caller owns. Its result or exception is dropped then. If it ignores its token,
//    co_await returns late.
//  - Any other awaitable is given up: co_await goes on at once. The awaitable continues by itself
//    until it ends; its result or exception is dropped, and then it is destroyed. So everything
//    that it uses must live as long as it does, and the awaitable itself must be moved in: one that
//    has a name (an lvalue) does not compile. An awaitable that never ends is never freed.
//  - If the service is stopped, stop() returns the timer of this wait. When that is destroyed, the
//    time is over, and co_await throws TimersStopped: so a loop that tries again ends. The same
//    happens if an executor of your own destroys the DueTask. If the service was stopped before
//    co_await, that throws it at once, and nothing is started, also if the time is 0.
//  - A token of yours can tell an operation to stop, too: with_timeout(timers, operation, 5s,
//    stop_token). That decides nothing: the operation's result or exception is the outcome.
//
// The awaitable starts on the calling thread, within co_await. co_await goes on where the awaitable
// ends, or, if that is given up, where the service runs its tasks. The time counts from co_await.
// If it is 0 or less, an operation is told to stop as soon as the service runs the timer. Any other
// awaitable is given up when it first waits; that needs no timer, and co_await then returns on the
// calling thread.
//
// A coroutine that waits here may be destroyed while nobody can resume it. The operation is told to
// stop then, or the awaitable given up, so both must own what they use.
//
// co_await throws what schedule_after() throws; then nothing was started, and the awaitable is
// destroyed. It allocates the frame of a coroutine, a shared state, and, for an
// operation, the state of a stop token.
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
#include "carillon/timer/timer_service.h"

namespace carillon {

// Returned by with_timeout(): an awaitable that is awaited once. `What` is an awaitable or an
// operation.
template <class What>
class [[nodiscard]] WithTimeout {
  using State = detail::TimeoutResult<detail::ResultOf<What>>;

 public:
  WithTimeout(const detail::SleepTime& time, What what, std::stop_token stop)
      : time_(time), what_(std::move(what)), stop_(std::move(stop)) {}

  class Awaiter {
   public:
    explicit Awaiter(WithTimeout&& call) noexcept : call_(std::move(call)) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    ~Awaiter() {
      if (state_ != nullptr) state_->abandon();
    }

    bool await_ready() const noexcept { return false; }

    // Returns false if the coroutine need not wait.
    bool await_suspend(std::coroutine_handle<> caller) {
      auto state = std::make_shared<State>(caller, detail::Operation<What>);
      detail::Driver driver = detail::drive(state, std::move(call_.what_));
      state_ = state;
      // An operation may check its token without ever waiting, so only another thread can tell it.
      const bool is_over =
          !detail::Operation<What> && detail::Sleeper::is_over_already(call_.time_);
      if (!is_over) {
        detail::NewTimer timer(std::in_place, detail::Expire(state));
        state->set_timer(detail::Sleeper::submit(call_.time_, timer));
      }
      if constexpr (detail::Operation<What>) state->stop_with(call_.stop_);
      driver.start();
      if (is_over) state->expire();
      // After suspend(), the caller may have been resumed and this object be gone.
      return state->suspend();
    }

    typename State::Result await_resume() { return std::exchange(state_, nullptr)->take(); }

   private:
    WithTimeout call_;
    std::shared_ptr<State> state_;
  };

  Awaiter operator co_await() && noexcept { return Awaiter(std::move(*this)); }

  // The same as an operation of Asio. Include carillon/asio/with_timeout.h.
  template <class Token>
  auto operator()(Token&& token) && -> decltype(begin_in_asio(std::declval<WithTimeout>(),
                                                              std::forward<Token>(token))) {
    return begin_in_asio(std::move(*this), std::forward<Token>(token));
  }

  using Result = typename State::Result;  // what co_await returns

  // The token that tells the operation to stop. It may be replaced before co_await.
  std::stop_token& stop_token() noexcept { return stop_; }

 private:
  detail::SleepTime time_;
  What what_;
  std::stop_token stop_;
};

template <detail::Operation F, class Rep, class Period>
WithTimeout<std::decay_t<F>> with_timeout(TimerService& timers, F&& operation,
                                          std::chrono::duration<Rep, Period> delay,
                                          std::stop_token stop = {}) {
  return {timers.sleep_for(delay).time(), std::forward<F>(operation), std::move(stop)};
}

// A copy of `awaitable` would not be what the caller has; a reference to it could dangle when it is
// given up. Move it: with_timeout(timers, std::move(awaitable), 5s).
template <class A, class Rep, class Period>
requires(!detail::Operation<A&> && detail::Awaitable<A&>) void with_timeout(
    TimerService& timers, A& awaitable, std::chrono::duration<Rep, Period> delay) = delete;

template <class A, class Rep, class Period>
requires(!std::is_lvalue_reference_v<A> && !detail::Operation<A> && detail::Awaitable<A>)
    WithTimeout<std::decay_t<A>> with_timeout(TimerService& timers, A&& awaitable,
                                              std::chrono::duration<Rep, Period> delay) {
  return {timers.sleep_for(delay).time(), std::forward<A>(awaitable), std::stop_token()};
}

// The same until a time of the steady or of the system clock.
template <detail::Operation F, class Clock, class Duration>
WithTimeout<std::decay_t<F>> timeout_at(TimerService& timers, F&& operation,
                                        std::chrono::time_point<Clock, Duration> deadline,
                                        std::stop_token stop = {}) {
  return {timers.sleep_until(deadline).time(), std::forward<F>(operation), std::move(stop)};
}
template <class A, class Clock, class Duration>
requires(!detail::Operation<A&> && detail::Awaitable<A&>) void timeout_at(
    TimerService& timers, A& awaitable, std::chrono::time_point<Clock, Duration> deadline) = delete;
template <class A, class Clock, class Duration>
requires(!std::is_lvalue_reference_v<A> && !detail::Operation<A> && detail::Awaitable<A>)
    WithTimeout<std::decay_t<A>> timeout_at(TimerService& timers, A&& awaitable,
                                            std::chrono::time_point<Clock, Duration> deadline) {
  return {timers.sleep_until(deadline).time(), std::forward<A>(awaitable), std::stop_token()};
}

}  // namespace carillon
