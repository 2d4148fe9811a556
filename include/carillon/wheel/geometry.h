// BinaryDigits: the geometry of a wheel whose levels are the digits of the tick, kBits bits each, over the whole 64-bit range.
#pragma once

#include <bit>
#include <cstddef>

#include "carillon/wheel/timer_node.h"

namespace carillon {

// A tick is read as a number with digits 0 .. kSlotsPerLevel-1, least significant first; level n of the wheel is digit n. Eight bits
// make 8 levels of 256 slots.
//
// The *level* of a timer is the highest digit in which its expiry and the hand differ, its *slot* is the expiry's digit there.
// Since expiry > hand, that digit is greater than the hand's: on every level the timers lie ahead of the hand, nothing wraps, and
// all timers of a level expire before all timers of the next. Slots are numbered through all levels, lowest level first, so of two
// slots that hold timers the one with the lower number comes up first.
template <unsigned kBits>
struct BinaryDigits {
  static_assert(kBits >= 2 && kBits <= 16, "a digit has 2 to 16 bits");

  static constexpr unsigned kLevels = (64 + kBits - 1) / kBits;
  static constexpr std::size_t kSlotsPerLevel = std::size_t{1} << kBits;
  static constexpr std::size_t kSlots = kLevels * kSlotsPerLevel;

  // The slot of a timer that expires at `expiry` while the hand is at `hand`. If they are equal: that of the tick on level 0.
  static constexpr std::size_t slot(Tick hand, Tick expiry) noexcept {
    const auto highest_bit = static_cast<unsigned>(std::countl_zero((hand ^ expiry) | 1) ^ 63);
    const unsigned level = highest_bit / kBits;
    return level * kSlotsPerLevel + ((expiry >> level * kBits) & (kSlotsPerLevel - 1));
  }

  static constexpr unsigned level(std::size_t slot) noexcept { return static_cast<unsigned>(slot / kSlotsPerLevel); }

  // The first tick of `slot` when the hand, or any tick of that slot, is `hand`.
  static constexpr Tick start(Tick hand, std::size_t slot) noexcept {
    const unsigned shift = level(slot) * kBits;
    const unsigned shift_above = shift + kBits;
    const Tick above = shift_above < 64 ? hand >> shift_above << shift_above : 0;
    return above | (Tick{slot % kSlotsPerLevel} << shift);
  }
};

}  // namespace carillon
