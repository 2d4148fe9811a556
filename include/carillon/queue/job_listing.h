// Lists of a tube's jobs: which of them (JobFilter), and how far the list has been read
// (JobListing).
//
//   JobListing list{.tube = "mail", .filter = {.due_from = now, .due_before = tomorrow}};
//   while (!list.done) {
//     for (const ListedJob& job : engine.list_jobs(now(), list, 100)) show(job);   // perhaps none
//   }
//
// The order: first the jobs that are not buried, by (due, id) as they are stored, and then the
// buried ones in the order of their burials. In a tube with groups the jobs without a group are
// listed so, and then those of one group after the other. A place in it is a JobCursor. Whatever
// happens to other jobs, a job that keeps its place is listed exactly once. A worker moves jobs
// towards the end: a release with a delay, a failed attempt and a burial may let a job be listed
// twice, and never not at all. A kick, or a patch to an earlier time, may move a job to where the
// list was.
//
// Thread safety: these are plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "carillon/queue/job.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

// Sets of states, as bits.
inline constexpr std::uint32_t bit_of(JobState state) {
  return 1U << static_cast<unsigned>(state);
}
inline constexpr std::uint32_t kDeadJobs = 1U << 4;  // of the buried ones those that are dead
inline constexpr std::uint32_t kAllStates = bit_of(JobState::kDelayed) | bit_of(JobState::kReady) |
                                            bit_of(JobState::kReserved) | bit_of(JobState::kBuried);

// A job is meant if all of it holds.
struct JobFilter {
  std::uint32_t states = kAllStates;
  // The job's group; empty: any, or none.
  std::string group = {};
  // The key begins with this; empty: there may be none.
  std::string key_prefix = {};
  // Due from the one moment on, and before the other: by the time in the record, also of a buried
  // job.
  UtcMs due_from = 0;
  UtcMs due_before = UINT64_MAX;

  bool admits(const JobRecord& job, JobState state) const;
  // Whether jobs in one of these states may be meant.
  bool admits_any(std::uint32_t of) const { return (states & of) != 0; }
};

struct ListedJob;

// A place in the order of a tube's jobs.
struct JobCursor {
  // Among the buried jobs: the number of a burial. Else 0.
  std::uint64_t burial = 0;
  DueKey due = {};
  // Buried jobs from this burial on are not meant.
  std::uint64_t burials_before = UINT64_MAX;
  // The number of the lane of a group (TubeRecord); 0: among the jobs without one.
  std::uint32_t lane = 0;

  // The place right behind the job's.
  static JobCursor after(const JobRecord& job) {
    if (job.buried()) return {.burial = job.burial + 1, .due = {}};
    return {.burial = 0, .due = {job.due, job.id + 1}};
  }
  static JobCursor after(const ListedJob& job);

  friend bool operator==(const JobCursor&, const JobCursor&) = default;
};

// Returns a word of letters, digits and hyphens. The other way: none if it is no such word.
std::string to_text(const JobCursor& cursor);
std::optional<JobCursor> to_cursor(std::string_view text);

// A list that is being read. The tube need not exist: then it has no jobs.
struct JobListing {
  std::string tube;
  JobFilter filter = {};
  // The next call begins here.
  JobCursor next = {};
  // How many jobs were looked at.
  std::uint64_t looked_at = 0;
  // No job follows.
  bool done = false;

  void move_to(JobCursor cursor) {
    cursor.burials_before = next.burials_before;
    cursor.lane = next.lane;
    next = cursor;
  }
};

struct ListedJob {
  JobRecord record;
  JobState state = JobState::kReady;
  // Who has reserved the job: Engine::name_client.
  std::string worker = {};
  std::string group = {};
};

inline JobCursor JobCursor::after(const ListedJob& job) {
  JobCursor cursor = after(job.record);
  cursor.lane = job.group.empty() ? 0 : job.record.tube;
  return cursor;
}

}  // namespace carillon::queue
