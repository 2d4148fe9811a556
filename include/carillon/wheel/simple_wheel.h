// SimpleWheel: a wheel of one level, an array with one slot per tick. Its range is its number of
// slots.
//
// Choose it if all delays are known to be short: it is the simplest wheel. An expiry at now() +
// kSlots or later is refused with std::out_of_range; it never wraps.
//
//   carillon::SimpleWheel<12> wheel;       // ticks of a second
//   wheel.schedule(timer, wheel.now() + 1);   // sits in slot 1
//   wheel.schedule(late, wheel.now() + 12);   // throws: the wheel takes expiries up to 11
//
// Scheme 4 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987). All
// contracts of TimerSet (timer_set.h) hold within the range. schedule, cancel, reschedule: O(1).
// advance: O(1) per timer fired, and O(kSlots / 64) per tick at which a timer fires. Memory: 16
// bytes per slot; the rest as in hierarchical_wheel.h.
#pragma once

#include <cstddef>

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/levels.h"

namespace carillon {

template <std::size_t kSlots>
using SimpleWheel = HierarchicalWheel<WheelLevels<SlotPlacement::kDistance, kSlots>>;

}  // namespace carillon
