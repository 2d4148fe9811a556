// with_timeout and timeout_at in asio::awaitable: awaits something, but not for longer than a given
// time, or not beyond one.
//
//   // Asio's own coroutines. They are cancelled when the time is over.
//   std::optional<Reply> reply = co_await carillon::with_timeout(timers, call(socket), 5s);
//   if (!reply) ...  // timed out
//
//   // What carillon/timer/with_timeout.h awaits: operations with a stop token, other awaitables.
//   bool in_time = co_await carillon::with_timeout(
//       timers, [&](std::stop_token stop) { return work(stop); }, 5s);
//
// The second needs (asio::use_awaitable) behind it before Boost 1.82 and Asio 1.27, which do not
// await such an operation without a token.
//
// Contracts
// ---------
//  - The result is that of carillon/timer/with_timeout.h: std::optional of the awaited, or bool. An
//    exception is thrown on. When the time is over, its result or exception is dropped.
//  - An asio::awaitable runs on a strand of its coroutine's executor, so that the timer may cancel
//    it (terminal) whatever threads run the context. co_await goes on when it has ended; so it may
//    refer to what its caller owns. If it ignores the request, co_await returns late.
//  - If the service is stopped, or refuses the timer, the awaitable is cancelled as if the time
//    were over, and co_await throws what a sleep throws then (sleep.h): operation_aborted, or
//    no_buffer_space. An operation and other awaitables: TimersStopped, TooManyTimers.
//  - Cancelling the coroutine that waits here cancels what it awaits: an asio::awaitable as Asio
//    does; an operation is told to stop. Its own end is the outcome. Other awaitables cannot be
//    told, and go on until the time is over.
//  - The rest is in carillon/asio/sleep.h: executors, work, and how long the context must live.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "carillon/asio/net.h"
#include "carillon/asio/sleep.h"
#include "carillon/timer/coroutine.h"
#include "carillon/timer/timer_service.h"
#include "carillon/timer/with_timeout.h"

namespace carillon {
inline namespace CARILLON_ASIO_NAMES {
namespace asio_detail {

// g++ 12 gives this warning for code that it generates itself for a coroutine.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

// --- an asio::awaitable

// Used on the strand, until the awaitable has ended.
struct RaceState {
  net::cancellation_signal cancel_work;
  net::cancellation_signal cancel_sleep;
  bool begun = false;
  bool ended = false;
  std::optional<Error> sleep_ended;  // before the awaitable; an error if the time is not over
  // What was asked for before the awaitable began. co_spawn does not bear a cancel before that.
  net::cancellation_type_t asked = net::cancellation_type_t::none;

  void cancel(net::cancellation_type_t type) {
    if (begun) {
      cancel_work.emit(type);
    } else {
      asked = asked | type;
    }
  }
  bool time_is_over() const {
    if (sleep_ended.has_value() && *sleep_ended) throw SystemError(*sleep_ended);
    return sleep_ended.has_value();
  }
};

// The result of a race between an awaitable and the time.
template <class T>
struct Race {
  using Value = std::conditional_t<std::is_lvalue_reference_v<T>,
                                   std::reference_wrapper<std::remove_reference_t<T>>, T>;
  using Result = std::optional<Value>;

  Result take() { return state.time_is_over() ? std::nullopt : std::move(value); }

  RaceState state;
  Result value;
};
template <>
struct Race<void> {
  using Result = bool;

  bool take() const { return !state.time_is_over(); }

  RaceState state;
};

// If the executor type cannot hold a strand, it is a strand or belongs to one thread.
template <class Executor>
Executor strand_of(const Executor& executor) {
  if constexpr (std::is_constructible_v<Executor, net::strand<Executor>>) {
    return Executor(net::make_strand(executor));
  } else {
    return executor;
  }
}

// Runs on the strand, so everything that uses the state does.
template <class T, class Executor>
net::awaitable<void, Executor> run_in_race(TimerSleep sleep, net::awaitable<T, Executor> work,
                                           std::shared_ptr<Race<T>> race, Executor strand) {
  RaceState& state = race->state;
  sleep(net::bind_cancellation_slot(state.cancel_sleep.slot(),
                                    net::bind_executor(strand, [race](Error error) {
                                      if (race->state.ended) return;
                                      race->state.sleep_ended = error;
                                      race->state.cancel(net::cancellation_type_t::terminal);
                                    })));
  state.begun = true;
  if (state.asked != net::cancellation_type_t::none) state.cancel(state.asked);
  std::exception_ptr error;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
    } else {
      race->value.emplace(co_await std::move(work));
    }
  } catch (...) {
    error = std::current_exception();
  }
  state.ended = true;
  state.cancel_sleep.emit(net::cancellation_type_t::terminal);
  if (error != nullptr && !state.sleep_ended) std::rethrow_exception(error);
}

template <class T, class Executor>
net::awaitable<typename Race<T>::Result, Executor> race_against(TimerSleep sleep,
                                                                net::awaitable<T, Executor> work) {
  const auto race = std::make_shared<Race<T>>();
  const Executor strand = strand_of(co_await net::this_coro::executor);
  const net::cancellation_state state = co_await net::this_coro::cancellation_state;
  net::cancellation_slot cancelled = state.slot();
  if (cancelled.is_connected()) {
    cancelled.assign([race, strand](net::cancellation_type_t type) {
      net::dispatch(strand, [race, type] { race->state.cancel(type); });
    });
  }
  std::exception_ptr error;
  try {
    co_await net::co_spawn(strand, run_in_race(std::move(sleep), std::move(work), race, strand),
                           net::bind_cancellation_slot(race->state.cancel_work.slot(),
                                                       net::use_awaitable_t<Executor>()));
  } catch (...) {
    error = std::current_exception();
  }
  if (cancelled.is_connected()) cancelled.clear();
  if (error != nullptr) std::rethrow_exception(error);
  co_return race->take();
}

// --- what any coroutine can await

struct RequestStop {
  std::stop_source source;

