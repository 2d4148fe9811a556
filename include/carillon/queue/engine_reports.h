// The part of the engine that reports: statistics, lists, and when jobs are due.
//
//   if (auto stats = engine.tube_stats(now, "mail")) log(stats->jobs.ready);
//   if (auto story = engine.story(now, job)) ...                  // its failed attempts
//   JobListing list{.tube = "mail", .filter = {.states = kDeadJobs}};
//   while (!list.done) show(engine.list_jobs(now, list, 100));
//
// engine.h has the contracts that all methods keep. No method here appends anything, except for the
// work that time has made due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/engine_stats.h"
#include "carillon/queue/now.h"

namespace carillon::queue {

struct EngineState;  // private
struct JobListing;   // job_listing.h
struct ListedJob;
struct DueCounts;  // due_counts.h

class EngineReports {
 public:
  // Returns the story of the job (retry.h), from the earliest attempt on; none if there is no such
  // job.
  std::optional<std::vector<Attempt>> story(Now now, JobId id);
  std::optional<JobStats> job_stats(Now now, JobId id);
  std::optional<TubeStats> tube_stats(Now now, std::string_view tube);
  std::optional<GroupStats> group_stats(Now now, std::string_view tube, std::string_view group);
  EngineStats stats(Now now);
  // The statistics at the last call that was given the time. O(1).
  EngineStats stats() const;
  // Goes on with a count of the timers on the wheels: reads the slots of a wheel until it has read
  // 2^18 entries, of which each timer has one to three: under a millisecond. Returns true if it has
  // read all. Timers that move meanwhile may be counted twice, or not at all. REQUIRES: the count
  // is not done.
  bool count_timers(TimerCount& count) const;

  // Returns up to `limit` jobs of a tube, and moves the list on (job_listing.h). A call visits at
  // most 64 jobs, and 32 groups, so it may return no job though others follow. Throws StoreError;
  // the list can go on then.
  std::vector<ListedJob> list_jobs(Now now, JobListing& list, std::size_t limit);
  // Goes on counting how many jobs are due when (due_counts.h).
  void count_due(Now now, DueCounts& counts);

 protected:
  explicit EngineReports(EngineState& state) : state_(state) {}
  ~EngineReports() = default;

 private:
  EngineState& state_;
};

}  // namespace carillon::queue
