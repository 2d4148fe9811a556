// Jobs: put, look at, change and cancel one by its id (routes.h).
#include <fmt/format.h>

#include <boost/json.hpp>

#include "server/api/problem.h"
#include "server/http/idempotency.h"
#include "server/http/job_fields.h"
#include "server/http/one_job.h"
#include "server/http/routes.h"

namespace carillon::server::http {

void put_job(RequestContext& x) {
  x.use_tube();
  x.is_put = true;
  JobFields job;
  if (describes_job(x.request)) {
    boost::json::object object = parse_object(x.request.body);
    add_trace(x.request, object);
    FieldFaults faults;
    read_job(object, "", faults, job);
    faults.throw_if_any();
  } else {
    read_plain_job(x.request, job);
  }
  auto once = once_of(x);
  if (auto first = kept_answer(x, once)) return x.answer(*std::move(first));
  const queue::BatchOutcome batch = put(x, job, order_of(once));
  note_answer(once, batch);
  Reply reply = reply_to_put(x, batch);
  // The engine has stored whose key it was, and not how that job was.
  if (batch.result == queue::BatchOutcome::Result::kPut && !batch.job) keep_answer(x, once, reply);
  x.answer(std::move(reply));
}

void answer_job(RequestContext& x) {
  answer_one(x, x.job_id());
}

void answer_job_body(RequestContext& x) {
  answer_body(x, x.job_id());
}

void patch_job(RequestContext& x) {
  patch_one(x, x.job_id());
}

void cancel_job(RequestContext& x) {
  cancel_one(x, x.job_id());
}

void kick_job(RequestContext& x) {
  const queue::Outcome outcome = x.engine().kick_job(x.now(), x.job_id());
  if (!outcome.done)
    throw Problem(kNotFound, fmt::format("there is no delayed, buried or dead job {}", x.job_id()));
  x.answer({.status = 204, .durable_at = outcome.durable_at});
}

}  // namespace carillon::server::http
