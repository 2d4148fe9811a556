// Jobs that are put, one by a request: what is asked for, and what each put answers.
#pragma once

#include <array>
#include <string>
#include <string_view>

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

// --- What other puts answer, too.

// Says that a job has the put's key, or had it and is done: in words, and as the answer.
std::string told_of_key(const queue::PutOutcome& put);
Problem taken(const ProblemKind& kind, const queue::PutOutcome& put);

// Returns why the body is too large for a job; an empty text if it is not.
std::string size_fault(const RequestContext& x, std::string_view body);
void require_size(const RequestContext& x, std::string_view body);  // throws Problem
// Says which field of the job at `at` makes it due, or expire, after queue::kLastDue. Only the
// times of the order count.
Problem too_far(RequestContext& x, const queue::PutOrder& order, const std::string& at = "");
// Returns the problem of a job that expires before it is due.
Problem never_runs(const queue::NeverRuns& refused, bool is_moment, const std::string& at = "");
// The rate for puts of the tube names[0] in words, and the problem that a put has to wait for it.
std::string told_rate(RequestContext& x);
Problem too_fast(RequestContext& x, queue::Millis wait);
// Says that the tube names[0] takes no jobs.
Problem drains(const RequestContext& x);

// 201 for a new job, and 200 for one that was replaced, with the job as it was put. If the key is
// taken: 200 with the job that has it, as it is, if the put asked to be left out then
// (OnConflict::kIgnore), else 409. A request that has put it already is answered as it was then.
// Throws Problem. REQUIRES: the order was that of order_of() (idempotency.h).
Reply reply_to_put(RequestContext& x, const queue::BatchOutcome& batch);

// The header of an answer that is given again.
inline constexpr std::string_view kReplayed = "Idempotent-Replayed";

}  // namespace carillon::server
