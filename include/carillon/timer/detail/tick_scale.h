// TickScale: converts between the nanoseconds of a clock and the ticks of a wheel. A tick begins at
// each multiple of its length. A clock may show times before 0, and a wheel's ticks are not
// negative; so they are counted from before all times of a clock.
#pragma once

#include <bit>
#include <cstdint>

#include "carillon/require.h"
#include "carillon/timer/detail/durations.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// It divides by a multiplication, as in Granlund and Montgomery,
// "Division by Invariant Integers using Multiplication" (PLDI 1994), theorem 4.2 with N = 63.
class TickScale {
 public:
  // REQUIRES: tick >= 1.
  explicit TickScale(std::int64_t tick) noexcept
      : tick_(static_cast<std::uint64_t>(tick)),
        bits_(static_cast<unsigned>(std::bit_width(tick_ - 1))) {
    CARILLON_REQUIRE(tick >= 1, tick);
    multiplier_ = static_cast<std::uint64_t>((Wide{1} << (63 + bits_)) / tick_) + 1;
    // A power of two, so that the ticks at which timers with slack meet are those of all wheels.
    zero_ = std::bit_ceil(divide(static_cast<std::uint64_t>(kForever)) + 1);
  }

  // The tick that is under way at `ns`.
  Tick at(std::int64_t ns) const noexcept {
    return ns >= 0 ? zero_ + divide(static_cast<std::uint64_t>(ns))
                   : zero_ - 1 - divide(static_cast<std::uint64_t>(-(ns + 1)));
  }

  // The first tick that begins at or after `ns`.
  Tick not_before(std::int64_t ns) const noexcept { return at(ns - 1) + 1; }

  // When a tick begins; the end of the range if that is beyond it.
  std::int64_t begin(Tick tick) const noexcept {
    const bool negative = tick < zero_;
    const Wide ns = Wide{negative ? zero_ - tick : tick - zero_} * tick_;
    const bool beyond = ns >= static_cast<std::uint64_t>(kForever);
    const std::int64_t distance = beyond ? kForever : static_cast<std::int64_t>(ns);
    return negative ? -distance : distance;
  }

  std::int64_t tick() const noexcept { return static_cast<std::int64_t>(tick_); }

 private:
  __extension__ using Wide = unsigned __int128;

  std::uint64_t divide(std::uint64_t ns) const noexcept {
    return static_cast<std::uint64_t>((Wide{ns} * multiplier_) >> 63 >> bits_);
  }

  std::uint64_t tick_;
  unsigned bits_;  // the least n with 2^n >= tick
  std::uint64_t multiplier_;
  Tick zero_;  // the tick that begins at 0
};

}  // namespace carillon::detail
