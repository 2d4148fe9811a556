// The time, as the engine's owner reads it and hands it to the engine. The engine has no clock of
// its own, so tests can run on a virtual one.
//
//   const auto utc = std::chrono::system_clock::now();    // the wall clock first: see Now
//   const auto mono = std::chrono::steady_clock::now();   // better: CLOCK_BOOTTIME
#pragma once

#include <cstdint>

namespace carillon::queue {

// One reading of both clocks, the wall clock first. If the thread is held up for more than a
// millisecond between the two readings, the engine takes that for a wall clock that was set. This
// does no harm but costs work, so read again if they are far apart (read_clocks() in
// src/server/net/clock.h).
struct Now {
  // Nanoseconds since 1970-01-01T00:00:00Z. May be set back or forward at any time.
  std::uint64_t utc_ns = 0;
  // Nanoseconds since any fixed moment. Never runs back. Delays are counted by it, too: if it
  // stands still while the machine sleeps, delays get longer by that time.
  std::uint64_t mono_ns = 0;
};

}  // namespace carillon::queue
