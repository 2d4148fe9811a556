// Plan: the numbers of one trial. Figures: the results of one trial.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>

namespace carillon::bench {

enum class Trial {
  kPairs,  // T1: schedule and cancel, while many timers are pending
  kFire,   // T2: very many timers become due at once
  kLate,   // T3: fewer timers become due, over some seconds
  kIdle,   // T4: many timers are pending, and none becomes due
};

inline constexpr std::array<const char*, 4> kTrialNames = {"pairs", "fire", "late", "idle"};

struct Plan {
  Trial trial = Trial::kPairs;
  unsigned producers = 1;
  std::size_t timers = 0;  // pending
  std::size_t pairs = 0;   // T1: schedules with their cancels, of all producers together
  // T2, T3: time from the start of the trial to the first deadline. Scheduling must end before.
  unsigned lead_ms = 0;
  // T2, T3: time from the first deadline to the last. T4: how long the process is measured.
  unsigned span_ms = 0;
};

// T1: the number of timers that each producer has on the way, besides those that stay pending. In
// each step it cancels the oldest of them and schedules another, as a client does whose calls are
// answered soon.
inline constexpr std::size_t kOnTheWay = 1'000;

// Delays in T1 are kFarMs to twice that, in T4 sixty times as long: no timer becomes due.
inline constexpr unsigned kFarMs = 30'000;

// Values by name. Names and units: the columns in results.cpp.
using Figures = std::map<std::string, double>;

}  // namespace carillon::bench
