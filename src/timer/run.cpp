// Running due timers: on the timer thread, on a worker, or on a thread of the user's.
#include <cstdio>
#include <exception>
#include <utility>

#include "carillon/timer/executor.h"
#include "timer/timer_core.h"

namespace carillon::detail {
namespace {

// The runs that the calling thread is inside of: an executor of the user's may run one task inside another.
struct RunFrame {
  const TimerCore& core;
  const TimerBlock& block;
  RunFrame* outer;
};
constinit thread_local RunFrame* innermost = nullptr;

// The next time of a periodic timer that was due at `due` and has ended its run at `now`.
std::int64_t next_time(Repeat repeat, std::int64_t period, std::int64_t due, std::int64_t now) noexcept {
  if (repeat == Repeat::kAfterRun) return add_ns(now, period);
  const std::int64_t next = add_ns(due, period);
  if (next > now || repeat == Repeat::kBurst) return next;
  if (repeat == Repeat::kDelay) return add_ns(now, period);
  return add_ns(next, add_ns(sub_ns(now, next) / period * period, period));
}

void print_error(std::exception_ptr what) noexcept {
  try {
    std::rethrow_exception(std::move(what));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon: a timer's task threw: %s\n", error.what());
  } catch (...) {
    std::fputs("carillon: a timer's task threw something that is not a std::exception\n", stderr);
  }
}

}  // namespace

bool running_here(const TimerBlock& block) noexcept {
  for (const RunFrame* frame = innermost; frame != nullptr; frame = frame->outer) {
    if (&frame->block == &block) return true;
  }
  return false;
}

bool runs_task_of(const TimerCore& core) noexcept {
  for (const RunFrame* frame = innermost; frame != nullptr; frame = frame->outer) {
    if (&frame->core == &core) return true;
  }
  return false;
}

void TimerCore::run(TimerBlock& block, RunStats& stats, std::int64_t& now) noexcept {
  if (!block.word.start()) return end_cancelled(block, stats);
  const bool once = block.repeat == Repeat::kOnce;
  const std::int64_t due = block.deadline.load(std::memory_order_relaxed);
  stats.ran(sub_ns(block.kind == TimerKind::kSteady ? now : wall_now(), due));
  if (once) {
    leave_room();
    stats.add(stats.fired);
  }
  RunFrame frame{*this, block, innermost};
  innermost = &frame;
  call(block, stats);
  const std::int64_t began = std::exchange(now, steady_now());
  stats.took(now - began);
  if (options_.slow_task.count() > 0 && now - began > options_.slow_task.count()) {
    stats.add(stats.slow);
    report_slow(now - began);
  }
  if (once) {
    block.destroy_task();
    finish_block(block);
  } else {
    run_again(block, stats, due, now);
  }
  innermost = frame.outer;
  timer_counted();
}

void TimerCore::call(TimerBlock& block, RunStats& stats) noexcept {
  try {
    block.ops->call(block.task);
  } catch (...) {
    stats.add(stats.failed);
    report(std::current_exception());
  }
}

void TimerCore::run_again(TimerBlock& block, RunStats& stats, std::int64_t due, std::int64_t now) noexcept {
  block.deadline.store(next_time(block.repeat, block.period, due, now), std::memory_order_release);
  switch (block.word.rearm()) {
    case TimerWord::Rearm::kEnded:
      timer_ended(block);
      stats.add(stats.cancelled);
      block.destroy_task();
      return finish_block(block);
    case TimerWord::Rearm::kArmedWaited:
      block.word.notify();
      break;
    case TimerWord::Rearm::kArmed:
      break;
  }
  if (block.shard->bring(block)) return;
  // stop() did not wait for this run, because it was called from it, or the executor is the user's.
  if (block.word.take_back_with_note() != TimerWord::TakeBack::kTaken) return end_cancelled(block, stats);
  timer_ended(block);
  stats.add(stats.fired);
  block.destroy_task();
  finish_block(block);
}

void TimerCore::end_cancelled(TimerBlock& block, RunStats& stats) noexcept {
  timer_ended(block);
  stats.add(stats.cancelled);
  timer_counted();
  if (block.word.let_go_of_place()) finish_unrun_block(block);
}

void TimerCore::abandon(TimerBlock& block) noexcept {
  // As if somebody had cancelled it a moment ago; unless somebody has.
  if (block.word.cancel(block.word.generation()) == TimerWord::Cancel::kWonElsewhere) {
    block.destroy_task();
    static_cast<void>(block.word.let_go_of_task());
  }
  end_cancelled(block, foreign_stats_);
}

void TimerCore::report(std::exception_ptr what) noexcept {
  if (!options_.on_error) return print_error(std::move(what));
  try {
    options_.on_error(std::move(what));
  } catch (...) {  // what can be done was done
  }
}

void TimerCore::report_slow(std::int64_t took) noexcept {
  if (!options_.on_slow_task) return;
  try {
    options_.on_slow_task(std::chrono::nanoseconds(took));
  } catch (...) {
    report(std::current_exception());
  }
}

}  // namespace carillon::detail

namespace carillon {

DueTask::DueTask(std::shared_ptr<detail::TimerCore> core, detail::TimerBlock& block) noexcept
    : core_(std::move(core)), block_(&block) {}

DueTask::~DueTask() {
  if (block_ != nullptr) core_->abandon(*block_);
}

void DueTask::operator()() noexcept {
  detail::TimerBlock* block = std::exchange(block_, nullptr);
  if (block == nullptr) return;
  std::int64_t now = core_->steady_now();
  core_->run(*block, core_->foreign_stats(), now);
}

}  // namespace carillon
