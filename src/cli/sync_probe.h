// How long a disk takes to make a record durable, measured by writes like those of the server's log
// (queue/store/log/log_segment.h): 4 KiB each, past the page cache, durable when the call returns,
// into blocks that were written before.
//
//   const StopSignals signals;
//   const SyncTimes times = measure_syncs("carillon-data", signals);
//   if (times.median > 10ms) ...
//
// The file of the probe has 1 MiB, and no name while it is written. So nothing is left of it, also
// if the process is killed.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "cli/exit_status.h"
#include "cli/stop_signals.h"

namespace carillon::cli {

struct SyncTimes {
  std::chrono::nanoseconds median{0};
  std::chrono::nanoseconds p99{0};
  std::chrono::nanoseconds worst{0};
  std::size_t writes = 0;
  bool direct = false;  // the file system lets writes go past the page cache
};

// The file of the probe could not be made or written. `error` is the errno.
struct ProbeFailed : Failure {
  ProbeFailed(const std::string& text, int number) : Failure(text), error(number) {}

  int error;
};

// Makes up to 400 writes in the directory, for at most 2 s, which a single slow write may exceed.
// Throws ProbeFailed, and Interrupted (wait.h) once a signal has come.
SyncTimes measure_syncs(const std::string& directory, const StopSignals& signals);

}  // namespace carillon::cli
