// TimeoutClass: the blocks of connections whose time-outs are much alike, on a wheel whose hand
// runs ahead when time-outs are scaled.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>

#include "carillon/idle/detail/connection_blocks.h"
#include "carillon/wheel/geometry.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// A factor 0 .. 1 that time-outs are multiplied by, to 24 binary places. What is scaled is rounded
// up.
class Factor {
 public:
  constexpr Factor() = default;
  explicit constexpr Factor(double factor) noexcept  // REQUIRES: 0 <= factor <= 1
      : parts_(static_cast<std::uint64_t>(factor * kOne * 2 + 1) / 2) {}

  constexpr Tick of(Tick timeout) const noexcept {
    return (timeout * parts_ + (kOne - 1)) / kOne;
  }  // REQUIRES: timeout < 2^39
  friend constexpr auto operator<=>(const Factor&, const Factor&) = default;
  constexpr double value() const noexcept { return static_cast<double>(parts_) / kOne; }

 private:
  static constexpr std::uint64_t kOne = std::uint64_t{1} << 24;
  std::uint64_t parts_ = kOne;
};

// Time-outs that agree in their five highest bits are of one class, as 16 * 2^n to 17 * 2^n - 1
// are; up to 31 each is a class of its own.
constexpr std::uint32_t timeout_class(Tick timeout) noexcept {
  const auto bits = static_cast<unsigned>(std::bit_width(timeout));
  if (bits <= 5) return static_cast<std::uint32_t>(timeout);
  return (bits - 4) * 16 + static_cast<std::uint32_t>(timeout >> (bits - 5)) - 16;
}

// A block is scheduled for the earliest of its connections' deadlines, last packet + time-out, as
// they would be at factor 1. While the factor is 1 the hand of the wheel stands at now. Under
// overload it runs ahead, by the part of the longest time-out that is taken away: lead() = longest
// - factor * longest. Then what is due has come up, for
//
//   last packet + factor * time-out <= now      implies      last packet + time-out <= now + lead().
//
// So a fall of the factor moves one hand per class and touches no connection. Who has come up and
// has time left is scheduled for where the hand will be when, at this factor, the time has passed.
class TimeoutClass {
 public:
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();

  explicit TimeoutClass(Tick now) : wheel(now) {}

  // The class holds a `timeout`, and the factor is `factor`.
  void admit(Tick timeout, Factor factor) noexcept {
    longest_ = std::max(longest_, timeout);
    scale(factor);
  }
  void scale(Factor factor) noexcept { lead_ = longest_ - factor.of(longest_); }

  Tick longest() const noexcept { return longest_; }
  Tick lead() const noexcept { return lead_; }

  // Where the hand has to be at `now`. It never goes back: when the factor rises, it waits.
  Tick target(Tick now) const noexcept { return std::max(now + lead_, wheel.now()); }

  // The tick, not before `now`, at which a block comes up.
  Tick next(Tick now) const noexcept {
    const Tick next = wheel.next_wakeup().value_or(kNever);
    if (next == kNever) return kNever;
    return next <= now + lead_ ? now : next - lead_;
  }

  HierarchicalWheel<BinaryDigits<8>, 16>
      wheel;            // small chunks: a sixteenth of the entries that it is made for
  BlockList with_room;  // blocks of this class with connections and a free place

 private:
  Tick longest_ = 0;
  Tick lead_ = 0;
};

}  // namespace carillon::detail
