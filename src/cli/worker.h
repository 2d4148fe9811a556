// The worker behind `carillon work`: takes jobs and runs a command for each.
//
// A worker has slots, one for each job that may run at the same time. Each slot is a thread with
// its own connection, because a connection that waits in a reserve cannot do anything else. The
// slot reserves a job and runs the command (child_process.h). It touches the job every half ttr
// until the command ends, and then
//   - deletes the job if the command's exit code was 0,
//   - buries it if this was its last attempt,
//   - or releases it with a delay (backoff.h) that grows with the attempts.
//
// Attempts: the protocol does not count failures. The slot takes the attempt to be 1 + releases +
// buries + timeouts of the job, because each failure adds to one of these counts. The server keeps
// them, so they are the same for all workers. They do not show whether a release came from a
// failure or from another client. A job that went back because its connection ended is not counted
// as failed: the reason is unknown. Each bury allows max_attempts more attempts.
//
// Refused results: if the server refuses to store the result of a job (its disk is full), the job
// stays reserved. The slot keeps it, and tries again for as long as it takes.
//
// Lost connections: the server has given the job back. The slot lets the command finish, drops its
// result, and tries to reconnect for as long as it takes. The job runs again: at least once, not
// exactly once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/backoff.h"
#include "server/address.h"

namespace carillon::cli {

// When a worker ends.
enum class WorkUntil {
  kStopped,  // at a signal only
  kOneJob,   // after one job, whatever its result
  kEmpty,    // when no job is ready
};

struct WorkerOptions {
  server::Address server;
  std::vector<std::string> tubes;    // to reserve from; empty: tube default
  std::vector<std::string> command;  // REQUIRES: not empty
  std::uint32_t slots = 1;
  Backoff backoff;
  std::optional<std::uint32_t> max_attempts;  // none: try for ever
  WorkUntil until = WorkUntil::kStopped;
};

// Works until a signal or `options.until` ends it. Writes one line per job to standard error.
//
// At the first SIGTERM, SIGINT or SIGHUP it takes no more jobs and lets the running commands
// finish. A result that the server has refused before is sent once more. A job whose result is
// refused after the signal is given back. The second signal kills the running commands and gives
// their jobs back.
//
// Returns kFailure if commands were killed, if a job was given back because its result was refused,
// if a slot met an error from which it could not go on, or if the job of kOneJob failed; else
// kSuccess. Throws Unavailable if the server cannot be reached at the start.
int run_worker(const WorkerOptions& options);

}  // namespace carillon::cli
