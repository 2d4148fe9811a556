// Lists of a tube's jobs: which jobs match (JobFilter), and how far the list has been read
// (JobListing).
//
//   JobListing list{.tube = "mail", .filter = {.due_from = now, .due_before = tomorrow}};
//   while (!list.done) {
//     for (const ListedJob& job : engine.list_jobs(now(), list, 100)) show(job);   // perhaps none
//   }
//
// The order: first the jobs that are not buried, by (due, id) as they are stored, and then the
// buried ones in the order of their burials; the jobs of all groups together. A place in it is a
// JobCursor. Whatever happens to other jobs, a job that keeps its place is listed exactly once. A
// worker moves jobs towards the end: after a release with a delay, a failed attempt or a burial, a
// job may be listed twice, but is never left out. A kick, or a patch to an earlier time, may move a
// job to a place that the list has passed.
//
// A change of many jobs (job_bulk.h) needs no order among groups, and visits one after the other.
// So its cursor names a group, and cannot be used for a list.
//
// Thread safety: these are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/job.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

// Sets of states, as bits.
inline constexpr std::uint32_t bit_of(JobState state) {
  return 1U << static_cast<unsigned>(state);
}
inline constexpr std::uint32_t kDeadJobs = 1U << 4;  // buried jobs that are dead
inline constexpr std::uint32_t kAllStates = bit_of(JobState::kDelayed) | bit_of(JobState::kReady) |
                                            bit_of(JobState::kReserved) | bit_of(JobState::kBuried);

// A job matches if it fulfils all conditions.
struct JobFilter {
  std::uint32_t states = kAllStates;
  // The job's group; empty: jobs of any group, or without one.
  std::string group = {};
  // The key begins with this; empty: any job, with or without a key.
  std::string key_prefix = {};
  // Due from the one moment on, and before the other: by the time in the record, also for buried
  // jobs.
  UtcMs due_from = 0;
  UtcMs due_before = UINT64_MAX;

  bool admits(const JobRecord& job, JobState state) const;
  // Returns true if jobs in one of these states may match.
  bool admits_any(std::uint32_t of) const { return (states & of) != 0; }
};

// A place in the order of a tube's jobs.
struct JobCursor {
  // The number of a burial, if the place is among the buried jobs; else 0.
  std::uint64_t burial = 0;
  DueKey due = {};
  // Buried jobs from this burial on do not match.
  std::uint64_t burials_before = UINT64_MAX;
  // For a change of many jobs: the number of the lane of a group (TubeRecord); 0: the jobs without
  // a group. For a list: 0.
  std::uint32_t lane = 0;

  // The place right after the job's.
  static JobCursor after(const JobRecord& job) {
    if (job.buried()) return {.burial = job.burial + 1, .due = {}};
    return {.burial = 0, .due = {job.due, job.id + 1}};
  }
  // The place of the job itself.
  static JobCursor of(const JobRecord& job) {
    if (job.buried()) return {.burial = job.burial, .due = {}};
    return {.burial = 0, .due = {job.due, job.id}};
  }
  // Compares by the order of a list, whatever the lanes.
  bool is_before(const JobCursor& other) const {
    return std::pair(burial, due) < std::pair(other.burial, other.due);
  }

  friend bool operator==(const JobCursor&, const JobCursor&) = default;
};

// to_text() returns a word of letters, digits and hyphens. to_cursor() returns none if the text is
// no such word.
std::string to_text(const JobCursor& cursor);
std::optional<JobCursor> to_cursor(std::string_view text);

// A list that is being read. The tube need not exist: then it has no jobs.
struct JobListing {
  std::string tube;
  JobFilter filter = {};
  // The next call begins here.
  JobCursor next = {};
  // How many jobs were scanned.
  std::uint64_t looked_at = 0;
  // No job follows.
  bool done = false;
  // True if jobs may be missing: the store could not read all records that the list has passed.
  bool incomplete = false;

  // Internal: where the list of a tube with groups goes on in each of its lanes, as a heap with the
  // earliest place first. If it is missing, it is made anew from `next`.
  std::vector<JobCursor> lanes = {};
  // While the heap is made: the number of the lane that comes next.
  std::uint32_t next_lane = 0;
  bool has_lanes = false;
  // The memory of the heap, in bytes.
  std::size_t memory() const { return lanes.capacity() * sizeof(JobCursor); }

  void move_to(JobCursor cursor) {
    cursor.burials_before = next.burials_before;
    cursor.lane = next.lane;
    next = cursor;
  }
};

struct ListedJob {
  JobRecord record;
  JobState state = JobState::kReady;
  // The client that has reserved the job: Engine::name_client.
  std::string worker = {};
  std::string group = {};
};

}  // namespace carillon::queue
