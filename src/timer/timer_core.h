// TimerCore: everything behind a TimerService. The service, its threads, and the due tasks that are
// with an executor share it.
//
// Who does what
//  - A timer is a block (detail/timer_block.h). Its word (detail/timer_word.h) says in which phase
//    it is. The thread whose compare-and-swap takes it out of `armed` or `queued` has *won* the
//    timer, and alone decides its end. Everything else only carries blocks about.
//  - A shard is a wheel for each clock behind a door (detail/door.h). A thread that schedules or
//    cancels a timer, or moves it to earlier, enters. If another thread is inside, it leaves the
//    block as a note instead. Nobody waits at a door: if the timer thread finds one taken, the
//    thread inside hands the door over when it leaves, and calls the timer thread (timer_shard.h).
//    So a real-time timer thread does not keep the processor from the thread inside, and a thread
//    that is preempted inside delays the timers of its own shard alone. Each thread always uses the
//    same shard for its new timers (thread_index.h), so doors are mostly open, and their cache
//    lines stay where they are.
//  - The timer thread (timer_thread.cpp) collects what is due, a bounded number of timers at a
//    time, and hands it over when it is outside the door again.
//  - Tasks are called, moved and destroyed outside all doors and locks.
//
// Sleep and wake (detail/sleep_gate.h)
//    Each shard publishes the earliest moment at which the timer thread must visit it. That may be
//    too early (a timer was cancelled), never too late. A thread that makes it earlier asks the
//    gate whether the timer thread sleeps for longer, and wakes it if so. The timer thread
//    announces its sleep, reads all shards once more, and sleeps. Whatever else concerns the timer
//    thread (closing, draining) wakes it without asking the gate: an alarm keeps a wake-up for the
//    next sleep.
//
// Hand-over
//    A due timer is `queued`, and can still be cancelled, until its run starts. Its block is then
//    in one queue: the timer thread's, the pool's, or in a DueTask. The thread that takes it from
//    there runs it (run_task.cpp), or finds that it was cancelled. A periodic timer is armed again
//    when its run has ended, so it never has two runs at a time; one that goes by a calendar asks
//    its calendar for the next time then. When the wall clock was set back far, such a timer is
//    handed over before its time: it is not run, and asks its calendar again.
//
// Who frees what, and when
//  - A block is finished (its word gets the next generation, so no handle reaches it) and released
//    to the pool of the process, once. This is done by the thread that ran the timer, or by the one
//    that took it back. For a cancelled timer two sides must let go of it: the thread that took its
//    task, and whatever holds the block: a note, a wheel or a queue. The last of them frees it.
//  - The task goes first: when others can see the end of a timer (cancel_and_wait), its task is
//    destroyed. But cancel() takes the timer out of its wheel, or leaves the note, before it
//    destroys the task: the task's destructor may stop the service, which waits for notes.
//  - The core lives as long as something holds it: the service, its threads while they run, each
//    DueTask. A TimerHandle does not hold it. So a handle touches a shard only after it has won a
//    timer that stop() must wait for, and only until it has left the door or left its note
//    (TimerShard::close).
//
// The end
//    stop() refuses new timers, stops firing, takes back what the pool or the user's executor has
//    not begun, and waits for the tasks that they have begun. Then the timer thread closes one
//    shard after the other: it takes back everything in the wheels, waits for the notes about
//    timers that were won a moment ago, and shuts the door for good. A thread that schedules
//    meanwhile finds its shard open, and the timer is returned; or shut, and the timer is refused.
//    If stop() is called on the timer thread, it does all this there, and the thread ends after its
//    present task. drain() does the same after all timers but the periodic ones have ended.
//    A task that calls stop() is not waited for by it. The destructor waits for that task, too,
//    unless it is called inside of it.
//    The timers that were taken back are kept as a list of blocks, so that the end needs no memory;
//    the result of stop() is made from the list afterwards.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "carillon/timer/detail/sleep_gate.h"
#include "carillon/timer/detail/tick_scale.h"
#include "carillon/timer/timer_service.h"
#include "timer/block_list.h"
#include "timer/foreign_tasks.h"
#include "timer/run_stats.h"
#include "timer/timer_shard.h"
#include "timer/worker_pool.h"

namespace carillon::detail {

struct RunFrame;

class TimerCore : public std::enable_shared_from_this<TimerCore> {
 public:
  explicit TimerCore(TimerOptions options);
  TimerCore(const TimerCore&) = delete;
  TimerCore& operator=(const TimerCore&) = delete;

