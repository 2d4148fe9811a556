// The time of a simulation: it stands still until somebody lets it pass.
//
//   VirtualTime& time = virtual_time();
//   time.pass(1'000'000);             // both clocks, ns
//   time.set_wrong(-20'000'000'000);  // somebody sets the wall clock: it is 20 s behind now
//
// For the threads of the simulation, clock.cpp replaces the functions of the C library that read
// clocks, and threads.cpp those that sleep.
#pragma once

#include <cstdint>

#include "carillon/queue/now.h"

namespace carillon::simulator {

inline constexpr std::uint64_t kNsPerMs = 1'000'000;
inline constexpr std::uint64_t kNsPerS = 1'000'000'000;

struct VirtualTime {
  std::uint64_t utc_ns = 0;
  std::uint64_t mono_ns = 0;
  std::int64_t wrong_ns = 0;  // how far utc_ns is ahead of the right time

  void pass(std::uint64_t ns) {
    utc_ns += ns;
    mono_ns += ns;
  }
  void set_wrong(std::int64_t by_ns) {
    utc_ns += static_cast<std::uint64_t>(by_ns - wrong_ns);
    wrong_ns = by_ns;
  }
};

inline VirtualTime& virtual_time() {
  static VirtualTime time;
  return time;
}

// What both clocks show.
inline queue::Now clocks() {
  return {.utc_ns = virtual_time().utc_ns, .mono_ns = virtual_time().mono_ns};
}

}  // namespace carillon::simulator
