// The coroutines of the tests: Detached, which nobody awaits, and Task, which is awaited.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <utility>

#include "carillon/timer/coroutine.h"

// g++ 12 gives this warning for code that it generates itself for a coroutine.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace carillon::testing {

// NOLINTBEGIN(readability-identifier-naming): names that the standard gives

// The number of live frames of these coroutines. If it is not 0 at the end of a test, one was
// leaked.
inline std::atomic<int> live_frames{0};

struct CountsFrames {
  CountsFrames() noexcept { ++live_frames; }
  CountsFrames(const CountsFrames&) = delete;
  CountsFrames& operator=(const CountsFrames&) = delete;
  ~CountsFrames() { --live_frames; }
};

// Begins at once, and frees itself at its end. An exception that leaves it ends the program.
struct Detached {
  struct promise_type : CountsFrames {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void unhandled_exception() noexcept { std::terminate(); }
    void return_void() noexcept {}
  };
};

// Begins when it is awaited, or by start(). Owns its frame.
template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : CountsFrames, carillon::detail::Returned<T> {
    Task get_return_object() noexcept {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Final {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> ended) const noexcept {
          return ended.promise().caller;
        }
        void await_resume() const noexcept {}
      };
      return Final{};
    }
    void unhandled_exception() noexcept { error = std::current_exception(); }

    std::coroutine_handle<> caller = std::noop_coroutine();
    std::exception_ptr error;
  };

  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  void start() { coroutine_.resume(); }

  auto operator co_await() && noexcept {
    struct Awaiter {
      std::coroutine_handle<promise_type> task;
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const noexcept {
        task.promise().caller = caller;
        return task;
      }
      T await_resume() const {
        if (task.promise().error != nullptr) std::rethrow_exception(task.promise().error);
        return task.promise().take();
      }
    };
    return Awaiter{coroutine_};
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}

  std::coroutine_handle<promise_type> coroutine_;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace carillon::testing
