// Steady load: puts at a fixed rate with random delays, while workers reserve and delete what is
// due.
//
// The puts follow a schedule that does not wait for the server: 1 000 times a second, as many are
// due as the rate says. The time of a put's reply counts from its place in the schedule, so a
// server that stalls pays for every put that had to wait. If the schedule is 30 s behind, the load
// gives up: the server cannot take that rate.
//
// A job's due time is the time at which its put was sent, plus its delay; its body contains it. The
// job's lateness counts from there to the time at which a worker has read the job.
#pragma once

#include "dialect.h"
#include "load.h"

namespace carillon::bench {

// Runs for `load.seconds`. Prints a line of JSON each second and one at the end. Throws
// std::runtime_error.
void run_steady(const Load& load, const Dialect& dialect);

}  // namespace carillon::bench
