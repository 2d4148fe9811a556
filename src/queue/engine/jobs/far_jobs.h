// The jobs that are only in the store: loads them before they are due, and counts them while they
// are ready and memory has no room for them.
//
// Each tube has a cursor into its jobs by (due, id): all jobs before it are in memory. The cursor
// moves on as time passes. It moves back when a tube has more jobs than it may have in memory. A
// tube without near jobs costs nothing: its load timer sleeps until `load_ahead` before its first
// far job is due.
//
// In a tube that may not load all jobs that are due, far jobs are counted. All jobs before a second
// cursor, FarCount::counted, are counted. It follows the clock by scans of the store, a part in
// each call: so each job is read once. When a job before the cursor becomes far, it is added; when
// it stops being far, it is subtracted. Nothing of this is stored: a start counts anew.
//
// Owns the wheel of the times to load and to count. Invariants: all jobs before the cursor of a
// tube are in memory; no far job is due before Tube::next_far; a tube with far jobs has its load
// timer armed, or waits for room; those before FarCount::counted are counted.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "carillon/queue/engine_options.h"
#include "carillon/queue/store.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

class FarJobs {
 public:
  FarJobs(Store& store, const EngineOptions& options, const EngineClock& clock, Appender& appender,
          EngineCounts& counts, LoadedJobs& jobs, Endings& endings, Placing& placing)
      : store_(store),
        options_(options),
        clock_(clock),
        appender_(appender),
        counts_(counts),
        jobs_(jobs),
        endings_(endings),
        placing_(placing),
        wheel_(clock.tick()) {}

  // --- Loading

  // Returns the first (due, id) that is far: all jobs before it are near.
  DueKey horizon() const;
  // Moves the cursor as far as is possible without reading the store.
  void extend_cursor(Tube& tube);
  bool memory_is_short() const { return options_.memory_is_short && options_.memory_is_short(); }
  // One more job is only in the store from now on: it will be loaded in time.
  void leave_far(Tube& tube, const JobRecord& record) noexcept;
  // If the tube has too many jobs in memory, those due last leave memory, perhaps `newest`, too: a
  // few now, the others in the next calls.
  void make_room(Tube& tube, LoadedJob& newest) noexcept;
  // A job of the tube has left memory or was reserved: loads more if it can.
  void room_appeared(Tube& tube);
  // At a start: loads the first near jobs of these tubes, and all jobs that are due. REQUIRES: the
  // tubes are in the order of their numbers.
  void look_at_all(const std::deque<Tube*>& order);
  // Returns a timer of this wheel that has fired; nullptr if none is due.
  TubeTimer* take_due();
  // Does what the timer stands for: loads, or counts. Returns how many jobs it has read or dropped:
  // at most `budget`.
  std::size_t go_on(TubeTimer& timer, std::size_t budget);
  // Keeps the error for Engine::advance, and plans another try.
  void failed(TubeTimer& timer, const StoreError& error);

  // Jobs that were found in the store, and where to go on.
  struct Found {
    std::vector<JobRecord> jobs;
    DueKey next;
    bool more;  // there may be more
  };
  // Reads the tube's next 16 delayed jobs in the store, by (due, id), from `from` on. Returns up to
  // `limit` of those that are only in the store: perhaps none, even if more follow.
  Found scan(Tube& tube, DueKey from, std::size_t limit);

  // --- The count of far jobs that are ready

  // A job that is stored with this record has become far (+1), or has stopped being far (-1).
  void note(Tube& tube, const JobRecord& record, int by) noexcept;

  // The wall clock was set: reads the tube's far jobs anew.
  void follow_the_clock(Tube& tube);
  // The same. If far jobs were counted that are not due any more, begins anew.
  void count_after_step(Tube& tube);
  // The tube will be destroyed.
  void forget(Tube& tube) noexcept;
  EngineWheel& wheel() { return wheel_; }
  const EngineWheel& wheel() const { return wheel_; }
  // Aborts if an invariant of the tube or lane is broken. For tests. O(jobs).
  void check_invariants(const Tube& tube) const;

 private:
  // Returns the moment at which a job with this due time becomes near.
  Tick time_to_load(UtcMs due_time) const;
  // Loads the tube's jobs at `when`, or earlier if that is planned already.
  void load_not_after(Tube& tube, Tick when);
  // Returns how many ready and delayed jobs a tube may have in memory now: at least 1.
  std::size_t most_queued() const;
  // If the tube has too many jobs in memory, up to `budget` delayed ones leave memory. Returns how
  // many have left. If more must go, the next call of `advance` continues.
  std::size_t drop_surplus(Tube& tube, std::size_t budget);
  // Leaves a ready or delayed job only in the store, because memory has no room.
  void drop_for_room(LoadedJob& job);
  // Loads near jobs from the cursor on, or drops jobs if the tube has too many.
  std::size_t load(Tube& tube, std::size_t budget);
  // Loads the near ones of the records. The records are the first ones from the cursor on; if there
  // are `limit` of them, more may follow.
  void load(Tube& tube, std::span<const JobRecord> records, std::size_t limit);
  void look_at(const std::vector<Tube*>& those);
  // Loads all of the tube's jobs that are due by now, as far as memory is allowed.
  void load_what_is_due(Tube& tube);

  // Jobs of the tube are left in the store because memory has no room: those that are due count as
  // ready from now on.
  void starve(Tube& tube);
  void end_count(Tube& tube);  // all of its jobs that are due are in memory
  void forget_count(Tube& tube);
  // Counts on at `when`, or earlier if that was planned.
  void count_not_after(Tube& tube, UtcMs when);
  void count(Tube& tube, const JobRecord& record, int by) noexcept;  // only for a job in far_count
  // Goes on counting, and returns how many records it has read: at most `budget`.
  std::size_t count_more(Tube& tube, std::size_t budget);

  Store& store_;
  const EngineOptions& options_;
  const EngineClock& clock_;
  Appender& appender_;
  EngineCounts& counts_;
  LoadedJobs& jobs_;
  Endings& endings_;
  Placing& placing_;
  EngineWheel wheel_;  // TubeTimers
};

}  // namespace carillon::queue
