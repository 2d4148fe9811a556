// TimeoutState: shared by the three parties of a with_timeout(): the coroutine that waits, the
// timer, and the driver, which awaits the awaitable.
//
// Each party writes down what has happened by one atomic operation on `events_`, and sees by it
// what the others have written. That decides the outcome, and who resumes the coroutine: nobody
// does before it is suspended; if the coroutine finds that it need not wait, it goes on by itself.
//
// The driver is a coroutine that owns the awaitable. Nobody owns the driver: when the awaitable has
// ended, it destroys itself, and the awaitable with it.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "carillon/timer/detail/awaiting.h"
#include "carillon/timer/timer_errors.h"
#include "carillon/timer/timer_handle.h"

namespace carillon::detail {

// Writes a line about an exception that nobody is left to catch to standard error.
void print_error(std::exception_ptr what) noexcept;

class TimeoutState {
 public:
  // If `waits` is true, the coroutine waits for the awaitable to end, also when the time is over.
  TimeoutState(std::coroutine_handle<> caller, bool waits)
      : caller_(caller),
        waits_(waits),
        stop_(waits ? std::stop_source() : std::stop_source(std::nostopstate)) {}

  // --- the coroutine that waits
  void set_timer(TimerHandle timer) noexcept { timer_ = timer; }
  void stop_with(std::stop_token token) {
    if (token.stop_possible()) forward_.emplace(std::move(token), Forward{stop_});
  }

  // Called when the awaitable waits, or has ended. Returns false if the coroutine need not wait.
  bool suspend() noexcept {
    const unsigned before = write_down(kSuspended);
    return (before & kEnded) == 0 && (waits_ || (before & kTimeOver) == 0);
  }

  // The coroutine that waits is destroyed.
  void abandon() noexcept {
    write_down(kAbandoned);
    timer_.cancel();
    stop_.request_stop();
  }

  // --- the timer
  void expire() { time_is_over(kTimeOver); }
  void service_stopped() { time_is_over(kTimeOver | kServiceStopped); }

  // --- the driver
  std::stop_token token() const noexcept { return stop_.get_token(); }
  void failed(std::exception_ptr what) noexcept { error_ = std::move(what); }

  // The awaitable has ended, and is destroyed. Returns the coroutine to resume.
  std::coroutine_handle<> ended() noexcept {
    forward_.reset();
    unsigned before = events_.load(std::memory_order_acquire);
    bool too_late = false;
    do {
      too_late = (before & (kTold | kAbandoned)) != 0 || was_given_up(before);
    } while (!events_.compare_exchange_weak(before, before | kEnded | (too_late ? 0 : kInTime),
                                            std::memory_order_acq_rel, std::memory_order_acquire));
    if (!too_late) timer_.cancel();
    const bool is_awaited = (before & (kSuspended | kAbandoned)) == kSuspended;
    return is_awaited && !was_given_up(before) ? caller_ : std::noop_coroutine();
  }

 protected:
  // Returns true if the awaitable ended in time. Throws its exception, and TimersStopped.
  bool ended_in_time() {
    const unsigned seen = events_.load(std::memory_order_acquire);
    if ((seen & kInTime) != 0) {
      if (error_ != nullptr) std::rethrow_exception(std::move(error_));
      return true;
    }
    if ((seen & kServiceStopped) != 0) throw TimersStopped();
    return false;
  }

 private:
  // What has happened.
  static constexpr unsigned kSuspended = 1U << 0;
  static constexpr unsigned kTimeOver = 1U << 1;
  static constexpr unsigned kServiceStopped = 1U << 2;
  static constexpr unsigned kTold = 1U << 3;  // the operation was told to stop
  static constexpr unsigned kEnded = 1U << 4;
  static constexpr unsigned kInTime = 1U << 5;
  static constexpr unsigned kAbandoned = 1U << 6;

  // The operation may end within request_stop(), and so may everything that holds the stop source.
  // The copy keeps it alive until the call returns.
  struct Forward {
    std::stop_source& to;
    void operator()() const noexcept { std::stop_source(to).request_stop(); }
  };

  // Returns what had happened before. Acquire and release: a party that sees what another has
  // written down sees also what that one did before.
  unsigned write_down(unsigned events) noexcept {
    return events_.fetch_or(events, std::memory_order_acq_rel);
  }

