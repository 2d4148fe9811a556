// BinaryDigits: the geometry of a wheel whose levels are the digits of the tick, kBits bits each, over the whole 64-bit range.
#pragma once

#include <bit>
#include <cstddef>

#include "carillon/wheel/timer_node.h"

namespace carillon {

// A tick is read as a number with digits 0 .. kSlots-1, least significant first; level n of the wheel is digit n. Eight bits make
// 8 levels of 256 slots.
//
// The *level* of a timer is the highest digit in which its expiry and the hand differ, its *slot* is the expiry's digit there.
// Since expiry > hand, that digit is greater than the hand's: on every level the timers lie ahead of the hand, nothing wraps, and
// all timers of a level expire before all timers of the next.
template <unsigned kBits>
struct BinaryDigits {
  static_assert(kBits >= 2 && kBits <= 16, "a digit has 2 to 16 bits");

  static constexpr unsigned kLevels = (64 + kBits - 1) / kBits;
  static constexpr std::size_t kSlots = std::size_t{1} << kBits;  // per level

  // The level of a timer that expires at `expiry` while the hand is at `hand`; 0 if they are equal.
  static constexpr unsigned level(Tick hand, Tick expiry) noexcept {
    return static_cast<unsigned>(63 - std::countl_zero((hand ^ expiry) | 1)) / kBits;
  }

  // The digit of `tick` on `level`.
  static constexpr std::size_t slot(Tick tick, unsigned level) noexcept {
    return (tick >> (level * kBits)) & (kSlots - 1);
  }

  // The first tick of the slot of `level` in which `tick` lies.
  static constexpr Tick start(Tick tick, unsigned level) noexcept {
    const unsigned shift = level * kBits;
    return tick >> shift << shift;
  }

  // The first tick of slot `slot` of `level`, in the revolution of that level in which the hand is.
  static constexpr Tick start(Tick hand, unsigned level, std::size_t slot) noexcept {
    const Tick above = level + 1 < kLevels ? start(hand, level + 1) : 0;
    return above | (Tick{slot} << (level * kBits));
  }
};

}  // namespace carillon
