// Replaces the functions of the C library that read clocks (clock.h).
#include "simulator/clock.h"

#include <sys/time.h>
#include <time.h>

#include "simulator/next_function.h"
#include "simulator/threads.h"

using carillon::simulator::in_simulation;
using carillon::simulator::kNsPerS;
using carillon::simulator::next;
using carillon::simulator::virtual_time;

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const bool utc = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  const bool mono = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
                    clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
  if (!in_simulation() || (!utc && !mono)) {
    return next<"clock_gettime">(::clock_gettime)(clock, time);
  }
  const std::uint64_t ns = utc ? virtual_time().utc_ns : virtual_time().mono_ns;
  time->tv_sec = static_cast<time_t>(ns / kNsPerS);
  time->tv_nsec = static_cast<long>(ns % kNsPerS);
  return 0;
}

int gettimeofday(timeval* time, void* zone) noexcept {
  if (!in_simulation()) {
    return next<"gettimeofday">(::gettimeofday)(time, zone);
  }
  time->tv_sec = static_cast<time_t>(virtual_time().utc_ns / kNsPerS);
  time->tv_usec = static_cast<suseconds_t>(virtual_time().utc_ns % kNsPerS / 1'000);
  return 0;
}

time_t time(time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}
}
