// Changes of many jobs of a tube: those that a filter means are cancelled, retried, moved to
// another tube, or spread over a longer time.
//
//   JobBulk bulk{.action = JobBulk::Action::kCancel, .list = {.tube = "mail"}};
//   while (!bulk.list.done) engine.change_jobs(now(), bulk);   // a step: one append at most
//   tell(bulk.changed, bulk.left);
//
// A step changes at most kBulkStep jobs, in one append: after a crash each of them was changed, or
// none. So the owner can serve others in between, and go on later from `list.next`. What happens to
// jobs meanwhile: those that come to places where the bulk was before are not changed.
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

// Returns in a few words why the job is buried: the first line of what the worker of its last
// failed attempt said, at most kMaxReason bytes of it. If nothing was said: "expired", "timed out",
// "worker lost", "failed", or "buried" if no attempt has failed.
std::string reason_of(const JobRecord& job, std::span<const Attempt> story);
inline constexpr std::size_t kMaxReason = 120;

struct JobBulk {
  // A job that is reserved is never changed.
  enum class Action : std::uint8_t {
    kCancel,  // deletes the job
    // Makes a buried or delayed job ready; its attempts begin anew. Other jobs are not meant. Jobs
    // that are buried while the bulk is under way are not retried again.
    kRetry,
    // The job is in the tube `to` from then on: with its id, state, due time, key, attempts and
    // story. Not if another job of that tube has its key.
    kMove,
    // Deals the delayed jobs of a window out over a longer time, which begins with the window: from
    // `filter.due_from`, `over` ms long. Each job has a place there that follows from its id. The
    // places lie evenly. A job whose place is in the window (before `filter.due_before`) keeps its
    // due time; any other is due at its place then, and so later than before. So a spread that is
    // done again, or goes on after a crash, changes no job twice. Other jobs are not meant. Left
    // are jobs that would have expired at their place.
    kSpread,
  };
  Action action = Action::kCancel;
  JobListing list;
  // If it is not empty, only buried jobs are meant whose reason_of() it is. Costs a look-up of each
  // job's story.
  std::string reason = {};
  std::string to = {};
  // Of a spread: longer than the window of the filter, at most kLongestSpread.
  Millis over = 0;
  // The bulk stops when it has changed so many.
  std::uint64_t bound = UINT64_MAX;
  // Nothing is changed: `changed` says how many would be.
  bool dry_run = false;

  std::uint64_t changed = 0;
  // Jobs that were meant and could not be changed: reserved, a key in the way, or an expiry.
  std::uint64_t left = 0;
  // The last append.
  Sequence durable_at = 0;

  // Says why the engine would refuse it; an empty text: it would not.
  std::string fault() const;
  bool ended() const { return list.done || changed >= bound; }
};

}  // namespace carillon::queue
