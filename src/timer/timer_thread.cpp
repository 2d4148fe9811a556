// TimerCore: the timer thread, which sleeps until the next deadline, collects the timers that are
// due, and hands them to the executor.
#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "timer/timer_core.h"

namespace carillon::detail {
namespace {

// The core whose timer thread the calling thread is; null if it is not a timer thread.
constinit thread_local const TimerCore* timer_thread_of = nullptr;

WallTime wall_time(std::int64_t ns) noexcept {
  return WallTime(std::chrono::nanoseconds(ns));
}
SteadyTime steady_time(std::int64_t ns) noexcept {
  return SteadyTime(std::chrono::nanoseconds(ns));
}

}  // namespace

bool is_timer_thread() noexcept {
  return timer_thread_of != nullptr;
}

bool TimerCore::is_its_timer_thread() const noexcept {
  return timer_thread_of == this;
}

void TimerCore::turn_wheels() {
  timer_thread_of = this;
  for (;;) {
    const ClockTimes now = read_clocks();
    const bool more = collect_due(now);
    recall_calendar_timers(now);
    hand_over_due();
    if (closed_) return;
    if (closing_.load(std::memory_order_acquire)) return close_shards(found_);
    if (draining_.load(std::memory_order_relaxed)) notice_drained();
    if (!more) sleep();
  }
}

// Returns true if there are more.
bool TimerCore::collect_due(const ClockTimes& now) {
  bool more = false;
  const bool hold_fire = hold_fire_.load(std::memory_order_relaxed);
  for (const auto& shard : shards_) {
    const bool due = shard->earliest(TimerKind::kSteady) <= now.steady ||
                     shard->earliest(TimerKind::kWall) <= now.wall;
    if (due && !hold_fire) {
      more |= shard->collect(now, due_);
    } else if (shard->wants_timer_thread()) {
      shard->visit();
    }
  }
  return more;
}

// Does something only if the wall clock was set back far. (The alarm has woken the timer thread
// then, if a timer on that clock is pending.)
void TimerCore::recall_calendar_timers(const ClockTimes& now) noexcept {
  const std::int64_t ahead = sub_ns(now.wall, now.steady);
  if (set_back_far(wall_ahead_, ahead) && !hold_fire_.load(std::memory_order_relaxed)) {
    for (const auto& shard : shards_) {
      if (!shard->recall_calendar_timers(now, due_)) return;
    }
  }
  wall_ahead_ = ahead;
}

void TimerCore::hand_over_due() {
  if (due_.empty()) return;
  BlockList for_pool;
  std::int64_t now = steady_now();
  while (!due_.empty() && !hold_fire_.load(std::memory_order_relaxed)) {
    TimerBlock& block = due_.pop();
    if (block.executor == 0 && pool_ != nullptr) {
      for_pool.push(block);
      continue;
    }
    due_.prefetch_task();  // its cache line was not touched since it was scheduled
    const TimerExecutor& executor = executor_of(block);
    if (!executor.function()) {
      run(block, timer_thread_stats_, now);
    } else if (!hand_to_foreign(block, executor)) {
      due_.push(block);  // stop() returns it
      break;
    }
  }
  if (for_pool.empty()) return;
  pool_->push(for_pool);
  due_.append(for_pool);  // empty, unless the pool is closed; then stop() returns them
}

const TimerExecutor& TimerCore::executor_of(const TimerBlock& block) noexcept {
  if (block.executor == 0) [[likely]]
    return options_.executor;
  const std::lock_guard lock(mutex_);
  return executors_[block.executor - 1];
}

// Returns false if stop() has begun: the block is still the caller's.
bool TimerCore::hand_to_foreign(TimerBlock& block, const TimerExecutor& executor) noexcept {
  try {
    std::optional<ForeignTasks::Place> place;
    try {
      place = foreign_.add(block);
    } catch (const std::bad_alloc&) {
      abandon(block);
      throw;
    }
    if (!place) return false;
    executor.function()(DueTask(shared_from_this(), *place));
  } catch (...) {
    report(std::current_exception());
  }
  return true;
}

// Sleeps until the earliest deadline of all shards, or until a thread publishes an earlier one
// (SleepGate).
void TimerCore::sleep() {
  const bool hold_fire = hold_fire_.load(std::memory_order_relaxed);
  std::int64_t steady = kForever;
  std::int64_t wall = kForever;
  bool awaits = false;
  const auto look = [&] {
    std::int64_t earliest_steady = kForever;
    std::int64_t earliest_wall = kForever;
    bool wanted = closing_.load(std::memory_order_seq_cst);
    for (const auto& shard : shards_) {
      wanted |= shard->wants_timer_thread();
      awaits |= shard->is_awaited();
      if (hold_fire) continue;
      earliest_steady = std::min(earliest_steady, shard->earliest(TimerKind::kSteady));
      earliest_wall = std::min(earliest_wall, shard->earliest(TimerKind::kWall));
    }
    const bool unchanged = earliest_steady >= steady && earliest_wall >= wall && !wanted;
    steady = earliest_steady;
    wall = earliest_wall;
    return unchanged;
  };
  look();
  gate_.announce(steady);
  if (look()) {
    const WallTime until = wall == kForever ? WallTime::max() : wall_time(wall);
    awaits ? alarm_->await_wake(steady_time(steady), until)
           : alarm_->sleep_until(steady_time(steady), until);
    add_one(wakeups_);
  }
  gate_.stay_awake();
}

// Wakes drain() if only periodic timers are left.
void TimerCore::notice_drained() {
  // A visit reads the notes, so that every timer is counted.
  for (const auto& shard : shards_) {
    if (!shard->visit()) return;  // it is visited again when the timer thread is called
  }
  if (pending() > periodic_.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(mutex_);
    drained_ = true;
  }
  end_changed_.notify_all();
}

void TimerCore::close_shards(BlockList& rest) noexcept {
  closed_ = true;
  while (!due_.empty()) take_back_queued(due_.pop(), rest);
  for (const auto& shard : shards_) {
    while (!shard->close(rest)) {
      gate_.announce(kForever);
      if (!shard->wants_timer_thread())
        alarm_->await_wake(steady_time(kForever), wall_time(kForever));
      gate_.stay_awake();
    }
  }
}

}  // namespace carillon::detail
