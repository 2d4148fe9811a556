// TimerCore and DueTask: running the task of a due timer, on the timer thread, on a worker, or on a
// thread of the user's executor.
#include <cstdio>
#include <exception>
#include <utility>

#include "carillon/timer/timer_executor.h"
#include "timer/timer_core.h"

namespace carillon::detail {
namespace {

constinit thread_local RunFrame* innermost = nullptr;

// One DueTask whose call or destructor the calling thread is inside of.
struct ForeignFrame {
  const TimerCore& core;
  ForeignFrame* outer;
};
constinit thread_local ForeignFrame* innermost_foreign = nullptr;

// One cancelled task whose destructor the calling thread is inside of.
struct DestructorFrame {
  const TimerBlock& block;
  DestructorFrame* outer;
};
constinit thread_local DestructorFrame* innermost_destructor = nullptr;

}  // namespace

std::int64_t next_period(Repeat repeat, std::int64_t period, std::int64_t due,
                         std::int64_t now) noexcept {
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

void destroy_cancelled_task(TimerBlock& block) noexcept {
  if (block.ops->destroy == nullptr) return;
  DestructorFrame frame{block, innermost_destructor};
  innermost_destructor = &frame;
  block.destroy_task();
  innermost_destructor = frame.outer;
}

bool running_here(const TimerBlock& block) noexcept {
  for (const DestructorFrame* frame = innermost_destructor; frame != nullptr;
       frame = frame->outer) {
    if (&frame->block == &block) return true;
  }
  for (const RunFrame* frame = innermost; frame != nullptr; frame = frame->outer) {
    if (&frame->block == &block) return true;
  }
  return false;
}

RunFrame* periodic_run_here(const TimerBlock& block, std::uint32_t generation) noexcept {
  for (RunFrame* frame = innermost; frame != nullptr; frame = frame->outer) {
    if (&frame->block != &block) continue;
    const bool goes_on = block.repeat != Repeat::kOnce && !block.word.ending();
    return goes_on && block.word.generation() == generation ? frame : nullptr;
  }
  return nullptr;
}

bool runs_task_of(const TimerCore& core) noexcept {
  for (const RunFrame* frame = innermost; frame != nullptr; frame = frame->outer) {
    if (&frame->core == &core) return true;
  }
  return false;
}

unsigned foreign_tasks_here(const TimerCore& core) noexcept {
  unsigned count = 0;
  for (const ForeignFrame* frame = innermost_foreign; frame != nullptr; frame = frame->outer) {
    if (&frame->core == &core) ++count;
  }
  return count;
}

void TimerCore::run(TimerBlock& block, RunStats& stats, std::int64_t& now) noexcept {
  if (!block.word.start()) return end_cancelled(block, stats);
  const bool once = block.repeat == Repeat::kOnce;
  const std::int64_t due = block.deadline.load(std::memory_order_relaxed);
  if (!once && goes_by_calendar(block.repeat) && wall_now() < due)
    return wait_for_wall_clock(block, stats, due);
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
    run_again(frame, stats, due, now);
  }
  innermost = frame.outer;
  timer_counted();
}

void TimerCore::call(TimerBlock& block, RunStats& stats) noexcept {
  try {
    block.ops->call(block.task, TimerHandle(block, block.word.generation()));
  } catch (...) {
    stats.add(stats.failed);
    report(std::current_exception());
  }
}

void TimerCore::run_again(const RunFrame& run, RunStats& stats, std::int64_t due,
                          std::int64_t now) noexcept {
  TimerBlock& block = run.block;
  if (run.next != RunFrame::kAsPlanned) return arm_again(block, stats, run.next);
  if (!goes_by_calendar(block.repeat))
    return arm_again(block, stats, next_period(block.repeat, block.period, due, now));
  // The next time is after `due` even if the clock shows less: a clock that was set back a little
  // must not bring the same time again.
  const std::int64_t wall = wall_now();
  const bool from_due = block.repeat == Repeat::kCalendarBurst || wall < due;
  arm_by_calendar(block, stats, from_due && !set_back_far(due, wall) ? due : wall);
}

// For a timer that goes by a calendar and was handed over before its time: the wall clock was set
// back in between.
void TimerCore::wait_for_wall_clock(TimerBlock& block, RunStats& stats, std::int64_t due) noexcept {
  RunFrame frame{*this, block, innermost};
  innermost = &frame;
  const std::int64_t wall = wall_now();
  if (set_back_far(due, wall)) {
    arm_by_calendar(block, stats, wall);
  } else {
    arm_again(block, stats, due);
  }
  innermost = frame.outer;
  timer_counted();
}

void TimerCore::arm_by_calendar(TimerBlock& block, RunStats& stats, std::int64_t after) noexcept {
  std::int64_t next = kForever;
  if (!block.word.ending()) {
    try {
      next = block.ops->next_time(block.task, after);
    } catch (...) {
      report(std::current_exception());
    }
    if (next == kForever) {
      const bool cancelled = block.word.end_periods();
      timer_ended(block);
      stats.add(cancelled ? stats.cancelled : stats.fired);
      block.destroy_task();
      return finish_block(block);
    }
  }
  arm_again(block, stats, next);
}

void TimerCore::arm_again(TimerBlock& block, RunStats& stats, std::int64_t deadline) noexcept {
  block.deadline.store(deadline, std::memory_order_release);
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
  if (block.shard->submit_again(block)) return;
  // The shard is shut: stop() did not wait for this run, because the run itself called stop().
  if (block.word.take_back_with_note() != TimerWord::TakeBack::kTaken)
    return end_cancelled(block, stats);
  timer_ended(block);
  stats.add(stats.fired);
  block.destroy_task();
  finish_block(block);
}

void TimerCore::end_cancelled(TimerBlock& block, RunStats& stats) noexcept {
  timer_ended(block);
  stats.add(stats.cancelled);
  timer_counted();
  if (block.word.let_go_as_holder()) finish_block(block);
}

void TimerCore::take_foreign(ForeignTasks::Place place, bool run_it) noexcept {
  TimerBlock* const block = foreign_.begin(place);
  if (block == nullptr) return;
  ForeignFrame frame{*this, innermost_foreign};
  innermost_foreign = &frame;
  if (run_it) {
    std::int64_t now = steady_now();
    run(*block, foreign_stats_, now);
  } else {
    abandon(*block);
  }
  innermost_foreign = frame.outer;
  foreign_.end();
}

void TimerCore::abandon(TimerBlock& block) noexcept {
  // The timer ends as if it had been cancelled a moment ago, unless it was cancelled indeed.
  if (block.word.cancel(block.word.generation()) == TimerWord::Cancel::kWonElsewhere) {
    destroy_cancelled_task(block);
    static_cast<void>(block.word.let_go_of_task());
  }
  end_cancelled(block, foreign_stats_);
}

void TimerCore::report(std::exception_ptr what) noexcept {
  if (!options_.on_error) return print_error(std::move(what));
  try {
    options_.on_error(std::move(what));
  } catch (...) {  // there is nobody left to tell
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

DueTask::DueTask(std::shared_ptr<detail::TimerCore> core,
                 std::list<detail::TimerBlock*>::iterator place) noexcept
    : core_(std::move(core)), place_(place) {}

TimerHandle this_timer() noexcept {
  const detail::RunFrame* run = detail::innermost;
  return run == nullptr ? TimerHandle() : TimerHandle(run->block, run->block.word.generation());
}

DueTask& DueTask::operator=(DueTask&& other) noexcept {
  if (this != &other) {
    const DueTask former = std::move(*this);
    core_ = std::move(other.core_);
    place_ = other.place_;
  }
  return *this;
}

std::function<void()> DueTask::shared() && {
  return [task = std::make_shared<DueTask>(std::move(*this))] { (*task)(); };
}

DueTask::~DueTask() {
  if (core_ != nullptr) core_->take_foreign(place_, false);
}

void DueTask::operator()() noexcept {
  const auto core = std::exchange(core_, nullptr);
  if (core != nullptr) core->take_foreign(place_, true);
}

}  // namespace carillon
