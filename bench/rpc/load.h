// The load: keeps so many calls outstanding at a server, for a while, and then finds out what
// became of each.
//
// Each of `outstanding` slots has one call at a time; when it ends, the next begins. Every end is
// counted in its slot, so a call that ended twice, or never, is found. At the end the server is
// asked how many requests it saw and answered.
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
  double least_timeout = 1, most_timeout = 5;  // seconds; drawn for each call
  int attempts = 3;
  double ramp = 2;      // seconds in which the first calls begin
  double warm_up = 4;   // seconds from then until the measurement
  double duration = 5;  // seconds of the measurement
  std::chrono::milliseconds scan_every = ScanDeadlines::kEvery;
  std::uint64_t seed = 1;  // of the time-outs and the pauses
};

struct LoadReport {
  std::string failure;  // why it could not be run to its end; else empty

  // While it was measured.
  double seconds = 0, cpu_seconds = 0, deadline_cpu_seconds = 0;
  std::uint64_t ended = 0;          // calls
  std::uint64_t sent = 0;           // attempts
  std::vector<double> lateness_ms;  // of each time-out, in order

  // From the first call to the last.
  CallerCounts counts;
  std::uint64_t ended_twice = 0, never_ended = 0;         // calls
  std::uint64_t server_requests = 0, server_answers = 0;  // as the server says
  std::uint64_t early = 0;                                // time-outs

  // What does not add up; empty if all does.
  std::string wrong() const;
  bool good() const { return failure.empty() && wrong().empty(); }
};

// Throws boost::system::system_error if there is no server.
LoadReport run_load(const LoadOptions& options);

}  // namespace rpc
