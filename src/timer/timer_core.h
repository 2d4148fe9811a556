// TimerCore: what a TimerService is made of, shared by the service, its threads and the due tasks
// that are with an executor.
//
// Who does what
//  - A timer is a block (detail/timer_block.h). Its word (detail/timer_word.h) says in which phase
//    it is; whoever's compare-and-swap takes it out of `armed` or `queued` has won it, and alone
//    decides its end. Everything else only carries blocks about.
//  - A shard is a wheel for each clock behind a door (detail/door.h). Threads that schedule, cancel
//    or move a timer to earlier enter, or leave the block as a note with who is inside. Nobody
//    waits at a door but the timer thread, and that for one visit of somebody else's. Threads have
//    home shards, so that doors are mostly open and their cache lines stay where they are.
//  - The timer thread (timer_thread.cpp) collects what is due, a bounded number per visit, and
//    hands it over when it is outside again.
//  - Tasks are called, moved and destroyed outside all doors and locks.
//
// Sleep and wake (detail/sleep_gate.h)
//    Each shard publishes the earliest moment at which the timer thread must look in. It may be too early (a timer was
//    cancelled), never too late. Who makes it earlier asks the gate whether the timer thread sleeps for longer, and
//    wakes it if so. The timer thread announces its sleep, looks at all shards once more, and sleeps. What follows from
//    somebody else's doing (closing, draining) wakes it unasked: an alarm keeps a wake-up for the next sleep.
//
// Hand-over
//    A due timer is `queued`, and can still be cancelled, until its run starts. Its block is then in one queue: the
//    timer thread's, the pool's, or in a DueTask. Whoever takes it from there runs it (run.cpp) or finds it cancelled.
//    A periodic timer is armed again when its run has ended, so there is never a second run beside it.
//    One that goes by a calendar asks it for the next time then. When the wall clock was set back far, it is handed over
//    before its time: it is not run, and asks its calendar again (run.cpp).
//
// Who frees what, and when
//  - A block is finished (next generation: no handle reaches it) and released to the pool of the
//    process, once: by who ran it, by who took it back, or, if it was cancelled, by the last of who
//    took its task and who held it in a note, a wheel or a queue.
//  - The task goes first: when its end can be seen (cancel_and_wait), it is destroyed. Except in
//    cancel(): there the block is let go of first, so that a destructor may stop the service, which
//    waits for blocks.
//  - The core lives as long as anybody holds it: the service, its threads while they run, each
//    DueTask. A TimerHandle does not. So a handle touches a shard only while the shard waits for
//    it: from winning a timer that stop() must account for, up to leaving the door or the note
//    (TimerShard::close).
//
// The end
//    stop() refuses new timers; stops firing; takes back what the pool has not begun, and waits for what it has; then
//    the timer thread closes one shard after the other: takes back all that is in its wheels, waits for notes of timers
//    that were won a moment ago, and shuts the door for good. Who schedules finds a shard either open, and the timer is
//    returned, or shut, and is refused. Called on the timer thread, stop() does the same there, and the thread ends
//    when the present task has. drain() is the same when all that is not periodic has ended.
//    What was taken back is a list of blocks, so that the end needs no memory; what the caller gets is made of it
//    afterwards.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "carillon/timer/detail/sleep_gate.h"
#include "carillon/timer/timer_service.h"
#include "timer/block_list.h"
#include "timer/run_stats.h"
#include "timer/tick_scale.h"
#include "timer/timer_shard.h"
#include "timer/worker_pool.h"

namespace carillon::detail {

class TimerCore : public std::enable_shared_from_this<TimerCore> {
 public:
  explicit TimerCore(TimerOptions options);
  TimerCore(const TimerCore&) = delete;
  TimerCore& operator=(const TimerCore&) = delete;

  // --- scheduling
  // Puts a timer whose fields are set on its way. Throws as TimerService's schedule_after() does.
  TimerHandle submit(NewTimer& timer);

  // --- the end
  std::vector<Unprocessed> stop();
  // The same for who wants nothing back; and needs no memory.
  void discard() noexcept;
  std::vector<Unprocessed> drain(std::int64_t at_most);

  // --- for shards, workers and handles
  const TimerOptions& options() const noexcept { return options_; }
  const TickScale& scale() const noexcept { return scale_; }
  std::int64_t steady_now() const noexcept;
  std::int64_t wall_now() const noexcept;
  ClockTimes read_clocks() const noexcept { return {steady_now(), wall_now()}; }

  // A deadline was published, in ns of the steady clock: wakes the timer thread if it would sleep
  // past it.
  void call_timer_thread(std::int64_t deadline) noexcept {
    if (gate_.must_wake(deadline)) alarm_->wake();
  }

