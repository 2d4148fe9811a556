// Jobs that their keys name: created, replaced, looked at, changed and cancelled (routes.h).
#include <fmt/format.h>

#include "server/api/problem.h"
#include "server/http/idempotency.h"
#include "server/http/one_job.h"
#include "server/http/routes.h"

namespace carillon::server::http {

namespace {

std::string no_job_with_key(const RequestContext& x) {
  return fmt::format("tube {} has no job with the key {}", x.names[0], x.names[1]);
}

queue::JobId named_job(RequestContext& x) {
  x.use_tube();
  if (const auto id = x.engine().job_with_key(x.client(), x.names[1])) return *id;
  throw Problem(kNotFound, no_job_with_key(x));
}

// The path and If-None-Match tell these.
void refuse_headers(const Request& request) {
  for (const auto& [name, value] : request.headers) {
    if (name != "carillon-key" && name != "carillon-on-conflict") continue;
    throw Problem(
        kBadRequest,
        fmt::format("{}: {}: the path tells the key; If-None-Match and If-Match tell what "
                    "becomes of a job that has it",
                    name, value));
  }
}

}  // namespace

// The same PUT twice leaves one job. `If-None-Match: *` only creates, `If-Match` only
// replaces. What they do not allow is answered 412 (RFC 9110, 13.1).
void put_key(RequestContext& x) {
  x.use_tube();
  x.is_put = true;
  require_key(x.names[1]);
  const std::string_view none = x.request.header("if-none-match");
  if (!none.empty() && none != "*")
    throw Problem(kBadRequest, fmt::format("If-None-Match: {}: write * here", none));
  JobFields job;
  if (describes_job(x.request)) {
    boost::json::object object = parse_object(x.request.body);
    FieldFaults faults;
    for (const std::string_view name : {"key", "on_conflict"})
      if (object.contains(name))
        faults.add(fmt::format("/{}", name), "the path and the headers tell it");
    object["key"] = x.names[1];
    add_trace(x.request, object);
    read_job(object, "", faults, job);
    faults.throw_if_any();
  } else {
    refuse_headers(x.request);
    read_plain_job(x.request, job);
    job.key = x.names[1];
    job.order.key = job.key;
  }
  job.order.on_conflict = none.empty() ? queue::OnConflict::kReplace : queue::OnConflict::kReject;
  if (!x.request.header("if-match").empty()) {
    const auto id = x.engine().job_with_key(x.client(), x.names[1]);
    if (!id) throw Problem(kChanged, no_job_with_key(x));
    require_match(x, *id);
  }
  const queue::BatchOutcome batch = put(x, job, order_of({}));
  const queue::PutOutcome& outcome = batch.jobs.front();
  if (outcome.result == queue::PutOutcome::Result::kExists) throw taken(kChanged, outcome);
  x.answer(reply_to_put(x, batch));
}

void answer_key(RequestContext& x) {
  answer_one(x, named_job(x));
}

void patch_key(RequestContext& x) {
  patch_one(x, named_job(x));
}

void cancel_key(RequestContext& x) {
  cancel_one(x, named_job(x));
}

}  // namespace carillon::server::http
