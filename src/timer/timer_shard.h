// TimerShard: some of a service's timers: a wheel for each clock, and the door through which
// threads get at them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "carillon/timer/detail/door.h"
#include "carillon/timer/detail/durations.h"
#include "carillon/timer/detail/timer_block.h"
#include "carillon/timer/timer_model.h"
#include "carillon/timer/timer_service.h"
#include "timer/block_list.h"
#include "timer/run_stats.h"

namespace carillon::detail {

class TimerCore;

// The clocks at one moment, in ns.
struct ClockTimes {
  std::int64_t steady;
  std::int64_t wall;

  std::int64_t of(TimerKind kind) const noexcept {
    return kind == TimerKind::kSteady ? steady : wall;
  }
};

// Whether a wall clock that was at `from` and is at `to` was set back by so much that it had been
// wrong: timers that go by a calendar then go on from the new time. After less, they wait until it
// has caught up. (Vixie's cron draws the line there, too.)
constexpr bool set_back_far(std::int64_t from, std::int64_t to) noexcept {
  return sub_ns(from, to) > to_ns(std::chrono::hours(3));
}

class alignas(64) TimerShard {
 public:
  explicit TimerShard(TimerCore& core) noexcept;
  const TimerCore& core() const noexcept { return core_; }

  // --- any thread

  // A new timer, armed. False: the shard is shut, and the timer still the caller's. Throws what its
  // wheel throws; as well.
  bool submit(TimerBlock& block);

  // A timer whose cancelling was Cancel::kWonInWheel. After this call the caller knows nothing of
  // the shard's life.
  void remove(TimerBlock& block) noexcept;

  // A timer that was moved, or armed again after a run: its word says kPosted. False: the shard is
  // shut.
  bool bring(TimerBlock& block) noexcept;

  // The next moment at which the timer thread must look in, in ns of that clock; kForever: never.
  std::int64_t earliest(TimerKind kind) const noexcept {
    return earliest_[index(kind)].load(std::memory_order_seq_cst);
  }
  bool wants_timer_thread() const noexcept { return crowded_.load(std::memory_order_seq_cst); }

  // --- the timer thread

  // Sees to the notes.
  void visit() noexcept;

  // Appends to `due` what is due now, a bounded number of timers. True: there is more.
  bool collect(const ClockTimes& now, BlockList& due);

  // The wall clock was set back far: appends to `due` all timers that go by a calendar, for them to
  // be given another time. False: no memory, and nothing was done.
  bool recall_calendar_timers(const ClockTimes& now, BlockList& due) noexcept;

  // Shuts the shard for good and appends all timers that are in it to `rest`.
  void close(BlockList& rest) noexcept;

  // --- counters
  std::uint64_t scheduled() const noexcept { return scheduled_.load(std::memory_order_acquire); }
  std::uint64_t cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }

 private:
  struct Collecting;

  static constexpr std::size_t index(TimerKind kind) noexcept {
    return static_cast<std::size_t>(kind);
  }
  static constexpr std::size_t kFiredPerVisit = 1024;
  static constexpr unsigned kManyNotes = 256;

  void enter() noexcept;
  void leave() noexcept;
  bool read_notes(TimerBlock* oldest) noexcept;
  void read_note(TimerBlock& block) noexcept;
  void call_timer_thread() noexcept;

  TimerModel& wheel(TimerKind kind);
  void place(TimerBlock& block);
  void place_at(TimerBlock& block, Tick tick);
  void place_or_park(TimerBlock& block) noexcept;
  void await_note(TimerBlock& block) noexcept;
  void note_has_come(TimerBlock& block) noexcept;
  void count_in(TimerBlock& block) noexcept;
  void look_again(TimerBlock& block, Tick tick) noexcept;
  void end_cancelled(TimerBlock& block) noexcept;
  void forget(TimerBlock& block) noexcept;
  void retry_parked() noexcept;
  void follow_wall_clock_back(Tick to);
  void recall(TimerBlock& block, Tick now, BlockList& due) noexcept;
  bool collect_kind(TimerKind kind, const ClockTimes& now, BlockList& due);
  void take_back(TimerBlock& block, BlockList& rest) noexcept;
  void take_back_wheels(BlockList& rest) noexcept;
  void take_back_parked(BlockList& rest) noexcept;

  Door<TimerBlock> door_;

  // Written inside the door; read by the timer thread before it sleeps.
  alignas(64) std::array<std::atomic<std::int64_t>, 2> earliest_{{{kForever}, {kForever}}};
  std::atomic<bool> crowded_{false};  // who is inside would like to be relieved by the timer thread
  std::atomic<bool> handed_over_{
      false};  // who was inside has left the shard, door closed, to the timer thread

  // Inside the door.
  alignas(64) Count scheduled_{0};
  Count cancelled_{0};
  TimerCore& core_;
  std::array<std::unique_ptr<TimerModel>, 2> wheels_;
  std::int64_t call_for_ = kForever;  // the timer thread must be told of this deadline
  BlockList parked_;                  // timers that found no place, for lack of memory; kPosted
  std::size_t awaited_ = 0;  // timers that are in no wheel, and whose notes are on their way
  TimerBlock visit_;         // the timer thread's note: it wants to come in
};

}  // namespace carillon::detail
