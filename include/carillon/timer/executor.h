// Executor: where the tasks of due timers run.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace carillon {
namespace detail {
class TimerCore;
struct TimerBlock;
}  // namespace detail

// A timer that is due, on its way to be run by an executor of your own: call it once, on any
// thread. Until then the timer can still be cancelled, and the call does nothing. Destroying it
// without calling it cancels the timer.
class DueTask {
 public:
  DueTask(std::shared_ptr<detail::TimerCore> core, detail::TimerBlock& block) noexcept;
  DueTask(DueTask&& other) noexcept
      : core_(std::move(other.core_)), block_(std::exchange(other.block_, nullptr)) {}
  DueTask& operator=(DueTask&&) = delete;
  ~DueTask();

  // What the task throws goes to TimerOptions::on_error, not to the caller.
  void operator()() noexcept;

 private:
  std::shared_ptr<detail::TimerCore> core_;
  detail::TimerBlock* block_;
};

class Executor {
 public:
  using Function = std::function<void(DueTask)>;

  // On the timer thread itself, one after the other: no hand-off, the least lateness, but a slow
  // task makes the others late.
  static Executor timer_thread() { return Executor(0, nullptr); }

  // On `threads` threads of the service's own.
  static Executor pool(unsigned threads) { return Executor(threads == 0 ? 1 : threads, nullptr); }

  // By a function of yours, which the timer thread calls with each due task, and which should not
  // block. If it throws, the task is not run: the exception goes to TimerOptions::on_error, and the
  // timer counts as cancelled.
  //
  //   carillon::Executor::by([&io](carillon::DueTask task) { asio::post(io, std::move(task)); })
  static Executor by(Function hand_over) { return Executor(0, std::move(hand_over)); }

  unsigned threads() const noexcept { return threads_; }
  const Function& function() const noexcept { return function_; }

 private:
  Executor(unsigned threads, Function hand_over)
      : threads_(threads), function_(std::move(hand_over)) {}

  unsigned threads_;
  Function function_;
};

}  // namespace carillon