  bool was_given_up(unsigned events) const noexcept {
    return !waits_ && (events & kTimeOver) != 0 && (events & kSuspended) != 0;
  }

  void time_is_over(unsigned events) {
    const unsigned before = write_down(events);
    if ((before & (kEnded | kAbandoned)) != 0) return;
    if (waits_) {
      tell_to_stop();
    } else if ((before & kSuspended) != 0) {
      caller_.resume();
    }
  }

  // Then the awaitable ends, and the driver resumes the coroutine.
  void tell_to_stop() {
    if ((write_down(kTold) & kEnded) == 0) stop_.request_stop();
  }

  const std::coroutine_handle<> caller_;
  const bool waits_;
  std::atomic<unsigned> events_{0};
  std::stop_source stop_;
  TimerHandle timer_;
  std::exception_ptr error_;
  std::optional<std::stop_callback<Forward>> forward_;
};

template <class T>
class TimeoutResult : public TimeoutState {
  using Value = std::conditional_t<std::is_lvalue_reference_v<T>,
                                   std::reference_wrapper<std::remove_reference_t<T>>,
                                   std::remove_cvref_t<T>>;

 public:
  using Result = std::optional<Value>;
  using TimeoutState::TimeoutState;

  template <class U>
  void set(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  Result take() {
    if (!ended_in_time()) return std::nullopt;
    return std::move(value_);
  }

 private:
  Result value_;
};

template <>
class TimeoutResult<void> : public TimeoutState {
 public:
  using Result = bool;
  using TimeoutState::TimeoutState;

  Result take() { return ended_in_time(); }
};

// The timer's task. If it is destroyed without a call, the timer was cancelled, and the outcome is
// decided already; or the service was stopped.
class Expire {
 public:
  explicit Expire(std::shared_ptr<TimeoutState> state) noexcept : state_(std::move(state)) {}
  Expire(Expire&&) noexcept = default;
  Expire& operator=(Expire&&) = delete;
  ~Expire() {
    if (state_ == nullptr) return;
    try {
      std::exchange(state_, nullptr)->service_stopped();
    } catch (...) {  // from the coroutine's promise; the service, and its on_error, may be gone
      print_error(std::current_exception());
    }
  }
  void operator()() { std::exchange(state_, nullptr)->expire(); }

 private:
  std::shared_ptr<TimeoutState> state_;
};

// A coroutine that has not begun. It is destroyed with this object unless it was started.
class Driver {
 public:
  // NOLINTBEGIN(readability-identifier-naming): names that the standard gives
  class promise_type {
   public:
    template <class T, class... Rest>
    explicit promise_type(const std::shared_ptr<TimeoutResult<T>>& state, Rest&&...) noexcept
        : state_(state) {}

    Driver get_return_object() noexcept { return Driver(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Final {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle driver) const noexcept {
          const std::shared_ptr<TimeoutState> state = std::move(driver.promise().state_);
          driver.destroy();
          return state->ended();
        }
        void await_resume() const noexcept {}
      };
      return Final{};
    }
    void unhandled_exception() noexcept { state_->failed(std::current_exception()); }
    void return_void() noexcept {}

   private:
    std::shared_ptr<TimeoutState> state_;
  };
  // NOLINTEND(readability-identifier-naming)
  using Handle = std::coroutine_handle<promise_type>;

  explicit Driver(Handle coroutine) noexcept : coroutine_(coroutine) {}
  Driver(Driver&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Driver& operator=(Driver&&) = delete;
  ~Driver() {
    if (coroutine_) coroutine_.destroy();
  }

  void start() { std::exchange(coroutine_, nullptr).resume(); }

 private:
  Handle coroutine_;
};

// g++ 12 warns about code that it generates itself for a coroutine.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

template <class T, class What>
Driver drive(std::shared_ptr<TimeoutResult<T>> state, What what) {
  if constexpr (Operation<What>) {
    auto&& awaitable = what(state->token());
    if constexpr (std::is_void_v<T>) {
      co_await std::forward<decltype(awaitable)>(awaitable);
    } else {
      state->set(co_await std::forward<decltype(awaitable)>(awaitable));
    }
  } else if constexpr (std::is_void_v<T>) {
    co_await std::move(what);
  } else {
    state->set(co_await std::move(what));
  }
}

#pragma GCC diagnostic pop

}  // namespace carillon::detail
