// Slack: choosing, among the ticks at which a timer may fire, the one that costs the wheel and its
// sleeper least.
#pragma once

#include <bit>
#include <limits>

#include "carillon/wheel/timer_node.h"

namespace carillon {

// The tick with the most trailing zero bits in [expiry, expiry + slack] (cut off at 2^64-1). It
// lies on the boundary of a slot as coarse as the range allows, so the timer skips the cascades
// below that level; and timers whose ranges overlap tend to choose the same tick, so that one
// wake-up serves them all.
//
//   relaxed_expiry(1000, 50) == 1024      relaxed_expiry(1000, 0) == 1000
constexpr Tick relaxed_expiry(Tick expiry, Tick slack) noexcept {
  const Tick last = slack > std::numeric_limits<Tick>::max() - expiry
                        ? std::numeric_limits<Tick>::max()
                        : expiry + slack;
  if (expiry == 0) return 0;  // zero has more trailing zeros than any other
  // Above the highest bit in which expiry - 1 and last differ the whole range agrees; at that bit
  // it has exactly one round number.
  const Tick bit = std::bit_floor((expiry - 1) ^ last);
  return last & ~(bit - 1);
}

}  // namespace carillon
