// The timer thread: sleeps until the next deadline, collects what is due, hands it to the executor.
#include <algorithm>
#include <memory>
#include <utility>

#include "timer/thread_setup.h"
#include "timer/timer_core.h"

namespace carillon::detail {
namespace {

// Whose timer thread the calling thread is.
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
  sleep_exactly();
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

// True: there is more.
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

// If the wall clock was set back far. (The alarm wakes the timer thread then: a timer on that clock
// is pending.)
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
  if (pool_ != nullptr) {
    pool_->push(due_);  // what a closed pool does not take, stop() does
    return;
  }
  std::int64_t now = steady_now();
  while (!due_.empty() && !hold_fire_.load(std::memory_order_relaxed)) {
    TimerBlock& block = due_.pop();
    due_.prefetch_task();  // it is on a line that nobody has touched since it was scheduled
    if (!options_.executor.function()) {
      run(block, timer_thread_stats_, now);
      continue;
    }
    try {
      options_.executor.function()(DueTask(shared_from_this(), block));
    } catch (...) {
      report(std::current_exception());
    }
  }
}

// Until the earliest deadline of all shards, or somebody publishes an earlier one (SleepGate).
void TimerCore::sleep() {
  const bool hold_fire = hold_fire_.load(std::memory_order_relaxed);
  std::int64_t steady = kForever;
  std::int64_t wall = kForever;
  const auto look = [&] {
    std::int64_t earliest_steady = kForever;
    std::int64_t earliest_wall = kForever;
    bool wanted = closing_.load(std::memory_order_seq_cst);
    for (const auto& shard : shards_) {
      wanted |= shard->wants_timer_thread();
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
    alarm_->sleep_until(steady_time(steady), wall == kForever ? WallTime::max() : wall_time(wall));
    add_one(wakeups_);
  }
  gate_.stay_awake();
}

// Runs when all that is left is periodic.
void TimerCore::notice_drained() {
  for (const auto& shard : shards_) shard->visit();  // so that every timer is counted
  if (pending() > periodic_.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(mutex_);
    drained_ = true;
  }
  drained_changed_.notify_all();
}

void TimerCore::close_shards(BlockList& rest) noexcept {
  closed_ = true;
  while (!due_.empty()) take_back_queued(due_.pop(), rest);
  for (const auto& shard : shards_) shard->close(rest);
}

}  // namespace carillon::detail
