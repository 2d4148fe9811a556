// Coroutines with time-outs: asks a server a question, gives each attempt 100 ms, waits a little
// longer after each failure, and gives up when it is told to stop.
//
// The server is a coroutine that takes its time. A call over a socket would look the same to the
// caller; rpc.cpp has one.

#include <carillon/timer/timer_service.h>
#include <carillon/timer/with_timeout.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

// g++ 12 warns about code that it generates for coroutines.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace {

using namespace std::chrono_literals;

// A coroutine that begins when it is awaited. (Use the type of your own library instead: everything
// that can be awaited will do.)
template <class T>
class [[nodiscard]] Task {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the standard prescribes these names
  struct promise_type {
    Task get_return_object() {
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
    void return_value(T result) { value = std::move(result); }
    void unhandled_exception() { error = std::current_exception(); }

    std::coroutine_handle<> caller;
    std::optional<T> value;
    std::exception_ptr error;
  };
  // NOLINTEND(readability-identifier-naming)

  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    coroutine_.promise().caller = caller;
    return coroutine_;
  }
  T await_resume() {
    if (coroutine_.promise().error) std::rethrow_exception(coroutine_.promise().error);
    return std::move(*coroutine_.promise().value);
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

// A coroutine that begins at once, and that no other coroutine awaits.
struct Job {
  // NOLINTNEXTLINE(readability-identifier-naming)
  struct promise_type {
    Job get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// Answers the third question after 1 ms, and all others after an hour.
class Server {
 public:
  explicit Server(carillon::TimerService& timers) : timers_(timers) {}

  Task<std::string> ask(const std::string& question, std::stop_token stop) {
    const auto time = ++asked_ == 3 ? std::chrono::nanoseconds(1ms) : 1h;
    // False: told to stop, so the caller no longer wants the answer.
    if (!co_await timers_.sleep_for(time, std::move(stop))) co_return "";
    co_return "the answer to " + question;
  }

 private:
  carillon::TimerService& timers_;
  int asked_ = 0;
};

// Returns nullopt if it was told to stop.
Task<std::optional<std::string>> ask_until_answered(carillon::TimerService& timers, Server& server,
                                                    std::string question, std::stop_token stop) {
  std::chrono::milliseconds pause = 5ms;
  for (int attempt = 1;; ++attempt) {
    const auto answer = co_await carillon::with_timeout(
        timers, [&](std::stop_token told) { return server.ask(question, std::move(told)); }, 100ms);
    if (answer) co_return *answer;
    std::printf("attempt %d timed out\n", attempt);
    if (!co_await timers.sleep_for(pause, stop)) co_return std::nullopt;
    pause *= 2;
  }
}

Job run(carillon::TimerService& timers, Server& server, std::stop_source& stop,
        std::atomic<bool>& done) {
  const auto answer = co_await ask_until_answered(timers, server, "life", {});
  std::printf("%s\n", answer->c_str());
  timers.schedule_after(150ms, [&] { stop.request_stop(); });
  const auto none = co_await ask_until_answered(timers, server, "everything", stop.get_token());
  std::puts(none ? none->c_str() : "told to stop");
  done = true;
  done.notify_one();
}

}  // namespace

int main() {
  std::stop_source stop;
  std::atomic<bool> done{false};
  // The coroutines run in a pool of two threads.
  carillon::TimerService timers({.executor = carillon::TimerExecutor::pool(2)});
  Server server(timers);
  run(timers, server, stop, done);
  done.wait(false);
  return timers.drain().empty() ? 0 : 1;
}
