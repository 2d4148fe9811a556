// What an engine counts, for its reports: the sums of all tubes, and totals since its start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "carillon/queue/engine_stats.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

struct EngineCounts {
  // Jobs of the tube are ready from now on, or, with numbers below 0, not any more.
  void count_ready(Tube& tube, std::int64_t more_ready, std::int64_t more_urgent) {
    sums.ready += static_cast<std::uint64_t>(more_ready);
    sums.urgent += static_cast<std::uint64_t>(more_urgent);
    if (!tube.turn) return;
    tube.sums()->ready += static_cast<std::uint64_t>(more_ready);
    tube.sums()->urgent += static_cast<std::uint64_t>(more_urgent);
  }

  // For all tubes together, with far jobs. `delayed` and `loaded` are not kept here.
  JobCounts sums;
  std::uint64_t scheduled = 0;
  std::uint64_t waiting = 0;  // clients that wait
  std::size_t watches = 0;    // watches of all clients
  std::uint64_t timeouts = 0;
  std::uint64_t fired = 0;
  std::uint64_t far_counts = 0;  // tubes that have a FarCount
  Lateness lateness;
  EngineTotals totals;
};

}  // namespace carillon::queue
