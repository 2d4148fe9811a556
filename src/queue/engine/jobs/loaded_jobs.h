// The jobs in memory, and their moves.
//
// A job in memory is ready, delayed, reserved or *detached*: in no collection, on its way from one
// to another. No command ends with a detached job.
//
//   from                        move              to
//   the store alone             add_to_memory     detached
//   ready, delayed, reserved    detach            detached
//   detached                    make_ready        ready
//   detached                    enqueue           ready, delayed, or, if it is far, the store alone
//   detached                    drop_from_memory  the store alone, or nothing if it was deleted
//   ready, delayed, detached    Clients::hold     reserved
//
// Owns the jobs. Invariants: the record of each is the stored one; each is in its tube, once. All
// other jobs are only in the store.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <memory>
#include <optional>

#include "carillon/queue/commands.h"
#include "carillon/queue/detail/split_table.h"
#include "carillon/queue/store.h"
#include "queue/engine/jobs/loaded_job.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"

namespace carillon::queue {

class LoadedJobs {
 public:
  LoadedJobs(const Store& store, const EngineClock& clock, const Appender& appender,
             EngineCounts& counts, Tubes& tubes, Ripening& ripening, FarJobs& far, Endings& endings,
             Clients& clients, Throttle& throttle, const Placing& placing)
      : store_(store),
        clock_(clock),
        appender_(appender),
        counts_(counts),
        tubes_(tubes),
        ripening_(ripening),
        far_(far),
        endings_(endings),
        clients_(clients),
        throttle_(throttle),
        placing_(placing) {}

  // --- Queries

  // Returns nullptr if the job is not in memory.
  LoadedJob* loaded(JobId id) const;
  // Returns the job if the client has reserved it, else nullptr.
  LoadedJob* held_by(const Client& client, JobId id) const;
  // Returns the record of a job in memory or in the store; none if there is no such job.
  std::optional<JobRecord> record_of(JobId id) const;
  Sequence durable_at(JobId id) const;  // must be durable before a client learns of the job
  JobState state_of(const JobRecord& record) const;
  JobView view(const JobRecord& record) const;
  // Sets the record's expiry to what the wall clock will show then. For records that a client sees.
  void show_expiry(JobRecord& job) const;
  std::size_t size() const { return jobs_.size(); }
  // Calls `call` with each job.
  template <class Call>
  void for_each(Call call) const {
    jobs_.for_each([&call](JobId, const auto& job) { call(*job); });
  }

  // --- Moves

  // Makes a detached job. REQUIRES: the record is stored, not buried, and not in memory yet.
  LoadedJob& add_to_memory(const JobRecord& record) noexcept;
  void detach(LoadedJob& job) noexcept;
  // Puts a detached job among the ready or the delayed ones. A far job leaves memory instead: `job`
  // is a dangling reference then.
  void enqueue(LoadedJob& job) noexcept;
  // REQUIRES of both: the job is detached. Clients that wait get the job only when `serve` is
  // called.
  void drop_from_memory(LoadedJob& job) noexcept;
  void make_ready(LoadedJob& job) noexcept;
  // Takes a job that was stored, and is neither buried nor in memory, to where it belongs.
  void take_in(const JobRecord& record) noexcept;
  // Moves a job to its place after an append has changed its record. REQUIRES: nobody has reserved
  // it.
  void replaced(const JobRecord& before, const JobRecord& after) noexcept;
  // The wall clock was set. Orders the tube's delayed jobs and sets its timers anew. If it was set
  // `back`, the ready jobs whose due time is ahead again are delayed again.
  void follow_the_clock(Tube& tube, bool back);

  // Aborts if a job in memory is not as it must be: all of them, or those of the tube, or lane. For
  // tests.
  void check_invariants() const;
  void check_invariants(const Tube& tube) const;

 private:
  const Store& store_;
  const EngineClock& clock_;
  const Appender& appender_;
  EngineCounts& counts_;
  Tubes& tubes_;
  Ripening& ripening_;
  FarJobs& far_;
  Endings& endings_;
  Clients& clients_;
  Throttle& throttle_;
  const Placing& placing_;
  detail::SplitTable<boost::unordered_flat_map<JobId, std::unique_ptr<LoadedJob>>> jobs_;
};

}  // namespace carillon::queue
