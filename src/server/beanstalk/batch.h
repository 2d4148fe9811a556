// The data of the commands for many jobs: what put-jobs, delete-jobs and release-jobs send after
// their lines, and what they and reserve-jobs keep while they are under way (session_batches.cpp).
//
//   const Batch batch = parse_batch("5 key=a\r\nhello\r\n3\r\nyou\r\n", "delay=30s", 65'535);
//   batch.jobs.size() == 2; batch.jobs[0].body == "hello"; batch.jobs[1].order.due_in == 30'000;
//
// Thread safety: the functions are pure, the others plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine.h"

namespace carillon::server::beanstalk {

struct Batch {
  // The keys and bodies point into the data, or the defaults.
  std::vector<queue::NewJob> jobs;
  // The number of the first job that cannot be read, from 1; 0: all can.
  std::size_t wrong = 0;
  // Why it cannot, as the reply to its own put would say: "BAD_OPTION delya: ...".
  std::string why = {};
};

// Reads the data of put-jobs. `defaults` are the options of its line. REQUIRES: they belong to
// OptionsOf::kBatch.
Batch parse_batch(std::string_view data, std::string_view defaults, std::uint32_t max_job_size);

// Reads ids that are separated by spaces. None if the data has anything else, or more than
// kMaxBatch ids.
std::optional<std::vector<queue::JobId>> parse_ids(std::string_view data);

// Returns the reply to a put without its end.
std::string put_answer(const queue::PutOutcome& outcome);

// The jobs that a reserve-jobs has got so far.
struct GatheredJobs {
  struct Job {
    queue::JobView job;
    std::string body;
  };
  std::size_t wanted = 0;
  std::vector<Job> jobs = {};
  std::size_t bytes = 0;  // bytes of their bodies
  bool late = false;      // the client has waited for a body
};

// A delete-jobs or release-jobs that is under way.
struct EachJob {
  std::vector<queue::JobId> ids;
  std::size_t next = 0;  // the first id that is not done yet
  std::string answers = {};
  queue::Sequence durable_at = 0;
};

}  // namespace carillon::server::beanstalk
