// Puts, of one job or of a batch: what is asked for, and what is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/never_runs.h"
#include "server/api/job.h"
#include "server/api/jobs.h"
#include "server/api/operation.h"
#include "server/api/problem.h"
#include "server/api/request_context.h"

namespace carillon::server {

struct PutJob : NewJob {
  std::string tube;
};
template <>
inline constexpr auto kFields<PutJob> = fields(Schema{"NewJob", "No field is needed."},
                                               field<&PutJob::tube>("The tube.", kTubeRule),
                                               kDescriptionFields<PutJob>, kKeyFields<PutJob>);

struct PutKey : JobDescription {
  std::string tube;
  std::string key;
};
template <>
inline constexpr auto kFields<PutKey> = fields(Schema{"KeyedJob", "No field is needed."},
                                               kInTubeFields<PutKey>, kDescriptionFields<PutKey>);

// --- What other changes of jobs answer, too.

// Throws Problem if the body is too large for a job.
void require_size(const RequestContext& x, std::string_view body);
// Says which field of the job at `at` makes it due, or expire, after queue::kLastDue. Only the
// times of the order count.
Problem too_far(RequestContext& x, const queue::PutOrder& order, const std::string& at = "");
// Returns the problem of a job that expires before it is due.
Problem never_runs(const queue::NeverRuns& refused, bool is_moment, const std::string& at = "");

// 201 for a new job, and 200 for one that was replaced, with the job as it was put. If the key is
// taken: 200 with the job that has it, as it is, if the put asked to be left out then
// (OnConflict::kIgnore), else 409. A request that has put it already is answered as it was then.
// Throws Problem. REQUIRES: the order was that of order_of() (idempotency.h).
Reply reply_to_put(RequestContext& x, const queue::BatchOutcome& batch);

// --- Batches: up to a thousand jobs that are put together, all or none.

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
