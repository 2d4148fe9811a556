// The parts of an engine (engine_state.h), by name alone, and what several of them have: the
// wheels, and the check of their invariants.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "carillon/queue/job.h"
#include "carillon/wheel/hierarchical_wheel.h"

namespace carillon::queue {

class Appender;
class Clients;
class Endings;
class FarJobs;
class Keys;
class LoadedJobs;
class Placing;
class Puts;
class Removals;
class Retention;
class Ripening;
class Schedules;
class Throttle;
class Tubes;
struct EngineCounts;

// A call of `advance` reads at most this many entries of a wheel, some 50 us of work, besides those
// that its limit allows.
inline constexpr std::size_t kWheelEntries = 4'096;
// Each part that waits for something has a wheel for its kind of timer. A tick is 1 ms: of
// EngineClock::tick() for what waits for a time of the day, else of the monotonic clock.
using EngineWheel = HierarchicalWheel<BinaryDigits<8>, 64, kWheelEntries>;

// How long to wait for a store that has no room, in ms.
inline constexpr Millis kAwaitRoom = 20;

// For tests. Writes a line to stderr and aborts if the invariant does not hold.
inline void check_invariant(bool holds, const char* invariant, const std::string& of) {
  if (holds) return;
  std::fprintf(stderr, "queue engine: invariant broken: %s (%s)\n", invariant, of.c_str());
  std::abort();
}

}  // namespace carillon::queue
