// What an Engine (engine.h) tells about its jobs and tubes: the numbers of the commands `stats`,
// `stats-tube` and `stats-job`.
//
//   const EngineStats all = engine.stats(now);          // kept, not counted: O(1)
//   std::cout << all.jobs.ready << " jobs are ready";
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/job.h"
#include "carillon/queue/now.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

struct JobStats {
  JobRecord record;
  // Name of the job's tube, and of its group, if it has one.
  std::string tube;
  std::string group = {};
  JobState state = JobState::kReady;
  // Milliseconds since the put.
  Millis age = 0;
  // Milliseconds until a delayed job is ready, or until a reserved job's ttr is over, rounded down
  // to less than what was asked for; else 0.
  Millis time_left = 0;
  // By the present wall clock: when a delayed job will be ready, or since when a job is ready; for
  // a buried job its earlier due time.
  UtcMs due = 0;
  // The policy that applies: the job's own, or else its tube's.
  RetryPolicy retry = {};
  // The name of the client that has reserved the job, if it has one.
  std::string worker = {};
  Sequence durable_at = 0;
};

// Jobs by state, including those that are only in the store. In a tube that has more ready jobs
// than may be loaded:
//  - A job counts as ready from its due time on. If the wall clock was set forward, its delay may
//    end up to `load_ahead` later; if it was set back, the job may count as ready 0.1 s early.
//  - Jobs that are only in the store are counted in steps (contract 4). When many become ready at
//    once, and after a start or when the wall clock was set back, those that are not counted yet
//    are in `delayed`.
struct JobCounts {
  // Ready jobs with a priority below kUrgentBelow.
  std::uint64_t urgent = 0;
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
  // Jobs put since the tube, or the engine, was made.
  std::uint64_t total = 0;
  // Jobs in memory.
  std::uint64_t loaded = 0;
};

struct TubeStats {
  std::string name;
  JobCounts jobs;
  // Clients whose puts go to this tube.
  std::uint64_t using_ = 0;
  // Clients that watch this tube.
  std::uint64_t watching = 0;
  // Clients that watch this tube and wait in a reserve. A client that watches more than 64 tubes
  // may still be counted some calls after its wait.
  std::uint64_t waiting = 0;
  std::uint64_t deletes = 0;
  // Jobs that have become dead.
  std::uint64_t deaths = 0;
  // Dead jobs that were deleted because TubeSettings::retention was over.
  std::uint64_t dead_deleted = 0;
  // Puts, and batches, that TubeSettings::put_rate has refused.
  std::uint64_t puts_too_fast = 0;
  std::uint64_t pauses = 0;
  // Milliseconds: the length of the pause that is in force; else 0.
  Millis pause = 0;
  // Milliseconds until the pause ends, rounded down to less than `pause`; else 0.
  Millis pause_left = 0;
  TubeSettings settings;
  // Groups that have jobs, settings, or a schedule.
  std::uint64_t groups = 0;
};

// A group that has jobs, settings, or a schedule.
struct GroupStats {
  // `total` is not known.
  JobCounts jobs;
  GroupSettings settings;
};

// A part of the list of a tube's groups.
struct GroupPage {
  struct Group {
    std::string name;
    GroupStats stats;
  };
  std::vector<Group> groups = {};
  // Where the next page begins; 0: nothing follows.
  std::uint32_t next = 0;
};

// How late jobs have gone out to their first workers, after they were due.
struct Lateness {
  // Milliseconds; the last count is that of jobs which were later.
  static constexpr std::array<Millis, 14> kBounds = {
      1, 2, 5, 10, 25, 50, 100, 250, 1'000, 5'000, 10'000, 60'000, 600'000, 3'600'000};
  // Jobs that were at most this late, and later than the bound before.
  std::array<std::uint64_t, kBounds.size() + 1> jobs{};
  // All lateness together, in ms.
  std::uint64_t total = 0;

  void add(Millis late) {
    const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), late);
    ++jobs[static_cast<std::size_t>(bound - kBounds.begin())];
    total += late;
  }
};

// What has happened to the jobs of all tubes since the engine was made. JobCounts::total counts the
// puts.
struct EngineTotals {
  // A job counts as often as it is reserved.
  std::uint64_t reserved = 0;
  // Also counts cancels, expiries, and ends of reservations that delete the job.
  std::uint64_t deleted = 0;
  // Attempts that have failed (see Engine::fail).
  std::uint64_t failed = 0;
  std::uint64_t dead = 0;
  std::uint64_t kicked = 0;
  std::uint64_t dead_deleted = 0;  // because their retention was over
  // Puts, and batches, that the rates of tubes have refused.
  std::uint64_t puts_too_fast = 0;
};

// How many timers are pending on each level of the engine's wheels, counted in steps
// (Engine::count_timers).
struct TimerCount {
  static constexpr std::size_t kLevels = 8;
  // The wheels, one for each kind of timer.
  static constexpr std::array<std::string_view, 7> kWheels = {
      // Tubes with delayed jobs in memory: for the first job of each.
      "due",
      // Tubes with more jobs in the store: when these must be loaded, counted, or, if they are dead
      // and the tube has a retention, deleted.
      "loading",
      // Ready jobs in memory that expire.
      "expiries",
      // Reserved jobs.
      "ttrs",
      // Tubes that are paused, or whose rate holds them back.
      "pauses",
      // Clients that wait with a time-out.
      "waits",
      "schedules",
  };

  std::array<std::array<std::size_t, kLevels>, kWheels.size()> timers{};
  // Where the next step begins.
  std::size_t wheel = 0;
  std::size_t slot = 0;
};

struct EngineStats {
  JobCounts jobs;
  EngineTotals totals;
  // How often a reserved job's ttr was over before its worker was done.
  std::uint64_t timeouts = 0;
  // Delayed jobs in memory that have become ready because they were due.
  std::uint64_t fired = 0;
  // The lateness since the engine was made. Jobs that are reserved by their ids do not count.
  Lateness lateness;
  std::uint64_t tubes = 0;
  // Clients that wait in a reserve.
  std::uint64_t waiting = 0;
  // Tubes that have left jobs in the store because memory had no room.
  std::uint64_t tubes_without_room = 0;
};

}  // namespace carillon::queue
