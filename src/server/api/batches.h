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
inline constexpr std::array kPutJobsFields = {
    field<&PutJobs::tube>("tube", "The tube.", kTubeRule),
    field<&PutJobs::jobs>("jobs", "What is put.", {.least = 1, .most = kMaxBatch, .needed = true})};
template <>
inline constexpr Shape kShape<PutJobs> = {.name = "Batch", .fields = kPutJobsFields};

struct JobOfBatch {
  std::uint32_t status = 0;
  std::uint64_t id = 0;
  std::optional<KeyState> state;
  std::optional<std::string> detail;
};
inline constexpr std::array kJobOfBatchFields = {
    field<&JobOfBatch::status>("status", "201: a new job; 200: one that had the key.",
                               {.least = 200, .most = 201}),
    field<&JobOfBatch::id>("id", "Its number."),
    field<&JobOfBatch::state>("state", "Of the job that has the key."),
    field<&JobOfBatch::detail>("detail", "Why it was not put.")};
template <>
inline constexpr Shape kShape<JobOfBatch> = {.name = "JobOfBatch", .fields = kJobOfBatchFields};

struct PutTogether {
  std::vector<JobOfBatch> jobs;
};
inline constexpr std::array kPutTogetherFields = {
    field<&PutTogether::jobs>("jobs", "What became of each, in their order.")};
template <>
inline constexpr Shape kShape<PutTogether> = {.name = "BatchReply", .fields = kPutTogetherFields};

}  // namespace carillon::server
