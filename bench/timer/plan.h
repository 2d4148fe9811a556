// Plan: what one trial of one system is to do; and what a trial finds.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>

namespace carillon::bench {

enum class Trial {
  kPairs,  // T1: schedule and cancel, with many pending
  kFire,   // T2: a great many become due at once
  kLate,   // T3: fewer, over some seconds
  kIdle,   // T4: none does
};

inline constexpr std::array<const char*, 4> kTrialNames = {"pairs", "fire", "late", "idle"};

struct Plan {
  Trial trial = Trial::kPairs;
  unsigned producers = 1;
  std::size_t timers = 0;  // pending
  std::size_t pairs = 0;   // T1: of a schedule and a cancel, all producers together
  unsigned lead_ms =
      0;  // T2, T3: from the start of the trial to the first deadline; scheduling must be done by then
  unsigned span_ms = 0;  // T2, T3: from the first deadline to the last. T4: how long is looked at
};

// T1: a producer has so many timers on their way at a time besides those that stay pending: it
// cancels its oldest, and schedules another. Calls of a client that are answered soon.
inline constexpr std::size_t kOnTheWay = 1'000;

// Delays in T1 are so long, and up to twice that; in T4 sixty times: none becomes due.
inline constexpr unsigned kFarMs = 30'000;

// By name: see the columns in results.cpp.
using Figures = std::map<std::string, double>;

}  // namespace carillon::bench
