// What is done with one job in the same way, whether its id or its key names it.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "carillon/queue/engine.h"
#include "carillon/queue/never_runs.h"
#include "server/api/problem.h"
#include "server/api/request_context.h"
#include "server/http/job_fields.h"
#include "server/http/reply.h"

namespace carillon::server::http {

Problem no_such_job(queue::JobId id);
// Answers with the body alone, of any size.
void answer_body(RequestContext& x, queue::JobId id);
// Adds the state of the job whose key a put has met. Adds nothing if the stored answer of an older
// server, which kept no state, is given once more.
void add_state(const queue::PutOutcome& put, boost::json::object& told);
// That a job has the key of one that was to be put, or had it and is done: in words, and as the
// answer.
std::string told_of_key(const queue::PutOutcome& put);
Problem taken(const ProblemKind& kind, const queue::PutOutcome& put);

// Returns why a job cannot have the body; an empty text if it can.
std::string size_fault(const RequestContext& x, std::string_view body);
// Says which field of the job at `at` makes it due, or expire, after queue::kLastDue. Of the order
// only the times count.
Problem too_far(RequestContext& x, const queue::PutOrder& order, const std::string& at = "");
// Says that the job at `at` would expire before it is due.
Problem never_runs(const queue::NeverRuns& refused, bool is_moment, const std::string& at = "");
// The rate of puts of the tube names[0], in words; and that a put has to wait for it.
std::string told_rate(RequestContext& x);
Problem too_fast(RequestContext& x, queue::Millis wait);
// Puts the job into the tube in use, as a batch of one. Throws Problem.
queue::BatchOutcome put(RequestContext& x, const JobFields& job, const queue::BatchOrder& order);
// 201 for a new job, and 200 for one that was replaced, with the job as it was put. If the key is
// taken: 200 with the job that has it, as it is, if the put asked to be left out then
// (OnConflict::kIgnore), else 409. A request that has put it already is answered as it was then.
// Throws Problem. REQUIRES: the order was that of order_of() (idempotency.h).
Reply reply_to_put(RequestContext& x, const queue::BatchOutcome& batch);

// The header of an answer that was given before.
inline constexpr std::string_view kReplayed = "Idempotent-Replayed";

// These answer, or throw Problem. If the request has If-Match, the job must have that entity tag. A
// GET with If-None-Match is answered 304 if it names the tag.
void answer_one(RequestContext& x, queue::JobId id);
void patch_one(RequestContext& x, queue::JobId id);
void cancel_one(RequestContext& x, queue::JobId id);

// Throws Problem if the request's If-Match does not name the job as it is.
void require_match(RequestContext& x, queue::JobId id);

}  // namespace carillon::server::http