  void operator()() const noexcept { std::stop_source(source).request_stop(); }
  void operator()(net::cancellation_type_t type) const noexcept {
    if (asks_to_cancel(type)) (*this)();
  }
};

struct BeginWithTimeout {
  template <class Handler, class What>
  void operator()(Handler&& handler, WithTimeout<What> call) const {
    using Own = std::decay_t<Handler>;
    const std::stop_source source;
    auto slot = net::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.template emplace<RequestStop>(RequestStop{source});
    run(std::move(call), source,
        PostedHandler<Own, std::exception_ptr, typename WithTimeout<What>::Result>(
            Own(std::forward<Handler>(handler))));
  }

 private:
  template <class What, class Posted>
  static carillon::detail::Unawaited run(WithTimeout<What> call, std::stop_source source,
                                         Posted posted) {
    const std::stop_callback caller_stops(std::exchange(call.stop_token(), source.get_token()),
                                          RequestStop{source});
    typename WithTimeout<What>::Result result{};
    std::exception_ptr error;
    try {
      result = co_await std::move(call);
    } catch (...) {
      error = std::current_exception();
    }
    posted.post(error, std::move(result));
  }
};

#pragma GCC diagnostic pop

}  // namespace asio_detail

template <class T, class Executor, class Rep, class Period>
asio_detail::net::awaitable<typename asio_detail::Race<T>::Result, Executor> with_timeout(
    TimerService& timers, asio_detail::net::awaitable<T, Executor> work,
    std::chrono::duration<Rep, Period> delay) {
  return asio_detail::race_against(timers.sleep_for(delay), std::move(work));
}

// The same until a time of the steady or of the system clock.
template <class T, class Executor, class Clock, class Duration>
asio_detail::net::awaitable<typename asio_detail::Race<T>::Result, Executor> timeout_at(
    TimerService& timers, asio_detail::net::awaitable<T, Executor> work,
    std::chrono::time_point<Clock, Duration> deadline) {
  return asio_detail::race_against(timers.sleep_until(deadline), std::move(work));
}

// Found by WithTimeout::operator().
template <class What, class Token>
auto begin_in_asio(WithTimeout<What>&& call, Token&& token)
    -> decltype(asio_detail::net::async_initiate<Token, void(std::exception_ptr,
                                                             typename WithTimeout<What>::Result)>(
        asio_detail::BeginWithTimeout(), token, std::move(call))) {
  return asio_detail::net::async_initiate<Token, void(std::exception_ptr,
                                                      typename WithTimeout<What>::Result)>(
      asio_detail::BeginWithTimeout(), token, std::move(call));
}

}  // namespace CARILLON_ASIO_NAMES
}  // namespace carillon
