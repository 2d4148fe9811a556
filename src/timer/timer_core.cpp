#include "timer/timer_core.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "timer/block_pool.h"
#include "timer/forks.h"
#include "timer/thread_index.h"
#include "timer/thread_setup.h"

namespace carillon::detail {
namespace {

std::int64_t checked_tick(std::chrono::nanoseconds tick) {
  if (tick.count() >= 1) return tick.count();
  throw std::invalid_argument("carillon: the tick of a TimerService is " +
                              std::to_string(tick.count()) + " ns; it must be at least 1 ns");
}

constexpr std::chrono::milliseconds kDrainPatience(20);

unsigned shard_count(unsigned wanted) {
  if (wanted != 0) return std::bit_ceil(std::min(wanted, 1024U));
  return std::bit_ceil(std::clamp(2 * std::thread::hardware_concurrency(), 4U, 64U));
}

}  // namespace

TimerCore::TimerCore(TimerOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? options_.clock : machine_clock()),
      on_machine_clock_(clock_ == machine_clock()),
      scale_(checked_tick(options_.tick)) {
  for (unsigned count = shard_count(options_.shards); count > 0; --count)
    shards_.push_back(std::make_unique<TimerShard>(*this));
  if (options_.executor.threads() > 0)
    pool_ = std::make_unique<WorkerPool>(options_.executor.threads());
}

std::int64_t TimerCore::steady_now() const noexcept {
  if (on_machine_clock_) return to_ns(std::chrono::steady_clock::now().time_since_epoch());
  return clock_->now().time_since_epoch().count();
}

std::int64_t TimerCore::wall_now() const noexcept {
  return clock_->wall_now().time_since_epoch().count();
}

TimerShard& TimerCore::shard_of_this_thread() const noexcept {
  return *shards_[index_of_this_thread() & (shards_.size() - 1)];
}

// --- scheduling

ExecutorId TimerCore::add_executor(TimerExecutor executor) {
  if (executor.threads() > 0)
    throw std::invalid_argument(
        "carillon: a timer's own executor was a pool; make it TimerExecutor::by(...) or "
        "timer_thread()");
  const std::lock_guard lock(mutex_);
  executors_.push_back(std::move(executor));
  return ExecutorId{static_cast<std::uint32_t>(executors_.size())};
}

TimerHandle TimerCore::submit(NewTimer& timer) {
  if (stage_.load(std::memory_order_acquire) != Stage::kRunning) [[unlikely]]
    start();
  refuse_if_forked();
  if (timer.block().executor != 0) [[unlikely]]
    check_executor(timer.block().executor);
  if (options_.max_pending != TimerOptions::kUnlimited) find_room();
  TimerBlock& block = timer.block();
  TimerShard& shard = shard_of_this_thread();
  block.shard = &shard;
  const TimerHandle handle(
      block, block.word.arm(block.repeat != Repeat::kOnce, block.kind == TimerKind::kWall));
  const auto undo = [&] {
    leave_room();
    timer.refused();
  };
  try {
    if (shard.submit(block)) [[likely]] {
      timer.scheduled();
      return handle;
    }
  } catch (...) {
    undo();
    throw;
  }
  undo();
  refuse(std::make_exception_ptr(TimersStopped()));
}

void TimerCore::check_executor(std::uint32_t executor) {
  const std::lock_guard lock(mutex_);
  if (executor <= executors_.size()) return;
  throw std::invalid_argument("carillon: a timer has executor " + std::to_string(executor) +
                              ", and its service has " + std::to_string(executors_.size()) +
                              "; ids are those of the same service's add_executor()");
}

// Starts the threads, for the first timer. Throws TimersStopped if the service was stopped.
void TimerCore::start() {
  const std::unique_lock lock(mutex_);
  if (stage_.load(std::memory_order_relaxed) == Stage::kRefusing)
    refuse(std::make_exception_ptr(TimersStopped()));
  if (stage_.load(std::memory_order_relaxed) == Stage::kRunning) return;
  if (!timer_thread_.joinable()) {
    watch_forks();
    alarm_ = clock_->make_alarm();
    alarm_->open();
    try {
      timer_thread_ = start_thread(options_.name, [core = shared_from_this()] {
        core->turn_wheels();
        core->alarm_->close();
        core->thread_ended();
      });
      ++threads_;
      forks_.store(fork_count(), std::memory_order_relaxed);
    } catch (...) {
      alarm_->close();
      throw;
    }
  }
  if (pool_ != nullptr) threads_ += pool_->start(shared_from_this());
  stage_.store(Stage::kRunning, std::memory_order_release);
}

bool TimerCore::is_forked() const noexcept {
  const std::int64_t forks = forks_.load(std::memory_order_relaxed);
  return forks != kNeverStarted && forks != fork_count();
}

void TimerCore::refuse_if_forked() const {
  if (is_forked()) [[unlikely]]
    throw TimersForked();
}

void TimerCore::refuse_if_ended() {
  if (stage_.load(std::memory_order_acquire) == Stage::kRefusing)
    refuse(std::make_exception_ptr(TimersStopped()));
  refuse_if_forked();
}

void TimerCore::refuse(std::exception_ptr why) {
  rejected_.fetch_add(1, std::memory_order_relaxed);
  std::rethrow_exception(std::move(why));
}

void TimerCore::find_room() {
  std::size_t admitted = admitted_.load(std::memory_order_relaxed);
  do {
    if (admitted >= options_.max_pending)
      refuse(std::make_exception_ptr(TooManyTimers(options_.max_pending, admitted)));
  } while (!admitted_.compare_exchange_weak(admitted, admitted + 1, std::memory_order_relaxed));
}

void TimerCore::leave_room() noexcept {
  if (options_.max_pending != TimerOptions::kUnlimited)
    admitted_.fetch_sub(1, std::memory_order_relaxed);
}

void TimerCore::timer_begun(const TimerBlock& block) noexcept {
  if (block.repeat != Repeat::kOnce) periodic_.fetch_add(1, std::memory_order_relaxed);
}

void TimerCore::timer_ended(const TimerBlock& block) noexcept {
  leave_room();
  if (block.repeat != Repeat::kOnce) periodic_.fetch_sub(1, std::memory_order_relaxed);
}

// --- the end

std::vector<Unprocessed> TimerCore::stop() {
  refuse_if_forked();
  close();
  BlockList rest = take_rest();
  std::vector<Unprocessed> returned;
  try {
    returned.reserve(rest.count());
  } catch (...) {  // the next call of stop() returns them
    const std::lock_guard lock(mutex_);
    rest_.append(rest);
    throw;
  }
  while (!rest.empty()) returned.push_back(hand_out(rest.pop()));
  std::stable_sort(returned.begin(), returned.end(),
                   [](const Unprocessed& a, const Unprocessed& b) { return a.due < b.due; });
  return returned;
}

void TimerCore::discard() noexcept {
  if (is_forked()) return;  // other threads may have been at work on all of it
  const KeepsNoBlocks static_destructors_may_be_running;
  close();
  await_tasks();
  for (BlockList rest = take_rest(); !rest.empty();) {
    TimerBlock& block = rest.pop();
    block.destroy_task();
    finish_block(block);
  }
}

void TimerCore::close() noexcept {
  bool on_timer_thread = false;
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(stopped_, true)) {
      // Another thread is at it, and may be waiting for the task that this one is inside of.
      if (!is_called_by_its_own_work()) end_changed_.wait(lock, [this] { return ended_; });
      return;
    }
    stage_.store(Stage::kRefusing, std::memory_order_release);
    if (!timer_thread_.joinable()) {  // it was never started, and never will be
      ended_ = true;
      return;
    }
    on_timer_thread = timer_thread_.get_id() == std::this_thread::get_id();
  }
  end_changed_.notify_all();
  hold_fire_.store(true, std::memory_order_relaxed);
  BlockList rest;
  for (BlockList handed_over = foreign_.close(); !handed_over.empty();)
    take_back_queued(handed_over.pop(), rest);
  foreign_.await(foreign_tasks_here(*this));
  if (pool_ != nullptr) {
    for (BlockList queued = pool_->close(); !queued.empty();) take_back_queued(queued.pop(), rest);
    pool_->join();
  }
  if (on_timer_thread) {
    close_shards(rest);
    timer_thread_.detach();
  } else {
    closing_.store(true, std::memory_order_release);
    alarm_->wake();
    timer_thread_.join();
    rest.append(found_);
  }
  const std::lock_guard lock(mutex_);
  rest_.append(rest);
  ended_ = true;
  end_changed_.notify_all();
}

