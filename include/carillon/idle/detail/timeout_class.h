// TimeoutClass: the blocks of connections with similar time-outs, on a wheel whose hand runs ahead
// while time-outs are scaled down.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>

#include "carillon/idle/detail/connection_blocks.h"
#include "carillon/require.h"
#include "carillon/wheel/geometry.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// The factor, 0 .. 1, that time-outs are multiplied by; a multiple of 2^-24.
class Factor {
 public:
  constexpr Factor() = default;
  // REQUIRES: 0 <= factor <= 1.
  explicit constexpr Factor(double factor) noexcept {
    CARILLON_REQUIRE(0 <= factor && factor <= 1, factor);
    parts_ = static_cast<std::uint64_t>(factor * kOne * 2 + 1) / 2;
  }

  // The scaled time-out, rounded up to whole ticks. REQUIRES: timeout < 2^39.
  constexpr Tick of(Tick timeout) const noexcept {
    CARILLON_REQUIRE_DEBUG(timeout < Tick{1} << 39, timeout);
    return (timeout * parts_ + (kOne - 1)) / kOne;
  }
  friend constexpr auto operator<=>(const Factor&, const Factor&) = default;
  constexpr double value() const noexcept { return static_cast<double>(parts_) / kOne; }

 private:
  static constexpr std::uint64_t kOne = std::uint64_t{1} << 24;
  std::uint64_t parts_ = kOne;
};

// The number of the class of `timeout`. Time-outs with the same length in bits and the same five
// highest bits are of one class, for example 16 * 2^n .. 17 * 2^n - 1. Each time-out up to 31 is a
// class of its own.
constexpr std::uint32_t timeout_class(Tick timeout) noexcept {
  const auto bits = static_cast<unsigned>(std::bit_width(timeout));
  if (bits <= 5) return static_cast<std::uint32_t>(timeout);
  return (bits - 4) * 16 + static_cast<std::uint32_t>(timeout >> (bits - 5)) - 16;
}

// A block is scheduled for the earliest deadline of its connections at factor 1: last packet +
// time-out. While the factor is 1, the hand of the wheel stands at now. At a lower factor it runs
// ahead by the part of the longest time-out that the factor takes away: lead() = longest - factor *
// longest. The timer of every block that is due has then fired, because
//
//   last packet + factor * time-out <= now     implies     last packet + time-out <= now + lead().
//
// So when the factor falls, one hand per class moves, and no connection is touched. If a block's
// timer has fired but its connections have time left, the block is scheduled for the tick at which
// the hand will stand when, at this factor, that time has passed. If the factor falls before then,
// such a block may fire a tick late: the scaled time-out and the lead are both rounded, and the
// time-out may shrink by one tick more than the lead grows.
class TimeoutClass {
 public:
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();

  explicit TimeoutClass(Tick now) : wheel(now) {}

  // From now on the class also holds connections with `timeout`. `factor` is the current one.
  void admit(Tick timeout, Factor factor) noexcept {
    longest_ = std::max(longest_, timeout);
    scale(factor);
  }
  void scale(Factor factor) noexcept { lead_ = longest_ - factor.of(longest_); }

  Tick longest() const noexcept { return longest_; }
  Tick lead() const noexcept { return lead_; }

  // The tick at which the hand must stand at `now`. The hand never goes back: after a rise of the
  // factor it waits.
  Tick target(Tick now) const noexcept { return std::max<Tick>(now + lead_, wheel.now()); }

  // The tick, not before `now`, at which the next timer of a block fires; kNever if no timer is
  // set.
  Tick next(Tick now) const noexcept {
    const Tick next = wheel.next_wakeup().value_or(kNever);
    if (next == kNever) return kNever;
    return next <= now + lead_ ? now : next - lead_;
  }

  // Small chunks, because a block stands for sixteen connections: the wheel has a sixteenth as many
  // entries as there are connections.
  HierarchicalWheel<BinaryDigits<8>, 16> wheel;
  BlockList with_room;  // blocks of this class with connections and a free index

 private:
  Tick longest_ = 0;
  Tick lead_ = 0;
};

}  // namespace carillon::detail