  // A timer has come to its shard; and it has ended other than by running: before that is counted,
  // so that `pending` minus `periodic_` is never too low.
  void timer_begun(const TimerBlock& block) noexcept;
  void timer_ended(const TimerBlock& block) noexcept;

  // After a timer's end was counted: drain() may be waiting for that.
  void timer_counted() noexcept {
    if (draining_.load(std::memory_order_relaxed) && !is_its_timer_thread()) alarm_->wake();
  }

  // Runs a timer that is queued, or, if it has been cancelled, lets go of it. `now` is the steady
  // clock, and is brought up to date.
  void run(TimerBlock& block, RunStats& stats, std::int64_t& now) noexcept;

  // A timer whose executor does not run it.
  void abandon(TimerBlock& block) noexcept;

  // A timer that was won back; and one out of a queue.
  void take_back(TimerBlock& block, BlockList& rest) noexcept;
  void take_back_queued(TimerBlock& block, BlockList& rest) noexcept;

  // For tasks run by an executor of the user's, on any thread.
  RunStats& foreign_stats() noexcept { return foreign_stats_; }

  void add_to(TimerStats& sum) const;
  std::uint64_t pending() const noexcept;

 private:
  enum class Stage { kNotStarted, kRunning, kRefusing };

  TimerShard& home_shard() const noexcept;
  bool is_its_timer_thread() const noexcept;

  // Scheduling.
  void start();
  [[noreturn]] void refuse(std::exception_ptr why);
  void find_room();
  void leave_room() noexcept;

  // The end.
  void close() noexcept;
  BlockList take_rest() noexcept;
  static Unprocessed hand_out(TimerBlock& block) noexcept;

  // Running (run.cpp).
  void call(TimerBlock& block, RunStats& stats) noexcept;
  void report(std::exception_ptr what) noexcept;
  void report_slow(std::int64_t took) noexcept;
  void run_again(TimerBlock& block, RunStats& stats, std::int64_t due, std::int64_t now) noexcept;
  void wait_for_wall_clock(TimerBlock& block, RunStats& stats, std::int64_t due) noexcept;
  void arm_by_calendar(TimerBlock& block, RunStats& stats, std::int64_t after) noexcept;
  void arm_again(TimerBlock& block, RunStats& stats, std::int64_t deadline) noexcept;
  void end_cancelled(TimerBlock& block, RunStats& stats) noexcept;

  // The timer thread (timer_thread.cpp).
  void turn_wheels();
  bool collect_due(const ClockTimes& now);
  void recall_calendar_timers(const ClockTimes& now) noexcept;
  void hand_over_due();
  void sleep();
  void close_shards(BlockList& rest) noexcept;
  void notice_drained();
  void add_counts_to(TimerStats& sum) const noexcept;

  const TimerOptions options_;
  const std::shared_ptr<TimerClock> clock_;
  const bool on_machine_clock_;
  const TickScale scale_;
  std::vector<std::unique_ptr<TimerShard>> shards_;
  const std::unique_ptr<Alarm> alarm_;
  std::unique_ptr<WorkerPool> pool_;  // null: no pool

  alignas(64) std::atomic<Stage> stage_{Stage::kNotStarted};
  alignas(64) SleepGate<> gate_;
  alignas(64) std::atomic<std::size_t> admitted_{
      0};  // timers that count against max_pending, if that is set
  Count rejected_{0};
  Count returned_{0};
  std::atomic<std::uint64_t> periodic_{0};  // periodic timers that have not ended

  // The timer thread's own.
  alignas(64) BlockList due_;  // queued, and not yet run or handed over
  RunStats timer_thread_stats_;
  Count wakeups_{0};
  std::int64_t wall_ahead_ =
      -kForever;     // the wall clock, less the steady one, when it was last looked at
  BlockList found_;  // when it closed the shards
  bool closed_ = false;

  RunStats foreign_stats_{Writers::kShared};
  std::atomic<bool> hold_fire_{false};  // stop() has begun: what is due now is returned
  std::atomic<bool> closing_{false};    // the timer thread is to close the shards and end
  std::atomic<bool> draining_{false};

  std::mutex mutex_;  // protects the following
  std::condition_variable drained_changed_;
  bool drained_ = false;
  bool stopped_ = false;
  BlockList rest_;  // what was taken back, and not yet handed out
  std::thread timer_thread_;
};

// Whether the calling thread is inside a run of this timer; inside one of any timer of the core; is
// a timer thread.
bool running_here(const TimerBlock& block) noexcept;
bool runs_task_of(const TimerCore& core) noexcept;
bool is_timer_thread() noexcept;

}  // namespace carillon::detail
