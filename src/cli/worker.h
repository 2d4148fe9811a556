// `carillon work` without its command line: takes jobs and runs a command for each.
//
// A worker has slots, one per job that may run at a time. Each slot is a thread with a connection
// of its own, since a connection that waits in a reserve answers nothing else: it reserves a job,
// runs the command (child_process.h), touches the job while that takes longer than half of the
// job's ttr, and then
//   - deletes the job if the command's exit code was 0,
//   - buries it if this was its last attempt,
//   - or releases it with a delay (backoff.h) that grows with the attempts.
//
// The protocol has no count of failures. The attempt is 1 more than the job's releases, buries and
// times that its ttr ran out: what a failure leaves behind. These counts are the server's, so they
// hold over several workers; it cannot tell a failure from another client's release. A job given
// back because its connection ended has not failed: nobody knows why it ended. A buried job has
// used up its attempts, so that n buries allow n times as many again.
//
// A server that refuses to write what came of the job (its disk is full) still holds it for the
// slot, which keeps it and tries again for as long as it takes.
//
// A lost connection means that the server has given the job back, so the slot lets the command
// finish, drops its result, and reconnects for as long as it takes. The job then runs again: at
// least once, not exactly once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/backoff.h"
#include "server/address.h"

namespace carillon::cli {

/// When a worker ends by itself.
enum class WorkUntil {
  kStopped,  // never: only by a signal
  kOneJob,   // one job is done, whatever came of it
  kEmpty,    // no job is ready
};

struct WorkerOptions {
  server::Address server;
  std::vector<std::string> tubes;    // to reserve from; empty: default
  std::vector<std::string> command;  // REQUIRES: not empty
  std::uint32_t slots = 1;
  Backoff backoff;
  std::optional<std::uint32_t> max_attempts;  // none: try for ever
  WorkUntil until = WorkUntil::kStopped;
};

/// Works until a signal or `options.until` ends it; one line per job on standard error. On SIGTERM,
/// SIGINT and SIGHUP it takes no more jobs and lets those that run finish; the second one kills
/// their commands and gives the jobs back. What the server refuses to write of a job's end is then
/// tried once more, and the job given back if that is refused too. Returns kSuccess; kFailure if
/// commands were killed, if a job was given back so, if a slot met something it could not go on
/// from, or if the job of kOneJob failed. Throws Unavailable if the server cannot be reached at the
/// start.
int run_worker(const WorkerOptions& options);

}  // namespace carillon::cli
