// The coroutines of the tests: one that nobody waits for, and one that is awaited.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

// g++ 12 finds fault with what it makes of a coroutine itself.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace carillon::testing {

// NOLINTBEGIN(readability-identifier-naming): names that the standard gives

// How many frames of these coroutines there are: 0 again at the end of a test, or one leaked.
inline std::atomic<int> live_frames{0};

struct CountsFrames {
  CountsFrames() noexcept { ++live_frames; }
  CountsFrames(const CountsFrames&) = delete;
  CountsFrames& operator=(const CountsFrames&) = delete;
  ~CountsFrames() { --live_frames; }
};

// Begins at once, and frees itself at its end. What it throws ends the program.
struct Job {
  struct promise_type : CountsFrames {
    Job get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void unhandled_exception() noexcept { std::terminate(); }
    void return_void() noexcept {}
  };
};

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
  T& take() noexcept { return *value; }
};
template <>
struct Returned<void> {
  void return_void() noexcept {}
  void take() noexcept {}
};

// Begins when it is awaited, or started by hand; owns its frame.
template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : CountsFrames, Returned<T> {
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
