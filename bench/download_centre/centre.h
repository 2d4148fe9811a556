// The load: a download centre that puts downloads at a fixed rate, begins them when they are due,
// if their site has a place, and ends them after a time. No file is fetched: the cost is that of
// the queue (examples/download_centre.cpp fetches files).
//
// The puts follow a schedule that does not wait for the queue; the time of an answer counts from
// the put's place in it. Lateness is from the time at which a download is due, first or again,
// until the centre has taken it: for Carillon, until the answer to the reserve has come; for
// PostgreSQL, until the poll that took it is committed, or until the centre sees that there is no
// place.
#pragma once

#include "plan.h"
#include "task_queue.h"

namespace carillon::bench {

using MakeQueue = std::unique_ptr<TaskQueue> (*)(const Plan&, QueueEvents&);

// Prints JSON lines: {"event": "begin"} and {"event": "end"} around what is measured, progress
// between, and the result at last. Throws std::runtime_error.
void run_centre(const Plan& plan, MakeQueue make_queue);

}  // namespace carillon::bench
