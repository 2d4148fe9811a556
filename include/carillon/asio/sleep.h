// Sleeps of a TimerService as asynchronous operations of Asio: in asio::awaitable, and with any
// completion token.
//
//   asio::awaitable<void> poll(carillon::TimerService& timers) {
//     co_await timers.sleep_for(10ms);
//     co_await timers.sleep_until(midnight);                          // follows the wall clock
//     co_await (read(socket) || timers.sleep_for(5s)(asio::use_awaitable));  // whichever is first
//   }
//   timers.sleep_for(10ms)([](error_code error) { ... });
//
// Standalone Asio before 1.24 awaits no operation without a token; there, write
// co_await timers.sleep_for(10ms)(asio::use_awaitable).
//
// Why: a program that has a TimerService needs no timer object for a wait, and sleeps on all
// executors share one wheel. A program that has an io_context alone uses wheel_timer.h.
//
// Contracts
// ---------
//  - The signature is void(error_code). No error: the time has come, and the sleep was not too
//    short. operation_aborted: its cancellation slot (terminal, partial or total) or its stop token
//    ended it, or the service was stopped. no_memory: there was no memory for the timer.
//    no_buffer_space: TimerOptions::max_pending. In a child of fork() whose parent has used the
//    service: operation_not_supported. Exactly one of these is the outcome; co_await throws an
//    error as a system_error. Only std::bad_alloc is thrown, if there is no memory for the handler.
//  - When emit() returns, the service has the timer back.
//  - The handler is called on its associated executor; in asio::awaitable, that of the coroutine.
//    It is not called within the call that begins or cancels the sleep. While it sleeps, that
//    executor's context has work: run() does not return.
//  - The context must live until the sleep has ended. So declare the service after the context: its
//    destructor ends all sleeps.
//  - Memory: the timer's block, and an allocation for the handler.
//
// Thread safety: as Asio's operations: one thread at a time begins and cancels a sleep.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "carillon/asio/net.h"
#include "carillon/timer/sleep.h"
#include "carillon/timer/timer_errors.h"
#include "carillon/timer/timer_handle.h"

namespace carillon {
inline namespace CARILLON_ASIO_NAMES {
namespace asio_detail {

// A handler and its results, to be called on its executor. While this object lives, the context of
// that executor has work.
template <class Handler, class... Results>
class PostedHandler {
  using Executor = net::associated_executor_t<Handler>;
  using Tracked = std::decay_t<decltype(net::prefer(std::declval<Executor>(),
                                                    net::execution::outstanding_work.tracked))>;

 public:
  explicit PostedHandler(Handler&& handler)
      : executor_(net::prefer(net::get_associated_executor(handler),
                              net::execution::outstanding_work.tracked)),
        handler_(std::move(handler)) {}

  const Handler& handler() const noexcept { return handler_; }

  // Posts the handler. REQUIRES: it is the only call.
  void post(Results... results) {
    net::post(executor_, Call{std::move(handler_), {std::move(results)...}});
  }

 private:
  struct Call {
    // NOLINTNEXTLINE(readability-identifier-naming): Asio's name
    using allocator_type = net::associated_allocator_t<Handler>;

    allocator_type get_allocator() const noexcept { return net::get_associated_allocator(handler); }
    void operator()() { std::apply(std::move(handler), std::move(results)); }

    Handler handler;
    std::tuple<Results...> results;
  };

  Tracked executor_;
  Handler handler_;
};

// Cancels a timer for a cancellation slot or a stop token.
struct CancelTimer {
  TimerHandle timer;

  void operator()() const noexcept {
    TimerHandle copy = timer;  // within cancel(), this object may be destroyed
    copy.cancel();
  }
  void operator()(net::cancellation_type_t type) const noexcept {
    if (asks_to_cancel(type)) (*this)();
  }
};

template <class Handler>
struct SleepingHandler {
  explicit SleepingHandler(Handler&& handler) : posted(std::move(handler)) {}

  PostedHandler<Handler, Error> posted;
  Error unless_called = net::error::no_memory;
  std::optional<std::stop_callback<CancelTimer>> on_stop;
};

// The task of a sleep's timer. If it is destroyed without a call, the sleep was cancelled or
// refused, or the service was stopped.
template <class Handler>
class WakeHandler {
 public:
  explicit WakeHandler(std::shared_ptr<SleepingHandler<Handler>> sleep) noexcept
      : sleep_(std::move(sleep)) {}
  WakeHandler(WakeHandler&&) noexcept = default;
  WakeHandler& operator=(WakeHandler&&) = delete;
  ~WakeHandler() {
    if (sleep_ != nullptr) sleep_->posted.post(sleep_->unless_called);
  }
  void operator()() { std::exchange(sleep_, nullptr)->posted.post(Error()); }

 private:
  std::shared_ptr<SleepingHandler<Handler>> sleep_;
};

// The error for what a TimerService throws when it refuses a timer.
inline Error refusal(std::exception_ptr what) {
  try {
    std::rethrow_exception(std::move(what));
  } catch (const TimersStopped&) {
    return net::error::operation_aborted;
  } catch (const TooManyTimers&) {
    return net::error::no_buffer_space;
  } catch (const TimersForked&) {
    return net::error::operation_not_supported;
  } catch (const std::system_error& error) {
    return {error.code().value(), net::error::get_system_category()};
  } catch (...) {
    return net::error::no_memory;
  }
}

struct BeginSleep {
  template <class Handler, class Awaiter>
  void operator()(Handler&& handler, const BasicSleep<Awaiter>& sleep) const {
    using Own = std::decay_t<Handler>;
    auto sleeping = std::make_shared<SleepingHandler<Own>>(Own(std::forward<Handler>(handler)));
    TimerHandle timer;
    const auto before = [&](TimerHandle handle) {
      timer = handle;
      sleeping->unless_called = net::error::operation_aborted;
      auto slot = net::get_associated_cancellation_slot(sleeping->posted.handler());
      if (slot.is_connected()) slot.template emplace<CancelTimer>(CancelTimer{handle});
    };
    const auto refused = [&](std::exception_ptr what) {
      sleeping->unless_called = refusal(std::move(what));
    };
    try {
      sleep.begin(WakeHandler<Own>(sleeping), before, refused);
    } catch (const std::bad_alloc&) {  // the task has told the handler
    }
    // The handler may have been called by now; the rest is still there.
    if (sleep.stop_token().stop_possible())
      sleeping->on_stop.emplace(sleep.stop_token(), CancelTimer{timer});
  }
};

}  // namespace asio_detail

// Found by BasicSleep::operator().
template <class Awaiter, class Token>
auto begin_in_asio(const BasicSleep<Awaiter>& sleep, Token&& token)
    -> decltype(asio_detail::net::async_initiate<Token, void(asio_detail::Error)>(
        asio_detail::BeginSleep(), token, sleep)) {
  return asio_detail::net::async_initiate<Token, void(asio_detail::Error)>(
      asio_detail::BeginSleep(), token, sleep);
}

}  // namespace CARILLON_ASIO_NAMES
}  // namespace carillon
