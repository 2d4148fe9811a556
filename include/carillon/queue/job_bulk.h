// Changes of many jobs of a tube: those that a filter means are cancelled, retried, or moved to
// another tube.
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
#include <string>

#include "carillon/queue/job_listing.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

inline constexpr std::size_t kBulkStep = 32;

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
  };
  Action action = Action::kCancel;
  JobListing list;
  std::string to = {};
  // The bulk stops when it has changed so many.
  std::uint64_t bound = UINT64_MAX;
  // Nothing is changed: `changed` says how many would be.
  bool dry_run = false;

  std::uint64_t changed = 0;
  // Jobs that were meant and could not be changed: reserved, or a key in the way.
  std::uint64_t left = 0;
  // The last append.
  Sequence durable_at = 0;

  bool ended() const { return list.done || changed >= bound; }
};

}  // namespace carillon::queue
