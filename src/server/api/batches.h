// Batches: up to a thousand jobs that are put together, all or none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/api/job.h"
#include "server/api/operation.h"

namespace carillon::server {

struct PutJobs {
  std::string tube;
  Unread<NewJob> jobs;
};
template <>
inline constexpr auto kFields<PutJobs> =
    fields(Schema{"Batch"}, field<&PutJobs::tube>("The tube.", kTubeRule),
           field<&PutJobs::jobs>("What is put.", {.least = 1, .most = kMaxBatch, .needed = true}));

struct JobOfBatch {
  std::uint32_t status = 0;
  std::uint64_t id = 0;
  std::optional<KeyState> state;
  std::optional<std::string> detail;
};
template <>
inline constexpr auto kFields<JobOfBatch> =
    fields(field<&JobOfBatch::status>("201: a new job; 200: one that had the key.",
                                      {.least = 200, .most = 201}),
           field<&JobOfBatch::id>("Its number."),
           field<&JobOfBatch::state>("What the job is that has the key."),
           field<&JobOfBatch::detail>("Why it was not put."));

struct PutTogether {
  std::vector<JobOfBatch> jobs;
};
template <>
inline constexpr auto kFields<PutTogether> =
    fields(Schema{"BatchReply"}, field<&PutTogether::jobs>("What became of each, in their order."));

}  // namespace carillon::server
