// The worker behind `carillon work`: takes jobs and runs a command for each.
//
//   WorkerOptions options;
//   options.tubes = {"mail"};
//   options.command = {"./send-mail"};
//   return run_worker(options);                      // until a signal comes
//
// A worker has slots, one for each job that may run at the same time. Each slot is a thread with
// its own connection, because a connection that waits in a reserve cannot do anything else. The
// slot reserves a job and runs the command (child_process.h). It touches the job every half ttr, at
// least every 5 s, until the command ends, and then
//   - deletes the job if the command's exit code was 0, or if somebody has asked for its cancel,
//   - or reports that the attempt has failed, with the reason and the last line that the command
//     wrote to its standard error.
//
// Attempts: the server counts those that failed, and decides by the policy of the job, or of its
// tube, when the job comes again and when it is dead. What the policy leaves open, the options of
// this worker say: how long the job waits (Backoff), and after how many attempts it is dead.
//
// Cancel: the answer to a touch says that it was asked for. Then the command gets SIGTERM, and
// SIGKILL when `grace` is over.
//
// Other servers: beanstalkd counts no failures. There the slot takes the attempt to be 1 + releases
// + buries + timeouts of the job, because each failure adds to one of these counts. It releases a
// job that failed, with the delay of its Backoff, or buries it after its last attempt. Each bury
// allows max_attempts more.
//
// Refused results: if the server refuses to store the result of a job (its disk is full), the job
// stays reserved. The slot keeps it, and tries again for as long as it takes.
//
// Lost connections: the server has given the job back. The slot lets the command finish, drops its
// result, and tries to reconnect for as long as it takes. The job runs again: at least once, not
// exactly once.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/server_address.h"

namespace carillon::cli {

// The delay before the next attempt: it doubles with each failure, up to a limit, and is shortened
// by a random part.
struct Backoff {
  std::chrono::milliseconds first{1'000};
  std::chrono::milliseconds most{3'600'000};

  // Returns the delay after `failures` earlier failures: min(first * 2^failures, most), shortened
  // by up to a quarter: by `random` / 4 of it, with `random` in [0, 1). The random part spreads the
  // retries of jobs that failed together, for example because a service was down. Never overflows.
  std::chrono::milliseconds delay(std::uint64_t failures, double random) const;
};

inline std::chrono::milliseconds Backoff::delay(std::uint64_t failures, double random) const {
  std::chrono::milliseconds delay = std::min(first, most);
  for (; failures > 0 && delay.count() > 0 && delay < most; --failures) {
    delay = delay > most / 2 ? most : delay * 2;
  }
  const auto off = static_cast<double>(delay.count()) / 4 * random;
  return delay - std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(off));
}

// The event that ends a worker, beside a signal.
enum class WorkUntil {
  kStopped,  // at a signal only
  kOneJob,   // after one job, whatever its result
  kEmpty,    // when no job is ready; not while a limit, or a pause that ends, holds ready jobs back
};

struct WorkerOptions {
  ServerAddress server;
  std::vector<std::string> tubes;    // to reserve from: worker_tubes.h
  std::vector<std::string> command;  // REQUIRES: not empty
  std::uint32_t slots = 1;
  Backoff backoff;
  std::optional<std::uint32_t> max_attempts;  // none: try for ever
  // The longest run of a command; none: no limit.
  std::optional<std::chrono::milliseconds> time_limit;
  // The time of a command between SIGTERM and SIGKILL.
  std::chrono::milliseconds grace{10'000};
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
// if a slot met an error from which it could not go on, if the job of kOneJob failed, or if kEmpty
// ends with ready jobs in a tube that is paused for good; else kSuccess. Throws Unavailable if the
// server cannot be reached at the start.
int run_worker(const WorkerOptions& options);

}  // namespace carillon::cli
