// ClockWheel: a clock of 60 seconds, 60 minutes, 24 hours and 30 days, if a tick is a second.
//
// Choose it to explain hierarchical wheels: 174 slots cover a month, and a timer moves down from
// the day wheel to the hour wheel, the minute wheel and the second wheel as its time nears, in the
// order in which one reads a clock.
//
//   carillon::ClockWheel clock;
//   // Day 2, 08:40:00: the timer sits on level 3 (days), slot 2.
//   clock.schedule_after(timer, 2 * 86'400 + 8 * 3'600 + 40 * 60);
//
// A timer goes on the highest wheel on which its time lies in another slot than the hand. The days
// go round: on day 29, a timer for the next day sits in day slot 0. A delay of 30 days (2 592 000
// ticks) or more is refused with std::out_of_range. All contracts of TimerSet (timer_set.h) hold
// within the range. For times of std::chrono on any wheel see chrono_wheel.h.
#pragma once

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/levels.h"

namespace carillon {

using ClockWheel = HierarchicalWheel<WheelLevels<SlotPlacement::kDigit, 60, 60, 24, 30>>;

}  // namespace carillon