  // --- scheduling
  // Schedules a timer whose fields are set. Throws what TimerService::schedule_after() throws.
  TimerHandle submit(NewTimer& timer);

  ExecutorId add_executor(TimerExecutor executor);

  // --- the end
  std::vector<Unprocessed> stop();
  // The same, but destroys the timers that stop() would return. Needs no memory.
  void discard() noexcept;
  std::vector<Unprocessed> drain(std::int64_t at_most);

  // --- for shards, workers, handles and coroutines
  // Throws TimersStopped or TimersForked, as scheduling a timer would.
  void refuse_if_ended();
  const TimerOptions& options() const noexcept { return options_; }
  const TickScale& scale() const noexcept { return scale_; }
  std::int64_t steady_now() const noexcept;
  std::int64_t wall_now() const noexcept;
  // Returns true if the two calls above run no code of the user's.
  bool is_on_machine_clock() const noexcept { return on_machine_clock_; }
  std::int64_t now_on(TimerKind kind) const noexcept {
    return kind == TimerKind::kSteady ? steady_now() : wall_now();
  }
  ClockTimes read_clocks() const noexcept { return {steady_now(), wall_now()}; }

  // A deadline, in ns of the steady clock, was published. Wakes the timer thread if it would sleep
  // past it.
  void call_timer_thread(std::int64_t deadline) noexcept {
    if (must_wake_timer_thread(deadline)) wake_timer_thread();
  }
  // The same in two steps: if the first returns true, the caller takes the second, soon.
  bool must_wake_timer_thread(std::int64_t deadline) noexcept { return gate_.must_wake(deadline); }
  void wake_timer_thread() noexcept { alarm_->wake(); }

  // timer_begun(): a timer has come to its shard. timer_ended(): a timer has ended, but not as a
  // one-shot timer that ran. The latter is called before the end is counted, so that `pending`
  // minus `periodic_` is never too low.
  void timer_begun(const TimerBlock& block) noexcept;
  void timer_ended(const TimerBlock& block) noexcept;

  // A timer's end has been counted; drain() may be waiting for it.
  void timer_counted() noexcept {
    if (draining_.load(std::memory_order_relaxed) && !is_its_timer_thread()) alarm_->wake();
  }

  // Runs a timer that is queued, or lets go of it if it has been cancelled. `now` is the steady
  // clock's time, and is brought up to date.
  void run(TimerBlock& block, RunStats& stats, std::int64_t& now) noexcept;

  // A user's executor calls a DueTask, or destroys it without a call.
  void take_foreign(ForeignTasks::Place place, bool run_it) noexcept;

  // One of the service's threads has ended.
  void thread_ended() noexcept;

  // take_back(): a timer that the caller has won for stop() to return. take_back_queued(): a timer
  // that the caller took out of a queue; it may have been cancelled.
  void take_back(TimerBlock& block, BlockList& rest) noexcept;
  void take_back_queued(TimerBlock& block, BlockList& rest) noexcept;

  void add_to(TimerStats& sum) const;
  std::uint64_t pending() const noexcept;

 private:
  enum class Stage { kNotStarted, kRunning, kRefusing };
  static constexpr std::int64_t kNeverStarted = -1;

  TimerShard& shard_of_this_thread() const noexcept;
  bool is_its_timer_thread() const noexcept;

  // Scheduling.
  void start();
  bool is_forked() const noexcept;
  void refuse_if_forked() const;
  void check_executor(std::uint32_t executor);
  [[noreturn]] void refuse(std::exception_ptr why);
  void find_room();
  void leave_room() noexcept;

  // The end.
  void close() noexcept;
  bool is_called_by_its_own_work() const noexcept;
  void await_tasks() noexcept;
  BlockList take_rest() noexcept;
  static Unprocessed hand_out(TimerBlock& block) noexcept;

  // Running (run_task.cpp).
  void call(TimerBlock& block, RunStats& stats) noexcept;
  void report(std::exception_ptr what) noexcept;
  void report_slow(std::int64_t took) noexcept;
  void run_again(const RunFrame& run, RunStats& stats, std::int64_t due, std::int64_t now) noexcept;
  void wait_for_wall_clock(TimerBlock& block, RunStats& stats, std::int64_t due) noexcept;
  void arm_by_calendar(TimerBlock& block, RunStats& stats, std::int64_t after) noexcept;
  void arm_again(TimerBlock& block, RunStats& stats, std::int64_t deadline) noexcept;
  void end_cancelled(TimerBlock& block, RunStats& stats) noexcept;
  void abandon(TimerBlock& block) noexcept;

