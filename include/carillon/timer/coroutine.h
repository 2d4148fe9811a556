// Coroutine: a function that waits without holding a thread, for those who have no type of their
// own for it.
//
//   carillon::Coroutine<int> answer(carillon::TimerService& timers) {
//     co_await timers.sleep_for(10ms);    // throws TimersStopped if the service stops first
//     co_return 42;
//   }
//   carillon::Coroutine<> print(carillon::TimerService& timers) {
//     std::printf("%d\n", co_await answer(timers));
//   }
//   print(timers).wait();      // begins it, and holds this thread until it has ended
//   print(timers).detach();    // begins it, and goes on
//
// sleep_for(), sleep_until() and with_timeout() work in coroutines of any type: those of cppcoro,
// of Asio (carillon/asio/sleep.h), or your own. This one is small. After a sleep it goes on where
// the service's tasks run: in its executor.
//
// Contracts
//  - It begins with co_await, wait() or detach(), each of which takes it as an rvalue: it is
//    awaited once. One that is never begun is destroyed without having run.
//  - co_await and wait() return what it returns, and throw what leaves it.
//  - An exception that leaves a detached one ends the program, except TimersStopped: a
//    stopped sleep throws it, and that the service ends is no fault of the coroutine.
//  - Any number of them may be awaited in a loop, also if each ends at once. One that awaits
//    another, which awaits another, and so on takes stack as functions that call each other do.
//  - A coroutine that awaits one of these must not be destroyed before the awaited one has first
//    waited or ended, and control has returned from that: neither by code that the awaited one
//    calls meanwhile, nor by another thread. It may be destroyed while the awaited one waits.
//
// Thread safety: none; one coroutine belongs to one thread at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <exception>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "carillon/timer/timer_errors.h"

namespace carillon {

// NOLINTBEGIN(readability-identifier-naming): names that the standard gives

namespace detail {

// What a Coroutine<T> returns.
template <class T>
struct Returned {
  std::optional<T> value;

  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() { return std::move(*value); }
};
template <class T>
struct Returned<T&> {
  T* value = nullptr;

  void return_value(T& result) noexcept { value = &result; }
  T& take() const noexcept { return *value; }
};
template <>
struct Returned<void> {
  void return_void() noexcept {}
  void take() const noexcept {}
};

// A coroutine that begins at once and frees itself.
struct Unawaited {
  struct promise_type {
    Unawaited get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

// Tells a thread that a coroutine has ended.
class Ending {
 public:
  void set() {
    // Told under the lock: the waiting thread destroys this object as soon as it knows.
    const std::lock_guard lock(mutex_);
    ended_ = true;
    told_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [this] { return ended_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  bool ended_ = false;
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] Coroutine {
 public:
  struct promise_type : detail::Returned<T> {
    Coroutine get_return_object() noexcept {
      return Coroutine(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
      struct Final {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> ended) const noexcept {
          promise_type& promise = ended.promise();
          const std::coroutine_handle<> next = promise.caller;  // meet() may end the frame
          return promise.meet() ? next : std::noop_coroutine();
        }
        void await_resume() const noexcept {}
      };
      return Final{};
    }
    void unhandled_exception() noexcept { error = std::current_exception(); }

    // The coroutine calls it when it has ended, and the one that awaits it when it has begun it.
    // Returns true for the second of the two. From the first call on, the frame may go.
    bool meet() noexcept { return met.exchange(true, std::memory_order_acq_rel); }

    std::coroutine_handle<> caller;
    std::exception_ptr error;
    std::atomic<bool> met{false};
  };

  Coroutine(Coroutine&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Coroutine& operator=(Coroutine&&) = delete;
  ~Coroutine() {
    if (frame_) frame_.destroy();
  }

  auto operator co_await() && noexcept {
    struct Awaiter : Begin {
      T await_resume() const {
        if (this->frame.promise().error != nullptr)
          std::rethrow_exception(this->frame.promise().error);
        return this->frame.promise().take();
      }
    };
    return Awaiter{{frame_}};
  }

  // Begins the coroutine on this thread and blocks until it has ended, on whatever thread. A task
  // of the timer thread must not call it: the timers that it waits for would wait for that task.
  T wait() && {
    detail::Ending ending;
    tell(*this, ending);
    ending.wait();
    if (frame_.promise().error != nullptr) std::rethrow_exception(frame_.promise().error);
    return frame_.promise().take();
  }

  // Begins the coroutine on this thread, until it first waits.
  void detach() && { run(std::move(*this)); }

 private:
  // Begins the coroutine by a call that returns, and not by a transfer from one to the other: g++
  // makes a jump of that only if it optimises, and otherwise the stack grows with each coroutine
  // that ends at once.
  struct Begin {
    std::coroutine_handle<promise_type> frame;

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> caller) const {
      frame.promise().caller = caller;
      frame.resume();
      return !frame.promise().meet();
    }
  };

  explicit Coroutine(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

// g++ 12 gives this warning for code that it generates itself for a coroutine.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
  // Awaits the end alone: the result and the error stay in the frame.
  static detail::Unawaited tell(Coroutine& coroutine, detail::Ending& ending) {
    struct End : Begin {
      void await_resume() const noexcept {}
    };
    co_await End{{coroutine.frame_}};
    ending.set();
  }

  static detail::Unawaited run(Coroutine coroutine) {
    try {
      co_await std::move(coroutine);
    } catch (const TimersStopped&) {
    }
  }
#pragma GCC diagnostic pop

  std::coroutine_handle<promise_type> frame_;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace carillon
