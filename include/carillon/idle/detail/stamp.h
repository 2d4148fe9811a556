// Stamp: the word that a touch stores: the tick of a connection's last packet and the generation of
// its id.
#pragma once

#include <bit>
#include <cstdint>

#include "carillon/require.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// The upper 40 bits are the low 40 bits of the tick, the lower 24 bits are the generation. 2^40 ms
// are 34 years. A reader knows the current time to within half of that, so it can compute the
// missing upper bits of the tick.
//
// Tick and generation share a word so that a late touch can be recognised: one whose connection is
// gone, and whose index was given to another connection between that touch's load and its store.
struct Stamp {
  static constexpr unsigned kGenerationBits = 24;
  static constexpr std::uint64_t kGenerationMask = (std::uint64_t{1} << kGenerationBits) - 1;
  static constexpr Tick kReach = Tick{1} << 39;  // ticks

  static constexpr std::uint64_t of(Tick tick) noexcept { return tick << kGenerationBits; }

  static constexpr std::uint32_t generation(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word & kGenerationMask);
  }

  // How many ticks before `now` the stamp is; negative if it is after `now`. REQUIRES: the two are
  // less than kReach ticks apart.
  static constexpr std::int64_t age(std::uint64_t word, Tick now) noexcept {
    return static_cast<std::int64_t>(of(now) - (word & ~kGenerationMask)) >> kGenerationBits;
  }

  // A cheaper age() of the oldest of many stamps: take the maximum of rough_age(), one subtraction
  // each, then age_of_rough() of that, one shift for all. REQUIRES: no generation is 0.
  static constexpr std::int64_t rough_age(std::uint64_t word, Tick now) noexcept {
    CARILLON_REQUIRE_DEBUG(generation(word) != 0, word);
    return static_cast<std::int64_t>(of(now) - word);
  }
  static constexpr std::int64_t age_of_rough(std::int64_t rough) noexcept {
    return (rough >> kGenerationBits) + 1;
  }

  // Returns true if a connection can have this generation: it is odd and of 24 bits.
  static constexpr bool is_generation(std::uint32_t generation) noexcept {
    return (generation & (~kGenerationMask | 1)) == 1;
  }

  // Returns true if `word` has the same generation as `other` and a tick that is later by less than
  // kReach. Only the tick's bits are then set in their difference.
  static constexpr bool supersedes(std::uint64_t word, std::uint64_t other) noexcept {
    return std::rotr(word - other, kGenerationBits) - 1 < kReach - 1;
  }
};

}  // namespace carillon::detail
