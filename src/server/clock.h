// Reads the machine's clocks: for the engine, which has no clock of its own, and for the server's
// time-outs.
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

// Reads the wall clock first; queue::Now says why.
inline queue::Now read_clocks() {
  const std::uint64_t utc_ns = read_ns(CLOCK_REALTIME);
  return {.utc_ns = utc_ns, .mono_ns = read_ns(CLOCK_MONOTONIC)};
}

}  // namespace carillon::server
