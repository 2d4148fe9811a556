// wheel_timer: asio::steady_timer on a timing wheel. A user changes the type and nothing else.
//
//   carillon::wheel_timer timer(socket.get_executor());
//   timer.expires_after(30s);
//   timer.async_wait([](error_code error) { ... });     // or any completion token:
//   co_await timer.async_wait(asio::use_awaitable);
//
// Why: asio::steady_timer keeps its timers in a binary heap, where each expires_after() and each
// cancel costs O(log n) and as many cache misses. A server that gives each request a time-out does
// both for each request, and nearly none of these timers expires.
//
// How it works
// ------------
// A context has one wheel for each kind of timer (detail/wheel_service.h), and one timer of Asio's
// that wakes it. No thread is added, and one context can have timers of all kinds. Only Asio's
// documented interfaces are used.
//
// wall_wheel_timer is the same for asio::system_timer: times of the wall clock, std::chrono's
// system_clock.
//
// Contracts: those of asio::steady_timer, with these differences:
//  - A wait completes at the end of the tick in which its timer expires: never early, and up to one
//    tick later than asio's. Timers of the same tick complete together, in the order in which they
//    were started; asio completes them in the order of their expiry.
//  - expires_after(), cancel, and starting a wait are O(1). They hold the lock of the wheel.
//  - The kernel gets a new deadline only if it is earlier than all others.
//  - run(), run_one() and poll() count a wake-up of the wheel as a handler.
//  - A cancellation slot also works after its timer was moved.
//  - The executor converts to any_io_executor.
//  - Memory: 112 bytes in the timer object with an any_io_executor, 8 to 24 per timer in the wheel,
//    and one allocation per wait.
//  - wall_wheel_timer: a wait completes when the wall clock shows its time, also after it was set:
//    if the clock is set forward past the time, the wait completes at once, where asio's completes
//    within 5 minutes (on Linux; elsewhere as asio's). If it is set back, the wait waits again.
//
// Thread safety: as asio's. One timer: one thread at a time; different timers: any threads.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <ratio>
#include <thread>
#include <type_traits>
#include <utility>

#include "carillon/asio/detail/timer_wait.h"
#include "carillon/asio/detail/wheel_service.h"
#include "carillon/asio/net.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/saturated.h"
#include "carillon/wheel/timer_set.h"

