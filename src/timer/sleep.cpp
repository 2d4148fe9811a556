#include "carillon/timer/sleep.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include "carillon/timer/detail/timeout_state.h"
#include "carillon/timer/timer_errors.h"
#include "carillon/timer/timer_service.h"
#include "timer/timer_core.h"

namespace carillon::detail {

// The task of a sleep's timer. It resumes the coroutine once: when it is called, or when it is
// destroyed without a call. It may be moved meanwhile; the sleeper always points to it.
class Sleeper::Resume {
 public:
  explicit Resume(Sleeper& sleeper) noexcept : sleeper_(&sleeper) { sleeper.task_ = this; }
  Resume(Resume&& other) noexcept : sleeper_(std::exchange(other.sleeper_, nullptr)) {
    if (sleeper_ != nullptr) sleeper_->task_ = this;
  }
  Resume& operator=(Resume&&) = delete;
  ~Resume() {
    if (sleeper_ != nullptr) sleeper_->will_not_come();
  }

  // The coroutine's frame, and the sleeper in it, may be gone when this returns.
  void operator()() { std::exchange(sleeper_, nullptr)->time_has_come(); }

  void forget_sleeper() noexcept { sleeper_ = nullptr; }

 private:
  Sleeper* sleeper_;
};

TimerHandle Sleeper::handle(NewTimer& timer) noexcept {
  TimerBlock& block = timer.block();
  return {block, block.word.generation()};
}

TimerHandle Sleeper::submit(const SleepTime& time, NewTimer& timer) {
  const std::chrono::nanoseconds slack(time.slack);
  return time.is_delay ? time.service->start_after(timer, time.ns, slack)
                       : time.service->start_at(timer, time.clock, time.ns, slack);
}

bool Sleeper::is_over_already(const SleepTime& time) {
  TimerCore& core = *time.service->core_;
  if (time.ns > (time.is_delay ? 0 : core.now_on(time.clock))) return false;
  core.refuse_if_ended();
  return true;
}

Sleeper::~Sleeper() {
  if (state_ != State::kAsleep) return;
  wake_up_.reset();
  task_->forget_sleeper();
  timer_.cancel();
}

bool Sleeper::await_ready() noexcept {
  if (!stop_.stop_requested()) return false;
  state_ = State::kAskedToStop;
  return true;
}

// From the moment at which the timer is submitted, another thread may resume the coroutine, and
// then `this` may be gone. So everything is made ready before that, the handle too: its generation
// is known already. The service may be gone as well, destroyed by a thread that waited for the
// coroutine's end; so its core is held until the timer has been submitted.
//
// With a stop token one step comes after that. A thread that asks to stop must not move the timer
// before it is submitted. Both set a bit in `stopping_`; the second one to do so moves the timer.
// The thread that resumes the coroutine waits until this one has set its bit, a few instructions;
// it does so with patience, because this one may have been preempted.
void Sleeper::await_suspend(std::coroutine_handle<> coroutine) {
  NewTimer task(std::in_place, Resume(*this));
  const TimerHandle timer = handle(task);
  const bool stoppable = stop_.stop_possible();
  const std::int64_t slack = time_.slack;
  TimerService& service = *time_.service;
  const std::shared_ptr<TimerCore> core = service.core_;
  core_ = core.get();
  deadline_ = time_.is_delay ? add_ns(now(), time_.ns) : time_.ns;
  coroutine_ = coroutine;
  timer_ = timer;
  if (stoppable) wake_up_.emplace(stop_, WakeUp{*this});
  state_ = State::kAsleep;
  try {
    service.start_at(task, time_.clock, deadline_, std::chrono::nanoseconds(time_.slack));
  } catch (...) {  // the timer was refused
    state_ = State::kAwake;
    task_->forget_sleeper();
    throw;
  }
  if (stoppable && (stopping_.fetch_or(kSubmitted, std::memory_order_acq_rel) & kAsked) != 0)
    wake(timer, slack);
}

bool Sleeper::time_came() const {
  if (state_ == State::kTimeHasCome) return true;
  if (state_ == State::kAskedToStop) return false;
  throw TimersStopped();
}

// Moves the timer to now, which fails if the timer is due already: so the timer's own word decides
// the outcome, and the executor resumes the coroutine. Less the slack, which the shard adds.
void Sleeper::wake(TimerHandle timer, std::int64_t slack) noexcept {
  timer.reschedule_after(std::chrono::nanoseconds(-slack));
}

void Sleeper::WakeUp::operator()() const noexcept {
  if ((sleeper.stopping_.fetch_or(kAsked, std::memory_order_acq_rel) & kSubmitted) != 0)
    wake(sleeper.timer_, sleeper.time_.slack);
}

// Returns true if the coroutine was asked to stop.
bool Sleeper::wait_until_submitted() const noexcept {
  if (!wake_up_.has_value()) return false;
  MachineAtomics::Patience patience;
  for (;;) {
    const unsigned stopping = stopping_.load(std::memory_order_acquire);
    if ((stopping & kSubmitted) != 0) return (stopping & kAsked) != 0;
    patience.wait();
  }
}

void Sleeper::time_has_come() {
  // If the timer is not running, stop() has returned the task, and its new owner has called it.
  // The core may be gone then.
  const bool asked = wait_until_submitted();
  if (timer_.state() != TimerState::kRunning) {
    state_ = State::kAwake;
  } else {
    state_ = asked && now() < deadline_ ? State::kAskedToStop : State::kTimeHasCome;
  }
  coroutine_.resume();
}

// The core is alive: the thread that runs the task holds it, and so does await_suspend().
std::int64_t Sleeper::now() const noexcept {
  return time_.clock == TimerKind::kSteady ? core_->steady_now() : core_->wall_now();
}

void Sleeper::will_not_come() noexcept {
  if (state_ != State::kAsleep) return;  // it was never submitted
  wait_until_submitted();
  state_ = State::kAwake;
  try {
    coroutine_.resume();
  } catch (...) {  // the service, and its on_error, may be gone
    print_error(std::current_exception());
  }
}

}  // namespace carillon::detail
