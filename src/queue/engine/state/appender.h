// Gathers the changes of a command, and appends them to the store at once: with the counts of their
// tubes and, now and then, the watermarks.
//
//   appender.add_change(before, after);
//   const Sequence sequence = appender.append();    // or it throws, and nothing has changed
//
// Owns what is given once, ids and the numbers of burials, and what the store knows of that and of
// the clock. Invariants: no id is given twice, over restarts too, as the stored watermarks are
// never below what was given. Nothing is gathered when no command is at work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/engine_options.h"
#include "carillon/queue/store.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/engine_counts.h"
#include "queue/engine/state/parts.h"

namespace carillon::queue {

class Appender {
 public:
  Appender(Store& store, const EngineOptions& options, const EngineClock& clock,
           EngineCounts& counts, Tubes& tubes, Schedules& schedules, const Watermarks& stored);

  // Gathers a change of one job. The changes of a command are gathered, and appended together.
  void add_change(std::optional<JobRecord> before, std::optional<JobRecord> after,
                  std::string_view body = {});
  void add_key_change(std::optional<KeyRecord> before, std::optional<KeyRecord> after);
  // Gathers the end of the lease that the store may have of the job.
  void end_lease(const LoadedJob& job);
  // The job's lease has ended without an append: the next append erases what the store has of it.
  void lease_is_over(LoadedJob& job);
  // Returns the record of a tube as it will stand after what was gathered.
  TubeRecord& changed_tube(std::uint32_t number);
  // Appends what was gathered, with the tubes' counts and, if needed, watermarks. When it throws
  // StoreError, nothing has changed, and nothing is gathered any more.
  Sequence append();
  // Appends exact watermarks.
  void close();

  // Returns the id for a new job. Throws StoreError after kLastId.
  JobId give_id();
  std::uint64_t give_burial() { return next_burial_++; }
  JobId next_id() const { return next_id_; }
  std::uint64_t next_burial() const { return next_burial_; }
  Sequence last_sequence() const { return last_sequence_; }
  // What the wall clock showed at the last change that is known.
  UtcMs stored_time() const { return stored_marks_.time; }

  // The wall clock was set.
  void clock_was_set();
  // The highest lead that is in the record of a job.
  std::int64_t job_lead() const { return job_lead_; }
  // No record has a higher lead than that of the clock any more.
  void leads_are_placed();

  // Work behind the back of commands has failed: kept for Engine::advance, which throws it.
  void failed(std::string why) { failure_ = std::move(why); }
  std::optional<std::string> take_failure() { return std::exchange(failure_, std::nullopt); }

  Changes changes;  // the changes that a command gathers

 private:
  // Returns the watermarks to store with these bounds.
  Watermarks watermarks(JobId ids, std::uint64_t burials) const;
  void add_lane_counts();
  void erase_leases_over(Changes& in) const;
  void appended() noexcept;  // called after the store has the changes: memory follows

  Store& store_;
  const EngineOptions& options_;
  const EngineClock& clock_;
  EngineCounts& counts_;
  Tubes& tubes_;
  Schedules& schedules_;
  std::vector<JobId> leases_over_;  // that the store still has
  Watermarks stored_marks_;         // as they stand in the store
  bool clock_is_stored_ = false;    // stored_marks_ has everything about the clock
  std::int64_t job_lead_;
  JobId next_id_;
  std::uint64_t next_burial_;
  Sequence last_sequence_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace carillon::queue
