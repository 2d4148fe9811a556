// Durations and times of any type as 64-bit nanoseconds: rounded up; a value beyond the range
// becomes the end of the range.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace carillon::detail {

inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

template <class Rep, class Period>
constexpr std::int64_t to_ns(std::chrono::duration<Rep, Period> time) noexcept {
  using Nanoseconds = std::chrono::nanoseconds;
  using InNanoseconds = std::ratio_divide<Period, std::nano>;
  if constexpr (std::is_integral_v<Rep> && InNanoseconds::den == 1) {
    constexpr std::int64_t kMost = kForever / InNanoseconds::num;
    if (std::cmp_greater(time.count(), kMost)) return kForever;
    if (std::cmp_less(time.count(), -kMost)) return -kForever;
    return static_cast<std::int64_t>(time.count()) * InNanoseconds::num;
  } else {
    const std::chrono::duration<long double, std::nano> exact = time;
    if (!(exact.count() < 9.2e18L)) return kForever;  // NaN as well
    if (exact.count() < -9.2e18L) return -kForever;
    return std::chrono::ceil<Nanoseconds>(exact).count();
  }
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
