// BinaryDigits: the geometry of a wheel whose levels are the digits of the tick, kBits bits each,
// over the whole 64-bit range.
//
// A geometry says how many levels and slots a wheel has, and on which of them a timer goes:
// HierarchicalWheel has all else. The other one, for levels of any sizes, is Levels (levels.h). Its
// members, of which all functions are static, constexpr and noexcept:
//
//   kLevels, kSlots     how many there are; kSlots counts those of all levels
//   kLongestDelay       the largest expiry - now() that it takes
//   kQueues             The timers of a slot stand in one queue or several, of which the first fires first. Queues are
//                       numbered through all levels, lowest level first, and those of one slot follow each other
//   kQueuesPerTick      how many queues a slot of level 0 has
//   kLonePlaces         how many slots have a place for a lone timer (slot_table.h): all of level 0, if they are a power of two
//                       and in order; or 0
//   kInOrder            whether, of two queues that hold timers, the one with the lower number always comes up first,
//                       and never both at one tick
//   queue(hand, expiry, origin)  the queue of a timer that expires at `expiry`, placed when the hand is at `hand`, not
//                       after it: by its owner (origin 0), or by the wheel, which takes it from a queue of that origin
//   origin(queue)       what to pass on to queue() for the timers of `queue`
//   tick_queue(tick)    the first queue of the slot of `tick` on level 0
//   level(queue), position(queue)
//   start(hand, queue)  the first tick of the slot that `queue` is in, when the hand comes to it next
//   start_around(tick, queue)    the first tick of the slot that holds `tick`, on the level of `queue`
//
// One that is not kInOrder also has kFirstQueue, the number of the first queue of each level and of
// one more, and
//   queue_after(level, hand)     where the search for the next queue of `level` begins: behind the hand's own slot
//   slot_end(level, tick)        the first tick behind the slot of `tick` on `level`
#pragma once

#include <bit>
#include <cstddef>
#include <limits>

#include "carillon/wheel/slot_position.h"
#include "carillon/wheel/timer_node.h"

namespace carillon {

// A tick is read as a number with digits 0 .. kSlotsPerLevel-1, least significant first; level n of
// the wheel is digit n. Eight bits make 8 levels of 256 slots.
//
// The *level* of a timer is the highest digit in which its expiry and the hand differ, its *slot*
// is the expiry's digit there. Since expiry > hand, that digit is greater than the hand's: on every
// level the timers lie ahead of the hand, nothing wraps, and all timers of a level expire before
// all timers of the next. Slots are numbered through all levels, lowest level first, so of two
// slots that hold timers the one with the lower number comes up first. Each slot is one queue.
template <unsigned kBits>
struct BinaryDigits {
  static_assert(kBits >= 2 && kBits <= 16, "a digit has 2 to 16 bits");

  static constexpr unsigned kLevels = (64 + kBits - 1) / kBits;
  static constexpr std::size_t kSlotsPerLevel = std::size_t{1} << kBits;
  static constexpr std::size_t kSlots = kLevels * kSlotsPerLevel;
  static constexpr Tick kLongestDelay = std::numeric_limits<Tick>::max();
  static constexpr std::size_t kQueues = kSlots;
  static constexpr std::size_t kQueuesPerTick = 1;
  static constexpr bool kInOrder = true;
  static constexpr std::size_t kLonePlaces = kSlotsPerLevel;

  static constexpr std::size_t queue(Tick hand, Tick expiry, unsigned /*origin*/ = 0) noexcept {
    const auto highest_bit = static_cast<unsigned>(std::countl_zero((hand ^ expiry) | 1) ^ 63);
    const unsigned level = highest_bit / kBits;
    return level * kSlotsPerLevel + ((expiry >> level * kBits) & (kSlotsPerLevel - 1));
  }

  static constexpr unsigned origin(std::size_t /*queue*/) noexcept { return 0; }

  static constexpr std::size_t tick_queue(Tick tick) noexcept { return queue(tick, tick); }

  static constexpr unsigned level(std::size_t queue) noexcept {
    return static_cast<unsigned>(queue / kSlotsPerLevel);
  }

  static constexpr SlotPosition position(std::size_t queue) noexcept {
    return {level(queue), queue % kSlotsPerLevel};
  }

  // The digits above those of the slot are the hand's, or those of any tick of the slot: hence both
  // are one.
  static constexpr Tick start(Tick hand, std::size_t queue) noexcept {
    const unsigned shift = level(queue) * kBits;
    const unsigned shift_above = shift + kBits;
    const Tick above = shift_above < 64 ? hand >> shift_above << shift_above : 0;
    return above | (Tick{queue % kSlotsPerLevel} << shift);
  }

  static constexpr Tick start_around(Tick tick, std::size_t queue) noexcept {
    return start(tick, queue);
  }
};

}  // namespace carillon
