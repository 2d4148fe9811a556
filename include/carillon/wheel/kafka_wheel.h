// KafkaWheel: Kafka's hierarchy of wheels of one size, 20 slots, in which each wheel that overflows
// has a wider one above it.
//
// Choose it to compare: level 0 covers 20 ticks, level 1 covers 400, level 2 covers 8000, and so
// on. Levels appear on demand: levels() is 1 until a timer needs the second one. Time jumps from
// one non-empty bucket (slot) to the next, and next_wakeup() is the start of that bucket.
//
// A timer goes on the lowest level on which its bucket is less than a round of buckets ahead of the
// hand. When the hand comes to a bucket of a higher level, its timers are placed anew. Unlike
// Kafka's, this wheel fires each timer at its own tick, and the timers of one tick in the order
// scheduled. A bucket of level 0 is one tick, so nothing is early; Kafka fires a bucket at its
// start, up to a tick of several ms before some of its timers. All contracts of TimerSet
// (timer_set.h) hold, over the whole range: 15 levels of 20 buckets reach 2^64 ticks. The slots of
// all 15 levels exist from the start (38 KiB); the search for the next bucket looks only at the
// levels in use.
//
// Source: core/src/main/scala/kafka/utils/timer/TimingWheel.scala and SystemTimer.scala of Apache
// Kafka.
#pragma once

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/levels.h"

namespace carillon {

using KafkaWheel = HierarchicalWheel<EqualLevels<SlotPlacement::kSlotsAhead, 20>>;

}  // namespace carillon
