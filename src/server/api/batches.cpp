// Batches of jobs (batches.h).
#include "server/api/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <deque>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "server/api/idempotency.h"
#include "server/api/key_owner.h"
#include "server/api/operations.h"
#include "server/api/puts.h"

namespace carillon::server {

namespace {

// A job that was read. Its order points into it.
struct ReadJob {
  NewJob asked = {};
  std::string attributes = {};
  queue::PutOrder order = {};
};

// What a request has described so far.
struct Batch {
  Unread<NewJob> described;
  std::deque<ReadJob> jobs = {};  // its elements stay where they are
  std::unordered_set<std::string_view> keys = {};
  std::optional<Once> once = {};
};

void read_job_at(const RequestContext& x, std::size_t n, Batch& batch, Reader& reader) {
  const boost::json::object* const object = (*batch.described.items)[n].if_object();
  if (object == nullptr) return reader.fault_at(fmt::format("/jobs/{}", n), "not an object");
  ReadJob& job = batch.jobs.emplace_back();
  const auto read = [&] {
    read_fields(reader, kShape<NewJob>, *object, &job.asked);
    job.order = order_of(reader, job.asked);
    job.attributes = kept_attributes(reader, job.asked);
    job.order.attributes = job.attributes;
    if (!job.asked.key.empty() && !batch.keys.insert(job.asked.key).second)
      reader.fault("key", "another job of the batch has this key");
    if (std::string why = size_fault(x, job.asked.body.bytes); !why.empty())
      reader.fault("body", std::move(why));
  };
  reader.within("jobs", [&] { reader.within(std::to_string(n), read); });
}

JobOfBatch told_of(const queue::PutOutcome& put) {
  using Result = queue::PutOutcome::Result;
  JobOfBatch told{.status = put.result == Result::kInserted ? 201u : 200u,
                  .id = put.id,
                  .state = {},
                  .detail = {}};
  if (put.result == Result::kExists || put.result == Result::kReserved) {
    told.state = key_state_of(put);
    told.detail = "the key is taken, and the job asked to be left out then";
  }
  return told;
}

// What stood in the way of all jobs.
[[noreturn]] void refuse_all(RequestContext& x, const Batch& batch,
                             const queue::BatchOutcome& outcome) {
  using Result = queue::PutOutcome::Result;
  const queue::PutOutcome& put = outcome.jobs.back();
  if (put.result == Result::kDraining) throw drains(x);
  if (put.result == Result::kTooFast) throw too_fast(x, put.wait);
  const std::string at = fmt::format("/jobs/{}", outcome.stopper);
  if (put.result == Result::kTooMany) {
    const std::string why = fmt::format("{}; so the tube never takes more than {} at once",
                                        told_rate(x), outcome.stopper);
    throw Problem(kBadField, why, {{.pointer = at, .detail = why}});
  }
  if (put.result == Result::kTooFar) throw too_far(x, batch.jobs[outcome.stopper].order, at);
  const std::string why = told_of_key(put);
  throw Problem(kConflict, at + ": " + why, {{at + "/key", why}}).in_state(name_of(put.owner));
}

queue::BatchOutcome put_all(RequestContext& x, const Batch& batch) {
  std::vector<queue::NewJob> all;
  all.reserve(batch.jobs.size());
  for (const ReadJob& job : batch.jobs)
    all.push_back({.order = job.order, .body = job.asked.body.bytes});
  try {
    return x.engine().put_all(x.client(), x.now(), all, order_of(batch.once));
  } catch (const queue::NeverRuns& refused) {
    const bool is_moment = all[refused.job].order.expires_at.has_value();
    throw never_runs(refused, is_moment, fmt::format("/jobs/{}", refused.job));
  }
}

void put_them(RequestContext& x, Batch& batch) {
  x.require_room();
  x.engine().use(x.client(), x.names.front());
  const queue::BatchOutcome outcome = put_all(x, batch);
  using Result = queue::BatchOutcome::Result;
  if (outcome.result == Result::kRefused) refuse_all(x, batch, outcome);
  note_answer(batch.once, outcome);
  PutTogether told;
  told.jobs.reserve(outcome.jobs.size());
  for (const queue::PutOutcome& put : outcome.jobs) told.jobs.push_back(told_of(put));
  Reply reply{.body = text_of(told), .durable_at = outcome.durable_at};
  if (outcome.result == Result::kAlready) reply.headers.emplace_back(kReplayed, "true");
  x.answer(std::move(reply));
}

// A step reads some jobs; the last one puts all of them. Nothing was put if a job is wrong.
void read_more(RequestContext& x, const std::shared_ptr<Batch>& batch) {
  constexpr std::size_t kAtOnce = 100;
  const std::size_t size = batch->described.items->size();
  const std::size_t first = batch->jobs.size();
  Reader reader;
  for (std::size_t n = first; n < std::min(first + kAtOnce, size) && !reader.is_full(); ++n)
    read_job_at(x, n, *batch, reader);
  reader.throw_if_any();
  for (std::size_t n = first; n < batch->jobs.size(); ++n)
    x.hold(sizeof(ReadJob) + batch->jobs[n].asked.body.bytes.size());
  const bool is_whole = batch->jobs.size() == size;
  x.later([batch, is_whole](RequestContext& then) {
    is_whole ? put_them(then, *batch) : read_more(then, batch);
  });
}

void put_jobs(RequestContext& x, const PutJobs& asked, Reader& reader) {
  x.is_put = true;
  reader.throw_if_any();
  const auto batch = std::make_shared<Batch>(Batch{.described = asked.jobs});
  if (auto once = once_of(x)) batch->once.emplace(std::move(*once));
  read_more(x, batch);
}

constexpr auto kBatchRows =
    rows("jobs", operation<put_jobs, PutTogether>(
                     "POST /v1/tubes/{tube}/jobs:batch", {Needs::kPut, Reach::kTube},
                     "Puts up to 1000 jobs, all or none, with one write.",
                     {.appends = Appends::kYes,
                      .first_answer = FirstAnswer::kStored,
                      .problems = "409 413 429 503",
                      .answer_headers = "RateLimit-Policy RateLimit"}));

}  // namespace

std::span<const Operation> batch_operations() {
  return kBatchRows;
}

}  // namespace carillon::server
