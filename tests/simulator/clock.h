// The time of a simulation: it stands still until somebody lets it pass.
//
//   VirtualTime& time = virtual_time();
//   time.pass(1'000'000);             // both clocks, ns
//   time.step_utc(-20'000'000'000);   // somebody sets the wall clock 20 s back
//
// threads.cpp replaces the functions of the C library that read clocks and that sleep, for the
// threads of the simulation.
#pragma once

#include <cstdint>

namespace carillon::simulator {

struct VirtualTime {
  std::uint64_t utc_ns = 0;
  std::uint64_t mono_ns = 0;

  void pass(std::uint64_t ns) {
    utc_ns += ns;
    mono_ns += ns;
  }
  void step_utc(std::int64_t ns) { utc_ns += static_cast<std::uint64_t>(ns); }
};

inline VirtualTime& virtual_time() {
  static VirtualTime time;
  return time;
}

}  // namespace carillon::simulator
