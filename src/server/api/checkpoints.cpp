// A checkpoint that lasts as long as the connection of its client (checkpoints.h).
#include "server/api/checkpoints.h"

#include "carillon/queue/store.h"
#include "server/api/operations.h"
#include "server/api/problem.h"

namespace carillon::server {

namespace {

void create_checkpoint(RequestContext& x, const AskedNothing&) {
  using Begun = CheckpointLease::Begun;
  const Begun begun = x.service().checkpoint().begin(x.client());
  if (begun == Begun::kInMemory) {
    throw Problem(kConflict,
                  "the server keeps its jobs in memory alone: there are no files to copy");
  }
  if (begun == Begun::kBusy) throw Problem(kConflict, "another backup is running");
  x.changed_nothing = true;  // nobody has it when this client has gone
  x.await_checkpoint([](RequestContext& then, const CheckpointResult& result) {
    if (!result.checkpoint) throw queue::StoreError(result.error);
    answer(then, Checkpoint{.number = result.checkpoint->number, .path = result.checkpoint->path});
  });
}

constexpr auto kCheckpointRows = rows(
    "server", operation<create_checkpoint, Checkpoint>(
                  "POST /v1/checkpoint", {Needs::kAdmin, Reach::kAllTubes},
                  "Makes a checkpoint of all jobs, which is kept until this connection closes.",
                  {.audited_as = "checkpoint", .problems = "409"}));

}  // namespace

std::span<const Operation> checkpoint_operations() {
  return kCheckpointRows;
}

}  // namespace carillon::server
