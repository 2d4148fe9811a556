// Stamp: the tick of a connection's last packet and the generation of its id, packed into the one
// word that a touch stores.
#pragma once

#include <bit>
#include <cstdint>

#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// The low 40 bits of the tick above the 24 bits of the generation. 40 bits of milliseconds are 34
// years; whoever reads a stamp knows the time to half of that, and so the rest of the tick.
//
// Tick and generation share a word so that a touch that comes too late, for a connection whose
// place has been given to another, can be told from a true one even when it was overtaken between
// its look at the word and its store.
struct Stamp {
  static constexpr unsigned kGenerationBits = 24;
  static constexpr std::uint64_t kGenerationMask = (std::uint64_t{1} << kGenerationBits) - 1;
  static constexpr Tick kReach = Tick{1} << 39;  // ticks

  static constexpr std::uint64_t of(Tick tick) noexcept { return tick << kGenerationBits; }

  static constexpr std::uint32_t generation(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word & kGenerationMask);
  }

  // How many ticks before `now` the stamp is; negative if it is after. REQUIRES: less than kReach.
  static constexpr std::int64_t age(std::uint64_t word, Tick now) noexcept {
    return static_cast<std::int64_t>(of(now) - (word & ~kGenerationMask)) >> kGenerationBits;
  }

  // The same for the oldest of many stamps that are of connections (their generation is not 0): one
  // subtraction each, and one shift for all.
  static constexpr std::int64_t rough_age(std::uint64_t word, Tick now) noexcept {
    return static_cast<std::int64_t>(of(now) - word);
  }
  static constexpr std::int64_t age_of_rough(std::int64_t rough) noexcept {
    return (rough >> kGenerationBits) + 1;
  }

  // Whether a stamp can have this generation.
  static constexpr bool is_generation(std::uint32_t generation) noexcept {
    return (generation & (~kGenerationMask | 1)) == 1;
  }

  // Whether `word` is of the same generation as `other` and of a later tick, less than kReach
  // later: their difference has the tick's bits alone.
  static constexpr bool supersedes(std::uint64_t word, std::uint64_t other) noexcept {
    return std::rotr(word - other, kGenerationBits) - 1 < kReach - 1;
  }
};

}  // namespace carillon::detail
