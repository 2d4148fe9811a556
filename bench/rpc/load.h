// The two programs behind the figures of remote calls in docs/timers.md. bench/rpc/run starts them.
#pragma once

#include <string>
#include <vector>

namespace rpc {

// serve MEDIAN SPREAD SLOWEST NEVER SEED: answers the requests of one connection, each after a
// log-normal delay (seconds), or never. Prints its port first.
int serve(const std::vector<std::string>& arguments);

// load DESIGN PORT OUTSTANDING LEAST_TIMEOUT MOST_TIMEOUT RAMP WARM_UP DURATION SEED: keeps calls
// outstanding, and prints what they took as JSON. DESIGN is timers or scan.
int load(const std::vector<std::string>& arguments);

}  // namespace rpc
