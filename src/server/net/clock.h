// Reads the machine's clocks: for the engine, which has no clock of its own, and for the server's
// time-outs. The monotonic clock is CLOCK_BOOTTIME: it goes on while the machine sleeps.
#pragma once

#include <time.h>

#include <cstdint>

#include "carillon/queue/now.h"

namespace carillon::server {

inline std::uint64_t read_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Returns the monotonic clock, in ns.
inline std::uint64_t read_mono() {
  return read_ns(CLOCK_BOOTTIME);
}

// Reads both clocks at almost the same moment (queue::Now). If the thread was held up between the
// two readings, reads again. Returns the closest two of a few.
inline queue::Now read_clocks() {
  constexpr std::uint64_t kClose = 20'000;  // ns
  constexpr int kAttempts = 8;
  queue::Now closest;
  std::uint64_t between = UINT64_MAX;
  for (int n = 0; n < kAttempts && between > kClose; ++n) {
    const std::uint64_t before = read_mono();
    const std::uint64_t utc_ns = read_ns(CLOCK_REALTIME);
    const std::uint64_t after = read_mono();
    if (after - before >= between) continue;
    between = after - before;
    closest = {.utc_ns = utc_ns, .mono_ns = after};
  }
  return closest;
}

// Says when the time of a loop of short steps is over. A reading of the clock costs as much as a
// part of a step, so the clock is read once in kSteps: the loop may run up to kSteps steps longer.
class StepClock {
 public:
  static constexpr unsigned kSteps = 8;

  // Call it before each step, or after it.
  bool is_before(std::uint64_t until_ns) {
    return ++steps_ % kSteps != 0 || read_mono() < until_ns;
  }

 private:
  unsigned steps_ = 0;
};

}  // namespace carillon::server
