// Durations and times of any type as 64-bit nanoseconds: rounded up; a value beyond the range
// becomes the end of the range.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "carillon/wheel/saturated.h"

namespace carillon::detail {

inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

template <class Rep, class Period>
constexpr std::int64_t to_ns(std::chrono::duration<Rep, Period> time) noexcept {
  // One more negative number exists; without it, the sign can be changed.
  return std::max(saturated<std::chrono::nanoseconds>(time).count(), -kForever);
}

// a + b and a - b; a value beyond the range becomes the end of the range.
constexpr std::int64_t add_ns(std::int64_t a, std::int64_t b) noexcept {
  if (b > 0 && a > kForever - b) return kForever;
  if (b < 0 && a < -kForever - b) return -kForever;
  return a + b;
}

constexpr std::int64_t sub_ns(std::int64_t a, std::int64_t b) noexcept {
  return add_ns(a, -b);
}

}  // namespace carillon::detail
