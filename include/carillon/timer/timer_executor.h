// TimerExecutor: where the tasks of due timers run.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <utility>

namespace carillon {
namespace detail {
class TimerCore;
struct TimerBlock;
}  // namespace detail

// A timer that is due, handed to an executor of your own: call it once, on any thread. Until the
// call, the timer can still be cancelled; the call then does nothing. Destroying a DueTask that was
// not called cancels the timer. A DueTask may outlive its service: stop() takes its timer back, and
// the call does nothing then.
class DueTask {
 public:
  DueTask(std::shared_ptr<detail::TimerCore> core,
          std::list<detail::TimerBlock*>::iterator place) noexcept;
  DueTask(DueTask&& other) noexcept : core_(std::move(other.core_)), place_(other.place_) {}
  DueTask& operator=(DueTask&&) = delete;
  ~DueTask();

  // An exception from the task goes to TimerOptions::on_error, not to the caller.
  void operator()() noexcept;

 private:
  std::shared_ptr<detail::TimerCore> core_;  // null once it was called
  std::list<detail::TimerBlock*>::iterator place_;
};

class TimerExecutor {
 public:
  using Function = std::function<void(DueTask)>;

  // Tasks run on the timer thread itself, one after the other. There is no hand-over, so lateness
  // is the least; but a slow task makes the others late.
  static TimerExecutor timer_thread() { return TimerExecutor(0, nullptr); }

  // Tasks run on `threads` threads that belong to the service; 0 counts as 1.
  static TimerExecutor pool(unsigned threads) {
    return TimerExecutor(threads == 0 ? 1 : threads, nullptr);
  }

  // The timer thread hands each due task to this function of yours, which should not block. If it
  // throws, the task is not run: the exception goes to TimerOptions::on_error, and the timer counts
  // as cancelled.
  //
  //   carillon::TimerExecutor::by(
  //       [&io](carillon::DueTask task) { asio::post(io, std::move(task)); })
  static TimerExecutor by(Function hand_over) { return TimerExecutor(0, std::move(hand_over)); }

  unsigned threads() const noexcept { return threads_; }
  const Function& function() const noexcept { return function_; }

 private:
  TimerExecutor(unsigned threads, Function hand_over)
      : threads_(threads), function_(std::move(hand_over)) {}

  unsigned threads_;
  Function function_;
};

}  // namespace carillon