// Names are written as asio writes its own.
// NOLINTBEGIN(readability-identifier-naming)
namespace carillon {
inline namespace CARILLON_ASIO_NAMES {

// A timer with another tick, here 1 us. It is another type, and each context has another wheel for
// it:
//
//   using fine_timer = carillon::basic_wheel_timer<std::chrono::steady_clock, std::micro>;
//
// TickPeriod: the length of a tick as a std::ratio of a second, a whole multiple of the clock's
// unit. A shorter tick is more exact and wakes the context more often.
// Clock: a clock of whole units. If it is not steady, it may be set at any time.
// Model: any TimerSet.
template <class Clock, class TickPeriod = std::milli,
          class Executor = asio_detail::net::any_io_executor, TimerSet Model = HierarchicalWheel<>>
class basic_wheel_timer {
  using Service = asio_detail::WheelService<Clock, TickPeriod, Model>;
  using Error = asio_detail::Error;
  using Context = asio_detail::net::execution_context;

 public:
  using executor_type = Executor;
  using clock_type = Clock;
  using duration = typename Clock::duration;
  using time_point = typename Clock::time_point;

  template <class Other>
  struct rebind_executor {
    using other = basic_wheel_timer<Clock, TickPeriod, Other, Model>;
  };

  // As steady_timer's constructors. A timer without an expiry has expired.
  explicit basic_wheel_timer(const Executor& executor)
      : executor_(executor), service_(&service_of(executor)) {}
  basic_wheel_timer(const Executor& executor, Saturating<time_point> expiry)
      : basic_wheel_timer(executor) {
    expiry_ = expiry;
  }
  basic_wheel_timer(const Executor& executor, Saturating<duration> delay)
      : basic_wheel_timer(executor, after(delay)) {}
  template <std::derived_from<Context> ExecutionContext>
  explicit basic_wheel_timer(ExecutionContext& context)
      : basic_wheel_timer(Executor(context.get_executor())) {}
  template <std::derived_from<Context> ExecutionContext>
  basic_wheel_timer(ExecutionContext& context, Saturating<time_point> expiry)
      : basic_wheel_timer(Executor(context.get_executor()), expiry) {}
  template <std::derived_from<Context> ExecutionContext>
  basic_wheel_timer(ExecutionContext& context, Saturating<duration> delay)
      : basic_wheel_timer(Executor(context.get_executor()), delay) {}

  // A timer takes its waits with it. The one that it was moved from is as newly constructed.
  basic_wheel_timer(basic_wheel_timer&& other) noexcept
      : executor_(other.executor_), service_(other.service_) {
    take(other);
  }
  template <std::convertible_to<Executor> Other>
  // NOLINTNEXTLINE(google-explicit-constructor): as steady_timer's
  basic_wheel_timer(basic_wheel_timer<Clock, TickPeriod, Other, Model>&& other)
      : executor_(other.executor_), service_(other.service_) {
    take(other);
  }
  basic_wheel_timer& operator=(basic_wheel_timer&& other) noexcept {
    if (this == &other) return *this;
    cancel();
    executor_ = other.executor_;
    service_ = other.service_;
    take(other);
    return *this;
  }
  ~basic_wheel_timer() { cancel(); }

  executor_type get_executor() const noexcept { return executor_; }

  // Ends all waits, or the oldest, with operation_aborted. Returns how many waits these are. A wait
  // that has expired cannot be cancelled any more. The expiry does not change.
  std::size_t cancel() noexcept {
    return std::exchange(may_wait_, false) ? service_->cancel(entry_) : 0;
  }
  std::size_t cancel_one() noexcept { return may_wait_ ? service_->cancel(entry_, 1) : 0; }

  time_point expiry() const noexcept { return expiry_; }

  // Each cancels all waits, and returns how many these are.
  std::size_t expires_at(Saturating<time_point> expiry) {
    const std::size_t cancelled = cancel();
    expiry_ = expiry;
    return cancelled;
  }
  std::size_t expires_after(Saturating<duration> delay) { return expires_at(after(delay)); }

  // Blocks the thread until the expiry.
  void wait() {
    using namespace std::chrono_literals;
    using Seconds = std::chrono::duration<double>;
    for (auto now = Clock::now(); now < expiry_; now = Clock::now()) {
      // Not for long: the clock may be set.
      const auto left = Seconds(expiry_.time_since_epoch()) - Seconds(now.time_since_epoch());
      std::this_thread::sleep_for(std::min<Seconds>(left, 1s));
    }
  }
  void wait(Error& error) {
    wait();
    error = {};
  }

  // Starts a wait: void(error_code). It throws what the constructors of the token throw, and
  // std::bad_alloc; then nothing was started.
  template <class Token = typename asio_detail::net::default_completion_token<Executor>::type>
  auto async_wait(Token&& token = Token()) {
    return asio_detail::net::async_initiate<Token, void(Error)>(StartWait(*this), token);
  }

 private:
  template <class, class, class, TimerSet>
  friend class basic_wheel_timer;

  class StartWait {
   public:
    using executor_type = Executor;

    explicit StartWait(basic_wheel_timer& timer) noexcept : timer_(&timer) {}
    executor_type get_executor() const noexcept { return timer_->get_executor(); }
    template <class Handler>
    void operator()(Handler&& handler) const {
      timer_->start(std::decay_t<Handler>(std::forward<Handler>(handler)));
    }

   private:
    basic_wheel_timer* timer_;
  };

  // In the slot of a handler.
  struct CancelWait {
    Service* service;
    asio_detail::TimerWait* wait;

    void operator()(asio_detail::net::cancellation_type_t type) const noexcept {
      if (asio_detail::asks_to_cancel(type)) service->cancel(*wait);
    }
  };

  static Service& service_of(const Executor& executor) {
    namespace net = asio_detail::net;
    return net::use_service<Service>(net::query(executor, net::execution::context));
  }

  // Returns the time after `delay`, at most the end of the clock's range.
  static time_point after(duration delay) { return saturated_sum(Clock::now(), delay); }

  template <class Handler>
  void start(Handler handler) {
    namespace net = asio_detail::net;
    auto& wait = asio_detail::WaitOf<Handler, Executor>::make(std::move(handler), executor_);
    try {
      auto slot = net::get_associated_cancellation_slot(wait.handler());
      if (slot.is_connected()) slot.template emplace<CancelWait>(CancelWait{service_, &wait});
      service_->start(entry_, expiry_, wait, executor_);
    } catch (...) {
      wait.drop();
      throw;
    }
    may_wait_ = true;
  }

  template <class Other>
  void take(Other& other) noexcept {
    expiry_ = std::exchange(other.expiry_, time_point());
    may_wait_ = std::exchange(other.may_wait_, false);
    if (may_wait_) service_->move(other.entry_, entry_);
  }

  Executor executor_;
  Service* service_;
  time_point expiry_{};
  asio_detail::WaitEntry entry_;
  bool may_wait_ = false;  // waits were started since the last cancel()
};

using wheel_timer = basic_wheel_timer<std::chrono::steady_clock>;
using wall_wheel_timer = basic_wheel_timer<std::chrono::system_clock>;

}  // namespace CARILLON_ASIO_NAMES
}  // namespace carillon
// NOLINTEND(readability-identifier-naming)
