// Lets jobs follow a wall clock that was set.
//
//   placing.begin();                              // it was set: jobs in the store may be misplaced
//   placing.go_on(served, budget);                // finds some of them, and stores them anew
//   placing.due_of(record)                        // what counts meanwhile
//
// A job's place in its tube's order, on disk and in memory, is its due time. When the wall clock is
// set, the end of a delay moves away from that (EngineClock::delay_end):
//
// - Set forward: the delay ends after the due time. The job is found in time by its place, and
//   waits in memory for the end. If the end is far, the job gets a later place instead.
// - Set back: the delay ends before the due time. In memory the job follows at once (due_of). The
//   engine searches the store for its record, in steps, and stores it with the new due time. The
//   store remembers the highest lead of all records, so that a start knows whether such a search
//   had ended.
//
// Owns the list of tubes that must still be searched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"

namespace carillon::queue {

struct Tube;

class Placing {
 public:
  Placing(Store& store, const EngineClock& clock, Appender& appender, Tubes& tubes,
          LoadedJobs& jobs, FarJobs& far)
      : store_(store), clock_(clock), appender_(appender), tubes_(tubes), jobs_(jobs), far_(far) {}

  // Returns the time that UTC will show when the job is due, if nobody sets the wall clock: also
  // for a job whose delay ends well before the due time in its record, and which is not placed yet.
  UtcMs due_of(const JobRecord& record) const;
  // Begins to search the store for such jobs, if it may have any.
  void begin();
  // Returns true if there may be such jobs.
  bool is_pending() const { return !tubes_left_.empty(); }
  // Returns when to go on. REQUIRES: is_pending().
  Tick next() const { return at_; }
  // Goes on with the search, by up to `budget` records. Appends the tubes that get jobs to
  // `served`.
  void go_on(std::vector<Tube*>& served, std::size_t budget);

  // Returns true if the job's due time is near, but its delay ends when it is far.
  bool is_too_early(const JobRecord& record) const;
  // For those of the near `records` that are too early and not in memory: stores them with later
  // due times. Returns the records as they are then. Throws StoreError, with nothing changed.
  std::vector<JobRecord> place_later(std::span<const JobRecord> records);

 private:
  // Returns how many records it has read.
  std::size_t go_on_in(Tube& tube, std::size_t budget);
  // Returns true if the due time in the record is well after `end`, when the job's delay ends.
  bool is_late(const JobRecord& record, UtcMs end) const;
  // Stores jobs with earlier due times; near jobs are in memory afterwards. If it throws
  // StoreError, nothing has changed.
  void place(const std::vector<JobChange>& moves);

  Store& store_;
  const EngineClock& clock_;
  Appender& appender_;
  Tubes& tubes_;
  LoadedJobs& jobs_;
  FarJobs& far_;
  // The numbers of tubes in which jobs may be too late. The last one is being searched, from
  // `from_` on. Tubes that are gone are skipped.
  std::vector<std::uint32_t> tubes_left_;
  DueKey from_;
  Tick at_ = 0;
};

}  // namespace carillon::queue
