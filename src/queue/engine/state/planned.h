// What a command has gathered of a put, or of the end of a reservation, and what is to be done in
// memory once it is appended.
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
  std::optional<KeyRecord> owner = {};  // of its key

  // Returns none if nothing is put.
  detail::Rare<JobAsPut> job(std::string_view tube, std::string_view group) const {
    if (!outcome.done()) return {};
    return detail::Rare(JobAsPut{after, std::string(tube), std::string(group)});
  }
};

// Whether the work of a job that is deleted is done: then its key still counts for its window.
enum class Work : std::uint8_t { kDone, kNotDone };

struct PlannedEnd {
  LoadedJob* job;
  std::optional<JobRecord> after;  // none if the job is deleted
};

// Whose attempts a kick lets begin anew.
enum class Anew : std::uint8_t { kOfBuried, kOfAll };

}  // namespace carillon::queue
