// LinuxWheel: the five wheels of 256, 64, 64, 64 and 64 slots that the timers of Linux stood on
// before 4.8.
//
// Choose it to compare, or to learn: the default (hierarchical_wheel.h) costs less and has no
// range. 512 slots cover delays below 2^32 ticks ("jiffies"); a longer one is refused with
// std::out_of_range, where Linux shortened it.
//
// A timer goes on the first wheel that covers more ticks than its delay. The number of its slot is
// in bits 0-7, 8-13, 14-19, 20-25 or 26-31 of its expiry. When the lowest 8 bits of the tick roll
// over, a slot of the second wheel cascades; when bits 8-13 are zero as well, a slot of the third,
// and so on upward. Unlike Linux's, this wheel jumps over ticks at which nothing happens, and fires
// the timers of one tick in the order scheduled, whatever their levels were (levels.h). All
// contracts of TimerSet (timer_set.h) hold within the range.
//
// Source: kernel/time/timer.c of Linux 4.7, internal_add_timer() and cascade().
#pragma once

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/levels.h"

namespace carillon {

using LinuxWheel = HierarchicalWheel<WheelLevels<SlotPlacement::kDistance, 256, 64, 64, 64, 64>>;

}  // namespace carillon