// Returns true if the calling thread is inside of something that stop() would wait for.
bool TimerCore::is_called_by_its_own_work() const noexcept {
  return is_its_timer_thread() || runs_task_of(*this) || foreign_tasks_here(*this) > 0;
}

// Waits for the task that has called stop(), unless this thread is inside of it.
void TimerCore::await_tasks() noexcept {
  foreign_.await(foreign_tasks_here(*this));
  const bool own = is_its_timer_thread() || (pool_ != nullptr && runs_task_of(*this));
  std::unique_lock lock(mutex_);
  end_changed_.wait(lock, [this, own] { return threads_ <= (own ? 1U : 0U); });
}

void TimerCore::thread_ended() noexcept {
  const std::lock_guard lock(mutex_);
  --threads_;
  end_changed_.notify_all();
}

BlockList TimerCore::take_rest() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(rest_, BlockList{});
}

Unprocessed TimerCore::hand_out(TimerBlock& block) noexcept {
  const bool by_calendar = goes_by_calendar(block.repeat);
  Unprocessed returned{
      .handle = TimerHandle(block, block.word.generation()),
      .task = TimerTask(*block.ops, block.task),
      .due = std::chrono::nanoseconds(block.deadline.load(std::memory_order_relaxed)),
      .on_wall_clock = block.kind == TimerKind::kWall,
      .period =
          std::chrono::nanoseconds(block.repeat == Repeat::kOnce || by_calendar ? 0 : block.period),
      .by_calendar = by_calendar};
  finish_block(block);
  return returned;
}

