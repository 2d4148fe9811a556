// SimpleWheel: an array of slots, one per tick: a wheel of one level, whose range is its number of
// slots.
//
// Choose it when all delays are short and known to be: it is the least there is. An expiry at now()
// + kSlots or later is refused with std::out_of_range; it never wraps.
//
//   carillon::SimpleWheel<12> wheel;       // ticks of a second
//   wheel.schedule(timer, 1);              // sits in slot 1
//   wheel.schedule(late, 12);              // throws: it takes expiries up to 11
//
// Scheme 4 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987). All
// contracts of TimerSet (timer_set.h) hold within the range. schedule, cancel, reschedule: O(1).
// advance: O(1) per timer fired, and O(kSlots / 64) per tick at which one does. Memory: 16 bytes
// per slot; the rest as said in hierarchical_wheel.h.
#pragma once

#include <cstddef>

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/levels.h"

namespace carillon {

template <std::size_t kSlots>
using SimpleWheel = HierarchicalWheel<Levels<Placement::kDistance, kSlots>>;

}  // namespace carillon
