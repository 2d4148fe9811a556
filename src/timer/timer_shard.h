// TimerShard: a part of a service's timers: one wheel for each clock, behind one door.
//
// The door (detail/door.h) lets one thread in at a time; that thread may use the wheels. A thread
// that finds the door taken does not wait: it leaves a *note*, and goes on. A note is the block of
// the timer that the thread came for (detail/timer_block.h); the block's word says what to do with
// the timer. The thread inside reads all notes before it leaves.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "carillon/timer/detail/door.h"
#include "carillon/timer/detail/durations.h"
#include "carillon/timer/detail/timer_block.h"
#include "carillon/timer/timer_service.h"
#include "carillon/wheel/hierarchical_wheel.h"
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

// Returns true if a wall clock that was set back from `from` to `to` had been wrong, and not merely
// corrected: if the step is more than 3 hours. (Vixie's cron draws the line there, too.) Timers
// that go by a calendar then go on from the new time. After a smaller step they wait until the
// clock has caught up.
constexpr bool set_back_far(std::int64_t from, std::int64_t to) noexcept {
  return sub_ns(from, to) > to_ns(std::chrono::hours(3));
}

class alignas(64) TimerShard {
 public:
  explicit TimerShard(TimerCore& core) noexcept;
  TimerCore& core() const noexcept { return core_; }

  // --- any thread

  // Takes a new timer, which is armed. Returns false if the shard is shut; the timer then still
  // belongs to the caller. Throws std::bad_alloc; the timer then still belongs to the caller, too.
  bool submit(TimerBlock& block);

  // Takes a timer that was moved to earlier, or armed again after a run: its word says kPosted.
  // Returns false if the shard is shut.
  bool submit_again(TimerBlock& block) noexcept;

  // Takes a timer out whose cancelling was Cancel::kWonInWheel. Returns true if nothing holds the
  // timer any more, and false if a note does, which was left. When this call returns, the shard may
  // be gone already.
  bool remove(TimerBlock& block) noexcept;

  // --- the timer thread
  //
  // It does not wait at the door either. If another thread is inside, the timer thread leaves a
  // note, goes on to other shards, and *awaits* this one. The thread inside hands the door over
  // when it leaves: the door stays closed, so the timer thread is inside from then on.

  // The next moment at which the timer thread must visit this shard, in ns of that clock; kForever
  // if the shard has no timer of this kind, or is awaited.
  std::int64_t earliest(TimerKind kind) const noexcept {
    if (is_awaited()) return kForever;
    return earliest_[index(kind)].load(std::memory_order_seq_cst);
  }
  bool wants_timer_thread() const noexcept {
    return (note_left_ ? handed_over_ : crowded_).load(std::memory_order_seq_cst);
  }
  bool is_awaited() const noexcept {
    return note_left_ && !handed_over_.load(std::memory_order_seq_cst);
  }

  // Enters and leaves, so that all notes left by then are read. Returns false if the shard is
  // awaited instead.
  bool visit() noexcept;

  // Appends to `due` the timers that are due now, a bounded number of them. Returns true if there
  // are more. Does nothing if the shard is awaited.
  bool collect(const ClockTimes& now, BlockList& due);

  // For a wall clock that was set back far. Appends to `due` all timers that go by a calendar, so
  // that they get another time. Returns false if the shard is awaited, or if there was no memory;
  // then nothing was done.
  bool recall_calendar_timers(const ClockTimes& now, BlockList& due) noexcept;

  // Appends all timers in the shard to `rest`, and shuts it for good. Returns false if it must be
  // called again: when wants_timer_thread() is true.
  bool close(BlockList& rest) noexcept;

  // --- counters
  std::uint64_t scheduled() const noexcept { return scheduled_.load(std::memory_order_acquire); }
  std::uint64_t cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }

 private:
  using Wheel = HierarchicalWheel<>;
  struct Collecting;

  static constexpr std::size_t index(TimerKind kind) noexcept {
    return static_cast<std::size_t>(kind);
  }
  static constexpr std::size_t kFiredPerCollect = 1024;
  static constexpr unsigned kManyNotes = 256;
  static constexpr unsigned kTriesToEnter = 16;

  bool enter() noexcept;
  void leave() noexcept;
  void hand_over() noexcept;
  bool read_notes(TimerBlock* oldest) noexcept;
  void read_note(TimerBlock& block) noexcept;
  void call_timer_thread() noexcept;

  Wheel& wheel(TimerKind kind);
  void place(TimerBlock& block);
  void place_at(TimerBlock& block, Tick tick);
  void place_or_park(TimerBlock& block) noexcept;
  void expect_note(TimerBlock& block) noexcept;
  void note_has_come(TimerBlock& block) noexcept;
  void count_in(TimerBlock& block) noexcept;
  void look_again(TimerBlock& block, Tick tick) noexcept;
  void end_cancelled(TimerBlock& block) noexcept;
  void forget(TimerBlock& block) noexcept;
  void retry_parked() noexcept;
  template <class Sink>
  void move_to_new_wall_wheel(Tick now, Sink&& sink);
  void recall(TimerBlock& block, Tick now, BlockList& due) noexcept;
  bool collect_kind(TimerKind kind, const ClockTimes& now, BlockList& due);
  void take_back(TimerBlock& block, BlockList& rest) noexcept;
  void take_back_wheels(BlockList& rest) noexcept;
  void take_back_parked(BlockList& rest) noexcept;

  Door<TimerBlock> door_;

  // Written inside the door; read by the timer thread before it sleeps.
  alignas(64) std::array<std::atomic<std::int64_t>, 2> earliest_{{{kForever}, {kForever}}};
  // The thread inside asks the timer thread to come: it has read many notes, and there are more; or
  // the last note that close() waits for has come.
  std::atomic<bool> crowded_{false};
  // The thread that was inside has left without opening the door: the timer thread is inside now.
  std::atomic<bool> handed_over_{false};

  // Used inside the door.
  alignas(64) Count scheduled_{0};
  Count cancelled_{0};
  TimerCore& core_;
  // Each is made when the first timer on that clock comes.
  std::array<std::unique_ptr<Wheel>, 2> wheels_;
  // The timer thread must learn this deadline. kForever: there is nothing to say.
  std::int64_t call_for_ = kForever;
  // Timers that could not be placed on the wheel, for lack of memory. Their words say kPosted.
  BlockList parked_;
  // The number of timers that are in no wheel, and whose notes have yet to come.
  std::size_t expected_notes_ = 0;
  bool closing_ = false;

  // Used by the timer thread.
  TimerBlock timer_thread_note_;  // not a timer
  bool note_left_ = false;        // and the timer thread has not been inside since
};

}  // namespace carillon::detail
