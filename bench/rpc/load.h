// The load: keeps a number of calls outstanding at a server for a while, and then checks how each
// call ended.
//
// There are `outstanding` lines, as of telephones. A line has one call at a time; when it ends, the
// next begins. Each line counts the calls that begin and end, so a call that ended twice, or never,
// is found. At the end the load asks the server how many requests it received and answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "caller.h"

namespace rpc {

enum class Design { kTimers, kScan };

struct LoadOptions {
  std::uint16_t port = 0;
  Design design = Design::kTimers;
  std::size_t outstanding = 1000;
  double least_timeout = 1, most_timeout = 5;  // seconds; each call draws one between the two
  int attempts = 3;
  double ramp = 2;      // seconds in which the first calls begin
  double warm_up = 4;   // seconds from then until the measurement
  double duration = 5;  // seconds of the measurement
  std::chrono::milliseconds scan_every = ScanDeadlines::kEvery;
  std::uint64_t seed = 1;  // for the time-outs and the pauses
};

struct LoadReport {
  std::string failure;  // why the load could not run to its end; empty if it could

  // During the measurement.
  double seconds = 0, cpu_seconds = 0, deadline_cpu_seconds = 0;
  std::uint64_t ended = 0;          // calls
  std::uint64_t sent = 0;           // attempts
  std::vector<double> lateness_ms;  // of each time-out; sorted

  // From the first call to the last.
  CallerCounts counts;
  std::uint64_t ended_twice = 0, never_ended = 0;         // calls
  std::uint64_t server_requests = 0, server_answers = 0;  // counted by the server
  std::uint64_t early = 0;                                // time-outs

  // Names the counts that do not add up; empty if all do.
  std::string wrong() const;
  bool good() const { return failure.empty() && wrong().empty(); }
};

// Throws boost::system::system_error if there is no server.
LoadReport run_load(const LoadOptions& options);

}  // namespace rpc
