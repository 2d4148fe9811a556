// TickScale: converts between the nanoseconds of a clock and the ticks of a wheel. Tick n begins at
// n times the length of a tick.
#pragma once

#include <bit>
#include <cstdint>

#include "carillon/timer/detail/durations.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Times before 0 count as 0. It divides by a multiplication, as in Granlund and Montgomery,
// "Division by Invariant Integers using Multiplication" (PLDI 1994), theorem 4.2 with N = 63.
class TickScale {
 public:
  // REQUIRES: tick >= 1.
  explicit TickScale(std::int64_t tick) noexcept
      : tick_(static_cast<std::uint64_t>(tick)),
        bits_(static_cast<unsigned>(std::bit_width(tick_ - 1))) {
    multiplier_ = static_cast<std::uint64_t>((Wide{1} << (63 + bits_)) / tick_) + 1;
  }

  // The tick that is under way at `ns`.
  Tick at(std::int64_t ns) const noexcept {
    return ns <= 0 ? 0 : divide(static_cast<std::uint64_t>(ns));
  }

  // The first tick that begins at or after `ns`.
  Tick not_before(std::int64_t ns) const noexcept {
    return ns <= 0 ? 0 : divide(static_cast<std::uint64_t>(ns) - 1) + 1;
  }

  // When a tick begins; kForever if that is beyond the range.
  std::int64_t begin(Tick tick) const noexcept {
    const Wide ns = Wide{tick} * tick_;
    return ns >= static_cast<std::uint64_t>(kForever) ? kForever : static_cast<std::int64_t>(ns);
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
};

}  // namespace carillon::detail
