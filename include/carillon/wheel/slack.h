// Slack: if a timer may fire at any tick of a range, relaxed_expiry() chooses the tick that costs
// the wheel, and the thread that sleeps until next_wakeup(), the least.
#pragma once

#include <bit>
#include <limits>

#include "carillon/wheel/timer_node.h"

namespace carillon {

// Returns the tick with the most trailing zero bits in [expiry, expiry + slack], a range that is
// cut off at 2^64-1. That tick is the start of a slot, of as high a level as the range allows, so
// the timer skips the cascades below that level. Timers whose ranges overlap tend to get the same
// tick, so that one wake-up serves them all.
//
//   relaxed_expiry(1000, 50) == 1024      relaxed_expiry(1000, 0) == 1000
constexpr Tick relaxed_expiry(Tick expiry, Tick slack) noexcept {
  const Tick last = slack > std::numeric_limits<Tick>::max() - expiry
                        ? std::numeric_limits<Tick>::max()
                        : expiry + slack;
  if (expiry == 0) return 0;  // zero has more trailing zeros than any other
  // Take the highest bit in which expiry - 1 and last differ. All ticks of the range have the same
  // bits above it, and exactly one of them has that bit set and only zeros below: the roundest.
  const Tick bit = std::bit_floor((expiry - 1) ^ last);
  return last & ~(bit - 1);
}

}  // namespace carillon
