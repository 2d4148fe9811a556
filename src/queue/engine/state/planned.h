// What a command has gathered about a put, or about the end of a reservation, and what must be done
// in memory once it is appended.
#pragma once

#include <cstdint>
#include <optional>

#include "carillon/queue/commands.h"
#include "carillon/queue/store.h"
#include "queue/engine/jobs/loaded_job.h"

namespace carillon::queue {

struct PlannedPut {
  std::optional<JobRecord> before;  // if it replaces a job
  JobRecord after;
  PutOutcome outcome;
  std::optional<KeyRecord> owner = {};  // the owner of its key

  // Returns none if nothing is put.
  detail::Rare<JobAsPut> job(std::string_view tube, std::string_view group) const {
    if (!outcome.done()) return {};
    return detail::Rare(JobAsPut{after, std::string(tube), std::string(group)});
  }
};

// Whether a deleted job's work is done. If so, its key still counts for its window.
enum class Work : std::uint8_t { kDone, kNotDone };

struct PlannedEnd {
  LoadedJob* job;
  std::optional<JobRecord> after;  // none if the job is deleted
};

// Which jobs get new attempts from a kick.
enum class Anew : std::uint8_t { kOfBuried, kOfAll };

}  // namespace carillon::queue
