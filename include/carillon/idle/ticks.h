// Ticks: a distance in time, as a type of its own. MostConnections: a number of connections.
//
// A moment is a Tick. Both are numbers, and a compiler that takes one for the other finds no
// mistake in IdleTracker(now, timeout). So a distance must be named:
//
//   carillon::IdleTracker<int> tracker(carillon::Ticks{30}, now_s());
//   carillon::IdleTracker<int> tracker(now_s(), carillon::Ticks{30});     // does not compile
//   carillon::IdleTracker<int> tracker(carillon::Ticks{30}, 0, carillon::MostConnections{5000});
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>

#include "carillon/wheel/timer_node.h"

namespace carillon {

// How many ticks something lasts, from any integer that is not negative.
struct Ticks {
  template <std::integral Integer>
  explicit constexpr Ticks(Integer ticks) noexcept : count(static_cast<Tick>(ticks)) {}
  Tick count;

  friend constexpr auto operator<=>(const Ticks&, const Ticks&) = default;
};

// How many connections a tracker holds at most.
struct MostConnections {
  template <std::integral Integer>
  explicit constexpr MostConnections(Integer connections) noexcept
      : count(static_cast<std::size_t>(connections)) {}
  std::size_t count;
};

}  // namespace carillon
