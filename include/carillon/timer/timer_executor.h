// TimerExecutor: where the tasks of due timers run.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <stdexcept>
#include <type_traits>
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
  DueTask& operator=(DueTask&& other) noexcept;
  ~DueTask();

  // An exception from the task goes to TimerOptions::on_error, not to the caller.
  void operator()() noexcept;

  // The same as a callable that can be copied, for pools that take a std::function. The copies are
  // one task: it ends with the first call, or with the last copy. Throws std::bad_alloc; the timer
  // counts as cancelled then.
  //
  //   TimerExecutor::by([&](carillon::DueTask task) { pool.submit(std::move(task).shared()); })
  std::function<void()> shared() &&;

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
  // as cancelled. Throws std::invalid_argument if the function is empty.
  //
  //   carillon::TimerExecutor::by(
  //       [&io](carillon::DueTask task) { asio::post(io, std::move(task)); })
  static TimerExecutor by(Function hand_over) {
    if (hand_over) return TimerExecutor(0, std::move(hand_over));
    throw std::invalid_argument(
        "carillon: TimerExecutor::by() was given an empty function; give it one that takes a "
        "DueTask, or make it TimerExecutor::timer_thread()");
  }

  unsigned threads() const noexcept { return threads_; }
  const Function& function() const noexcept { return function_; }

 private:
  TimerExecutor(unsigned threads, Function hand_over)
      : threads_(threads), function_(std::move(hand_over)) {}

  unsigned threads_;
  Function function_;
};

// An executor that was added to a service, for single timers: TimerService::add_executor().
struct ExecutorId {
  std::uint32_t number = 0;  // 0: the service's own

  friend bool operator==(const ExecutorId&, const ExecutorId&) = default;
};

// A task with an executor.
template <class F>
struct OnExecutor {
  ExecutorId executor;
  F task;
};

// Says where the task of one timer runs. REQUIRES: the service that gets it has given the id.
//
//   const carillon::ExecutorId io = timers.add_executor(carillon::TimerExecutor::by(post_to_io));
//   timers.schedule_after(30s, carillon::on_executor(io, [] { ... }));
template <class F>
OnExecutor<std::decay_t<F>> on_executor(ExecutorId executor, F&& task) {
  return {executor, std::forward<F>(task)};
}

namespace detail {
template <class F>
inline constexpr bool kHasExecutor = false;
template <class F>
inline constexpr bool kHasExecutor<OnExecutor<F>> = true;
}  // namespace detail

}  // namespace carillon

template <>
struct std::hash<carillon::ExecutorId> {
  std::size_t operator()(carillon::ExecutorId id) const noexcept {
    return std::hash<std::uint32_t>()(id.number);
  }
};