  // The timer thread (timer_thread.cpp).
  void turn_wheels();
  bool collect_due(const ClockTimes& now);
  void recall_calendar_timers(const ClockTimes& now) noexcept;
  void hand_over_due();
  bool hand_to_foreign(TimerBlock& block, const TimerExecutor& executor) noexcept;
  const TimerExecutor& executor_of(const TimerBlock& block) noexcept;
  void sleep();
  void close_shards(BlockList& rest) noexcept;
  void notice_drained();
  void add_counts_to(TimerStats& sum) const noexcept;

  const TimerOptions options_;
  const std::shared_ptr<TimerClock> clock_;
  const bool on_machine_clock_;
  const TickScale scale_;
  std::vector<std::unique_ptr<TimerShard>> shards_;
  // Made with the first timer. Children of a process that forks before would share its descriptors,
  // and take each other's wake-ups.
  std::unique_ptr<TimerAlarm> alarm_;
  std::unique_ptr<WorkerPool> pool_;  // null if the executor is not a pool

  alignas(64) std::atomic<Stage> stage_{Stage::kNotStarted};
  std::atomic<std::int64_t> forks_{kNeverStarted};  // fork_count() when the thread was started
  alignas(64) SleepGate<> gate_;
  // Timers that count against max_pending, if that is set.
  alignas(64) std::atomic<std::size_t> admitted_{0};
  Count rejected_{0};
  Count returned_{0};
  std::atomic<std::uint64_t> periodic_{0};  // periodic timers that have not ended

  // Used by the timer thread only.
  alignas(64) BlockList due_;  // queued, and not yet run or handed over
  RunStats timer_thread_stats_;
  Count wakeups_{0};
  // The wall clock minus the steady clock, when the thread last read them.
  std::int64_t wall_ahead_ = -kForever;
  BlockList found_;  // the timers taken back when it closed the shards
  bool closed_ = false;

  ForeignTasks foreign_;
  RunStats foreign_stats_{Writers::kShared};
  std::atomic<bool> hold_fire_{false};  // stop() has begun: timers that are due are returned
  std::atomic<bool> closing_{false};    // the timer thread must close the shards and end
  std::atomic<bool> draining_{false};

  std::mutex mutex_;  // protects the following
  std::condition_variable end_changed_;
  bool drained_ = false;
  bool stopped_ = false;                 // the end has begun
  bool ended_ = false;                   // and nothing begins any more
  unsigned threads_ = 0;                 // that have not ended
  BlockList rest_;                       // timers that were taken back, and not yet handed out
  std::deque<TimerExecutor> executors_;  // of single timers; never removed
  std::thread timer_thread_;
};

// One run that the calling thread is inside of. A list, because a user's executor may run one task
// inside another.
struct RunFrame {
  static constexpr std::int64_t kAsPlanned = -kForever - 1;

  const TimerCore& core;
  TimerBlock& block;
  RunFrame* outer;
  std::int64_t next = kAsPlanned;  // when a periodic timer runs next, if the run has said so
};
// Returns the run of this timer that the calling thread is inside of, if the timer is periodic and
// goes on after it; null otherwise.
RunFrame* periodic_run_here(const TimerBlock& block, std::uint32_t generation) noexcept;
// Destroys the task of a timer that the caller has cancelled.
void destroy_cancelled_task(TimerBlock& block) noexcept;
// Returns true if the calling thread is inside a run of this timer, or inside the destructor of its
// task.
bool running_here(const TimerBlock& block) noexcept;
// Returns true if the calling thread is inside a run of any timer of this core.
bool runs_task_of(const TimerCore& core) noexcept;
// How many calls and destructors of this core's DueTasks the calling thread is inside of.
unsigned foreign_tasks_here(const TimerCore& core) noexcept;
// Returns the next time of a timer with a period that was due at `due` and ended its run at `now`.
std::int64_t next_period(Repeat repeat, std::int64_t period, std::int64_t due,
                         std::int64_t now) noexcept;
// Throws std::invalid_argument if a period is not positive.
void check_period(std::int64_t period);
// Returns true if the calling thread is the timer thread of any service.
bool is_timer_thread() noexcept;

}  // namespace carillon::detail
