// The ends of reservations and of expired jobs: stores them, and moves the jobs on.
//
// Such a job must not go out before its end is stored. So the end of a job that loses its worker is
// queued: a client of the engine's own, `pending_`, holds the job. Each `advance` ends
// some of these jobs in one append. If that fails, they stay reserved, and the next `advance`
// tries again. Tubes take turns, so a tube with very many such jobs does not hold up the others.
//
// The end of an expired job is queued, too: when the job becomes ready, or by a timer while it is
// ready. A job that is not ready needs no such end, because no worker gets it. If the clock is in
// doubt (clock_rises.h), another such client, `doubted_`, holds the job: no worker gets it, and it
// does not end yet.
//
// Owns the ends that are not stored yet, and the wheel of ready jobs that expire. Invariant: a job
// is with one of the two clients if, and only if, its end is queued.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/detail/split_table.h"
#include "carillon/queue/store.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/state/planned.h"
#include "queue/engine/workers/client.h"

namespace carillon::queue {

class Endings {
 public:
  Endings(Store& store, const EngineClock& clock, Appender& appender, EngineCounts& counts,
          Tubes& tubes, LoadedJobs& jobs, FarJobs& far, Clients& clients, Throttle& throttle,
          Removals& removals, Retention& retention)
      : store_(store),
        clock_(clock),
        appender_(appender),
        counts_(counts),
        tubes_(tubes),
        jobs_(jobs),
        far_(far),
        clients_(clients),
        throttle_(throttle),
        removals_(removals),
        retention_(retention),
        expiries_(clock.tick()) {}

  static void check(const RetryPolicy& policy);  // throws std::invalid_argument
  const RetryPolicy& policy_of(const JobRecord& job) const;

  // --- An end that a worker asks for

  // Gathers the release of a reserved job.
  PlannedEnd plan_release(LoadedJob& job, Priority priority, Millis delay);
  // Gathers the end of an attempt that has failed. Throws StoreError if the story cannot be read.
  PlannedEnd plan_end(LoadedJob& job, Attempt attempt, const Failure& failure);
  // REQUIRES: the end was appended. The tube may be unreferenced afterwards.
  void finish_end(const PlannedEnd& end) noexcept;

  // --- An end without a command of the worker

  // Returns true if the end of the job's reservation must be stored when it ends in this way.
  bool is_stored(const LoadedJob& job, Ending ending) const;
  // Queues the end of an attempt, or without `ending` of a job that was cancelled or has expired.
  // REQUIRES: the job is detached, reserved, or ready and expired.
  void queue(LoadedJob& job, std::optional<Ending> ending) noexcept;
  // Stores up to `budget` queued ends of jobs. Adds the tubes of jobs that come again to `served`,
  // and the numbers of tubes that lose a job to `emptied`.
  void store_some(std::vector<Tube*>& served, std::vector<std::uint32_t>& emptied,
                  std::size_t budget);
  // Returns true if the job's reservation is over, and its end is not stored yet.
  bool is_over(const LoadedJob& job) const {
    return job.holder == &pending_ || job.holder == &doubted_;
  }
  // Returns true if it is over because the job was cancelled or has expired: no worker gets it
  // again.
  bool is_last(JobId id) const {
    const QueuedEnding* const queued = queued_.find(id);
    return queued != nullptr && !queued->ending;
  }

  // --- Expiry

  // Arms the timer of a ready job that expires.
  void await_expiry(LoadedJob& job);
  void await_no_expiry(LoadedJob& job) { expiries_.cancel(job); }
  bool awaits_none() const { return expiries_.empty(); }
  // Returns true if there are expired jobs that expire() has not seen.
  bool is_behind() const;
  // Queues the ends of up to `budget` ready jobs that have expired. Adds their tubes to `served`.
  void expire(std::vector<Tube*>& served, std::size_t budget);
  // Takes up to `budget` of the jobs that have expired by a clock in doubt, if the doubt is over or
  // the clock was set. The end of each is queued again, or the job lives on.
  void decide_doubted(std::vector<Tube*>& served, std::size_t budget);
  void clock_was_set() { to_decide_ = doubted_.held.size(); }
  // Returns false if memory holds too many expired jobs, so that the tube must not load more. While
  // the clock is in doubt, only tubes with such a job must wait.
  bool may_load(const Tube& tube) const;

  // Returns the monotonic moment (ns) at which there is more to do; none if nothing is pending.
  std::optional<std::uint64_t> next_wakeup() const;
  const EngineWheel& wheel() const { return expiries_; }
  // Returns how many jobs both clients hold.
  std::size_t held() const { return pending_.held.size() + doubted_.held.size(); }
  // Aborts if an invariant of the ends is broken. `ending` is the sum of Tube::ending. For tests.
  void check_invariants(std::uint64_t ending) const;

 private:
  struct QueuedEnding {
    std::optional<Ending> ending;  // none: the job was cancelled, or has expired
    std::string worker;
  };

  // Gathers the end of a job that was cancelled or has expired.
  PlannedEnd plan_end(LoadedJob& job);
  void add_to_story(const JobRecord& job, Attempt attempt);
  // Returns the turn in which the next queued end of a job of the tube is stored.
  Tick next_turn(Tube& of) const noexcept;

  Store& store_;
  const EngineClock& clock_;
  Appender& appender_;
  EngineCounts& counts_;
  Tubes& tubes_;
  LoadedJobs& jobs_;
  FarJobs& far_;
  Clients& clients_;
  Throttle& throttle_;
  Removals& removals_;
  Retention& retention_;
  EngineWheel expiries_;  // LoadedJobs: when a ready job expires
  Client pending_{0};
  Client doubted_{0};
  std::size_t to_decide_ = 0;  // the next decision is about the first of `doubted_`
  detail::SplitTable<boost::unordered_flat_map<JobId, QueuedEnding>>
      queued_;  // the jobs of both clients
  // The turn of the job whose end was stored last. A reserved job has a deadline, so the turns are
  // deadlines that never come.
  Tick turn_ = Tick{1} << 63U;
  std::uint64_t store_at_ = 0;  // no end is stored before this monotonic ms
};

}  // namespace carillon::queue
