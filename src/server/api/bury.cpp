// Buries one job (bury.h).
#include "server/api/bury.h"

#include <fmt/format.h>

#include <array>

#include "carillon/queue/engine.h"
#include "server/api/operation.h"
#include "server/api/operations.h"
#include "server/api/problem.h"

namespace carillon::server {

namespace {

void bury_job(RequestContext& x, const BuryJob& asked) {
  using Result = queue::ChangeOutcome::Result;
  const queue::ChangeOutcome outcome = x.engine().bury_job(x.now(), asked.id, asked.priority);
  if (outcome.result == Result::kReserved)
    throw Problem(kConflict, fmt::format("job {} is reserved", asked.id));
  if (outcome.result != Result::kDone)
    throw Problem(kNotFound, fmt::format("there is no job {}", asked.id));
  x.answer({.status = 204, .durable_at = outcome.durable_at});
}

constexpr std::array kBuryRows = {operation<bury_job>(
    {.method = "POST",
     .path = "/v1/jobs/{id}:bury",
     .name = "buryJob",
     .tag = "jobs",
     .summary = "Sets a job aside that nobody has reserved, until somebody kicks or retries it.",
     .rights = {Needs::kAdmin, Reach::kJob},
     .appends = Appends::kYes,
     .problems = "400 404 409 422"})};

}  // namespace

std::span<const Operation> bury_operations() {
  return kBuryRows;
}

}  // namespace carillon::server
