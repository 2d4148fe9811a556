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

constexpr std::array kCheckpointRows = {operation<create_checkpoint>(
    {.method = "POST",
     .path = "/v1/checkpoint",
     .name = "createCheckpoint",
     .tag = "server",
     .summary = "Makes a checkpoint of all jobs, which is kept until this connection closes.",
     .rights = {Needs::kAdmin, Reach::kAllTubes},
     .appends = Appends::kNo,
     .audited_as = "checkpoint",
     .problems = "400 409 422",
     .answer = &kShape<Checkpoint>})};

}  // namespace

std::span<const Operation> checkpoint_operations() {
  return kCheckpointRows;
}

}  // namespace carillon::server
