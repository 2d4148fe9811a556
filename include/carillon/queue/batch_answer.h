// The stored answer to a batch that was put with a token (BatchOrder::once), so that the batch can
// be sent again and gets the same answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carillon/queue/detail/rare.h"
#include "carillon/queue/job.h"

namespace carillon::queue {

// The outcome of consecutive jobs of a batch: their results and owners are the same, and their ids
// follow each other.
struct PutRun {
  std::uint32_t result = 0;  // PutOutcome::Result
  JobId first = 0;
  std::uint32_t jobs = 0;
  std::uint32_t owner = 0;  // PutOutcome::owner

  friend bool operator==(const PutRun&, const PutRun&) = default;
};

// A job as it was right after its put, whatever happened to it since.
struct JobAsPut {
  JobRecord record;
  // The names of its tube, and of its group, if it has one.
  std::string tube = {};
  std::string group = {};

  friend bool operator==(const JobAsPut&, const JobAsPut&) = default;
};

struct BatchAnswer {
  std::string fingerprint = {};  // BatchOrder::fingerprint
  std::vector<PutRun> puts = {};
  detail::Rare<JobAsPut> job = {};  // if BatchOrder::tells_job

  friend bool operator==(const BatchAnswer&, const BatchAnswer&) = default;
};

}  // namespace carillon::queue
