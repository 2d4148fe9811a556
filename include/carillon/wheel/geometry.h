// BinaryDigits: the geometry of a wheel whose levels are the digits of the tick, kBits bits each,
// over the whole 64-bit range.
//
// A geometry says how many levels and slots a wheel has, and in which of them a timer goes.
// HierarchicalWheel (hierarchical_wheel.h) has the rest. The other geometry, for levels of any
// sizes, is WheelLevels (levels.h). A geometry has these members; all functions are static,
// constexpr and noexcept:
//
//   kLevels, kSlots
//       How many levels there are, and how many slots on all of them.
//   kLongestDelay
//       The largest expiry - now() that it takes, in ticks.
//   kQueues
//       How many queues there are. The timers of a slot stand in one queue, or in several, the
//       first of which fires first. Queues are numbered through all levels, lowest level first, and
//       the queues of one slot follow each other.
//   kQueuesPerTick
//       How many queues a slot of level 0 has.
//   kLoneSlots
//       How many slots have a lone entry (slot_table.h): all of level 0, if their number is a power
//       of two and kInOrder is true; otherwise 0.
//   kInOrder
//       True if the queues that hold timers always come up in the order of their numbers, and never
//       two at the same tick.
//   queue(hand, expiry, origin)
//       The queue of a timer that expires at `expiry`, not before `hand`, if it is placed when the
//       hand is at `hand`. `origin` is 0 if the owner places the timer. If the wheel moves the
//       timer out of another queue, it is the origin of that queue.
//   origin(queue)
//       The `origin` to pass to queue() for the timers of `queue`.
//   tick_queue(tick)
//       The first queue of the slot of `tick` on level 0.
//   level(queue), position(queue)
//       The level, and the SlotPosition, of the slot that `queue` is in.
//   start(hand, queue)
//       The first tick of the slot that `queue` is in, at the hand's next visit.
//   start_around(tick, queue)
//       The first tick of the slot that holds `tick`, on the level of `queue`.
//
// A geometry that is not kInOrder also has
//   kFirstQueue
//       The number of the first queue of each level, and behind them kQueues.
//   queue_after(level, hand)
//       The queue at which the search for the next queue of `level` starts: the one behind the
//       hand's own slot.
//   slot_end(level, tick)
//       The first tick behind the slot of `tick` on `level`.
#pragma once

#include <bit>
#include <cstddef>
#include <limits>

#include "carillon/wheel/slot_position.h"
#include "carillon/wheel/timer_node.h"

namespace carillon {

// A tick is read as a number with digits 0 .. kSlotsPerLevel-1, least significant first. Level n of
// the wheel is digit n. Eight bits per digit make 8 levels of 256 slots.
//
// The *level* of a timer is the highest digit in which its expiry and the hand differ, and its
// *slot* is that digit of the expiry. Since expiry > hand, that digit is greater than the hand's.
// So on every level the timers lie ahead of the hand, nothing wraps, and all timers of a level
// expire before all timers of the next. Slots are numbered through all levels, lowest level first:
// of two slots that hold timers, the one with the lower number comes up first. Each slot is one
// queue.
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
  static constexpr std::size_t kLoneSlots = kSlotsPerLevel;

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

  // The digits above the slot's are the same in the hand and in any tick of the slot. So `hand` may
  // be such a tick, as in start_around().
  static constexpr Tick start(Tick hand, std::size_t queue) noexcept {
    const unsigned shift = level(queue) * kBits;
    const unsigned shift_above = shift + kBits;
    const Tick above = shift_above < 64 ? hand >> shift_above << shift_above : 0;
    // The analyzer does not know that shift < 64: queue < kQueues.
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
    return above | (Tick{queue % kSlotsPerLevel} << shift);
  }

  static constexpr Tick start_around(Tick tick, std::size_t queue) noexcept {
    return start(tick, queue);
  }
};

}  // namespace carillon
