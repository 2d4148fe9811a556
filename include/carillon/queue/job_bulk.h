// Changes of many jobs of a tube: the jobs that match a filter are cancelled, retried, moved to
// another tube, or spread over a longer time.
//
//   JobBulk bulk{.action = JobBulk::Action::kCancel, .list = {.tube = "mail"}};
//   while (!bulk.list.done) engine.change_jobs(now(), bulk);   // a step: one append at most
//   tell(bulk.changed, bulk.left);
//
// A step changes at most kBulkStep jobs, in one append: after a crash all of them are changed, or
// none. The owner can serve others between the steps, and go on later from `list.next`. Jobs that
// meanwhile come to places which the bulk has passed are not changed.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "carillon/queue/job_listing.h"
#include "carillon/queue/retry.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

inline constexpr std::size_t kBulkStep = 32;
inline constexpr Millis kLongestSpread = Millis{30} * 86'400'000;

// Returns why the job is buried, in a few words: the first line of what the worker of its last
// failed attempt said, at most kMaxReason bytes of it. If nothing was said: "expired", "timed out",
// "worker lost", "failed", or "buried" if no attempt has failed.
std::string reason_of(const JobRecord& job, std::span<const Attempt> story);
inline constexpr std::size_t kMaxReason = 120;

struct JobBulk {
  // None of these changes a reserved job.
  enum class Action : std::uint8_t {
    kCancel,  // deletes the job
    // Makes a buried or delayed job ready; its attempts begin anew. Other jobs do not match. Jobs
    // that are buried while the bulk is under way are not retried again.
    kRetry,
    // Moves the job to the tube `to`, with its id, state, due time, key, attempts and story; not if
    // another job of that tube has its key.
    kMove,
    // Deals out the delayed jobs of a window over a longer time: from `filter.due_from` on, `over`
    // ms long. Each job has a place there that follows from its id. The places lie evenly. A job
    // whose place is in the window (before `filter.due_before`) keeps its due time; any other is
    // due at its place then, and so later than before. So a spread that is repeated, or goes on
    // after a crash, changes no job twice. Other jobs do not match. Jobs that would have expired at
    // their place are left.
    kSpread,
  };
  Action action = Action::kCancel;
  JobListing list;
  // If it is not empty, only buried jobs with this reason_of() match. Costs a look-up of each job's
  // story.
  std::string reason = {};
  std::string to = {};
  // For a spread: longer than the window of the filter, at most kLongestSpread.
  Millis over = 0;
  // The bulk stops when it has changed this many.
  std::uint64_t bound = UINT64_MAX;
  // Nothing is changed: `changed` says how many jobs would be.
  bool dry_run = false;

  std::uint64_t changed = 0;
  // Jobs that matched but could not be changed: reserved, a key in the way, or an expiry.
  std::uint64_t left = 0;
  // The sequence number of the last append.
  Sequence durable_at = 0;

  // Says why the engine would refuse the bulk; empty if it would not.
  std::string fault() const;
  bool ended() const { return list.done || changed >= bound; }
};

}  // namespace carillon::queue
