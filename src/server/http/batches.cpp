// Batches: up to a thousand jobs that are put together, all or none (routes.h).
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/api/key_owner.h"
#include "server/api/names.h"
#include "server/api/problem.h"
#include "server/http/idempotency.h"
#include "server/http/job_fields.h"
#include "server/http/one_job.h"
#include "server/http/routes.h"

namespace carillon::server::http {

namespace {

namespace json = boost::json;

// What a request has described so far.
struct Batch {
  json::object object;
  std::deque<JobFields> jobs = {};  // its elements stay where they are
  std::unordered_set<std::string_view> keys = {};
  std::optional<Once> once = {};
};

const json::array& described(const Batch& batch) {
  static const json::array kNone;
  FieldFaults faults;
  Fields fields(batch.object, "", faults);
  const json::array* const given = fields.array("jobs");
  const json::array& jobs = given != nullptr ? *given : kNone;
  if (given == nullptr && faults.empty()) fields.fault("jobs", "write a list of jobs");
  if (given != nullptr && (jobs.empty() || jobs.size() > kMaxBatch)) {
    fields.fault("jobs", fmt::format("{} jobs: a batch has 1 to {}", jobs.size(), kMaxBatch));
  }
  fields.finish();
  faults.throw_if_any();
  return jobs;
}

void read_job_at(const RequestContext& x, std::size_t n, const json::value& value, Batch& batch,
                 FieldFaults& faults) {
  const std::string at = fmt::format("/jobs/{}", n);
  const json::object* const object = value.if_object();
  if (object == nullptr) return faults.add(at, "not an object");
  JobFields& job = batch.jobs.emplace_back();
  read_job(*object, at, faults, job);
  if (!job.key.empty() && !batch.keys.insert(job.key).second)
    faults.add(at + "/key", "another job of the batch has this key");
  if (const std::string why = size_fault(x, job.body); !why.empty()) faults.add(at + "/body", why);
}

json::object told_of(const queue::PutOutcome& put) {
  using Result = queue::PutOutcome::Result;
  json::object told{{"status", put.result == Result::kInserted ? 201 : 200}, {"id", put.id}};
  if (put.result == Result::kExists || put.result == Result::kReserved) {
    add_state(put, told);
    told["detail"] = "the key is taken, and the job asked to be left out then";
  }
  return told;
}

// What stood in the way of all jobs.
[[noreturn]] void refuse(RequestContext& x, const Batch& batch,
                         const queue::BatchOutcome& outcome) {
  using Result = queue::PutOutcome::Result;
  const queue::PutOutcome& put = outcome.jobs.back();
  if (put.result == Result::kDraining)
    throw Problem(kDraining, fmt::format("the tube {} takes no new jobs", x.names.front()));
  if (put.result == Result::kTooFast) throw too_fast(x, put.wait);
  const std::string at = fmt::format("/jobs/{}", outcome.stopper);
  if (put.result == Result::kTooMany) {
    const std::string why = fmt::format("{}; so the tube never takes more than {} at once",
                                        told_rate(x), outcome.stopper);
    throw Problem(kBadField, why, {{.pointer = at, .detail = why}});
  }
  if (put.result == Result::kTooFar) throw too_far(x, batch.jobs[outcome.stopper].order, at);
  const std::string why = told_of_key(put);
  throw Problem(kConflict, at + ": " + why, {{at + "/key", why}})
      .in_state(server::name_of(put.owner));
}

queue::BatchOutcome put_all(RequestContext& x, const Batch& batch) {
  std::vector<queue::NewJob> all;
  all.reserve(batch.jobs.size());
  for (const JobFields& job : batch.jobs) all.push_back({.order = job.order, .body = job.body});
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
  if (outcome.result == Result::kRefused) refuse(x, batch, outcome);
  note_answer(batch.once, outcome);
  json::array told;
  for (const queue::PutOutcome& put : outcome.jobs) told.push_back(told_of(put));
  Reply reply{.body = json::serialize(json::object{{"jobs", std::move(told)}}),
              .durable_at = outcome.durable_at};
  if (outcome.result == Result::kAlready) reply.headers.emplace_back(kReplayed, "true");
  x.answer(std::move(reply));
}

// A step reads some jobs; the last one puts all of them. Nothing was put if a job is wrong.
void read_more(RequestContext& x, const std::shared_ptr<Batch>& batch) {
  constexpr std::size_t kAtOnce = 100;
  const json::array& all = described(*batch);
  FieldFaults faults;
  const std::size_t first = batch->jobs.size();
  for (std::size_t n = first; n < std::min(first + kAtOnce, all.size()) && !faults.is_full(); ++n)
    read_job_at(x, n, all[n], *batch, faults);
  faults.throw_if_any();
  for (std::size_t n = first; n < batch->jobs.size(); ++n)
    x.hold(sizeof(JobFields) + batch->jobs[n].body.size());
  const bool is_whole = batch->jobs.size() == all.size();
  x.later([batch, is_whole](RequestContext& then) {
    is_whole ? put_them(then, *batch) : read_more(then, batch);
  });
}

}  // namespace

// {"jobs":[{"body":"a"},{"body":"b","delay":"30s"}]}
void put_jobs(RequestContext& x) {
  x.tube();  // it is a name
  x.is_put = true;
  const auto batch = std::make_shared<Batch>();
  if (auto once = once_of(x)) batch->once.emplace(std::move(*once));
  batch->object = parse_object(x.request.body, kMostPartsOfBatch);
  read_more(x, batch);
}

}  // namespace carillon::server::http