std::vector<Unprocessed> TimerCore::drain(std::int64_t at_most) {
  refuse_if_forked();
  if (runs_task_of(*this))
    throw std::logic_error(
        "carillon: drain() was called from inside a task, which it would wait for");
  {
    std::unique_lock lock(mutex_);
    const bool started =
        stage_.exchange(Stage::kRefusing, std::memory_order_acq_rel) == Stage::kRunning;
    if (started && !stopped_) {
      draining_.store(true, std::memory_order_seq_cst);
      const auto done = [this] { return stopped_ || drained_; };
      const auto give_up = at_most > kForever / 2 ? std::chrono::steady_clock::time_point::max()
                                                  : std::chrono::steady_clock::now() +
                                                        std::chrono::nanoseconds(at_most);
      // A thread that ends a timer counts it, and then looks whether it must wake the timer thread.
      // There is no fence between the two (it would be dear at the end of each timer), so it may
      // look too early, and miss that drain() has begun. So the timer thread is woken now and then.
      while (!done() && std::chrono::steady_clock::now() < give_up) {
        alarm_->wake();
        end_changed_.wait_until(
            lock, std::min(give_up, std::chrono::steady_clock::now() + kDrainPatience), done);
      }
    }
  }
  return stop();
}

void TimerCore::take_back(TimerBlock& block, BlockList& rest) noexcept {
  timer_ended(block);
  returned_.fetch_add(1, std::memory_order_relaxed);
  rest.push(block);
}

void TimerCore::take_back_queued(TimerBlock& block, BlockList& rest) noexcept {
  if (block.word.take_back() == TimerWord::TakeBack::kTaken) return take_back(block, rest);
  end_cancelled(block, foreign_stats_);
}

// --- numbers

std::uint64_t TimerCore::pending() const noexcept {
  TimerStats sum;
  add_counts_to(sum);
  return sum.pending;
}

void TimerCore::add_to(TimerStats& sum) const {
  add_counts_to(sum);
  sum.rejected = rejected_.load(std::memory_order_relaxed);
  sum.wakeups = wakeups_.load(std::memory_order_relaxed);
}

// The ends are read before the beginnings, so that `pending` is too high rather than too low while
// threads are at work. One exception: a timer counts from when it has come into its shard, so a
// timer whose note is still unread is missing.
void TimerCore::add_counts_to(TimerStats& sum) const noexcept {
  timer_thread_stats_.add_to(sum);
  foreign_stats_.add_to(sum);
  if (pool_ != nullptr) pool_->add_to(sum);
  sum.returned = returned_.load(std::memory_order_relaxed);
  for (const auto& shard : shards_) sum.cancelled += shard->cancelled();
  for (const auto& shard : shards_) sum.scheduled += shard->scheduled();
  const std::uint64_t ended = sum.fired + sum.cancelled + sum.returned;
  sum.pending = sum.scheduled > ended ? sum.scheduled - ended : 0;
}

}  // namespace carillon::detail
