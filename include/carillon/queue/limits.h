// Bounds how many jobs may be reserved at once, and how fast they go out, or come in.
//
//   Limits limits{.max_running = 10, .rate = 100, .period = 60'000, .burst = 5};
//   engine.set_tube(now, "api", {.limits = limits});
//
// A rate is a bucket of tokens: it holds up to `burst`, `rate` of them come in each `period`,
// evenly, and each job that goes out takes one. So in any t ms fewer than burst + rate * (t + 1) /
// period jobs go out. If more than one token comes in a millisecond, the jobs of a millisecond go
// out together.
//
// The same rate bounds how fast clients put jobs (TubeSettings::put_rate). A put without a token is
// refused; the answer says when to try again. That bucket begins full.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "carillon/queue/job.h"

namespace carillon::queue {

// The most that a rate or a burst may be.
inline constexpr std::uint64_t kMostTokens = 1'000'000;
inline constexpr Millis kLongestPeriod = 2'592'000'000;  // 30 days
// The longest TubeSettings::retention.
inline constexpr Millis kLongestRetention = 3'153'600'000'000;  // 36 500 days

struct Limits {
  // How many jobs are reserved at most; 0: no limit. A reservation ends with its engine, but its
  // worker may live on: so after a restart more jobs may run for a time.
  std::uint64_t max_running = 0;
  // 1 to kMostTokens, 1 to kLongestPeriod (ms) and 1 to kMostTokens; or all three are 0: no limit.
  std::uint64_t rate = 0;
  Millis period = 0;
  std::uint64_t burst = 0;

  friend bool operator==(const Limits&, const Limits&) = default;
};

// How fast jobs may be put into a tube now.
struct PutRate {
  Limits limits;
  std::uint64_t tokens = 0;  // how many jobs may be put now
  Millis next = 0;           // in how many ms one more may be put; 0: the bucket is full
};

}  // namespace carillon::queue
