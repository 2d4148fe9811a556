// A schedule is triggered: its answer is that of a put (routes.h).
#include <fmt/format.h>

#include "server/api/problem.h"
#include "server/http/idempotency.h"
#include "server/http/one_job.h"
#include "server/http/routes.h"

namespace carillon::server::http {

void trigger_schedule(RequestContext& x) {
  x.require_room();
  auto once = once_of(x);
  const auto batch = x.engine().trigger_schedule(x.now(), x.names.front(), order_of(once));
  if (!batch) throw Problem(kNotFound, fmt::format("there is no schedule {}", x.names.front()));
  note_answer(once, *batch);
  if (batch->result == queue::BatchOutcome::Result::kAlready) x.outcome = "answered again";
  x.answer(reply_to_put(x, *batch));
}

}  // namespace carillon::server::http
