// RunStats: the counters of one thread that runs tasks. Any thread may read them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "carillon/timer/timer_stats.h"

namespace carillon::detail {

using Count = std::atomic<std::uint64_t>;

// For a counter that one thread at a time writes: no read-modify-write is needed. Counting releases
// and reading acquires, so that a thread that sees a timer's end also sees that it was scheduled.
inline void add_one(Count& count) noexcept {
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// Whether one thread at a time writes the counters, or several do.
enum class Writers { kOne, kShared };

class alignas(64) RunStats {
 public:
  explicit RunStats(Writers writers = Writers::kOne) noexcept
      : shared_(writers == Writers::kShared) {}

  void ran(std::int64_t lateness) noexcept {
    add(runs);
    add(lateness_[LatenessHistogram::bucket_of(
        lateness < 0 ? 0 : static_cast<std::uint64_t>(lateness))]);
  }
  void took(std::int64_t ns) noexcept {
    std::int64_t longest = longest_.load(std::memory_order_relaxed);
    while (ns > longest &&
           !longest_.compare_exchange_weak(longest, ns, std::memory_order_relaxed)) {
    }
  }
  void add(Count& count) noexcept {
    if (shared_) {
      count.fetch_add(1, std::memory_order_release);
    } else {
      add_one(count);
    }
  }

  void add_to(TimerStats& sum) const noexcept {
    add_ends_to(sum);
    sum.runs += runs.load(std::memory_order_relaxed);
    sum.failed += failed.load(std::memory_order_relaxed);
    sum.slow += slow.load(std::memory_order_relaxed);
    const std::chrono::nanoseconds longest(longest_.load(std::memory_order_relaxed));
    if (longest > sum.longest_run) sum.longest_run = longest;
    for (std::size_t bucket = 0; bucket < lateness_.size(); ++bucket) {
      const std::uint64_t times = lateness_[bucket].load(std::memory_order_relaxed);
      if (times != 0) sum.lateness.add(bucket, times);
    }
  }

  void add_ends_to(TimerStats& sum) const noexcept {
    sum.fired += fired.load(std::memory_order_acquire);
    sum.cancelled += cancelled.load(std::memory_order_acquire);
  }

  Count fired{0};
  Count cancelled{0};  // timers cancelled while queued, and periodic ones cancelled while running
  Count runs{0};
  Count failed{0};
  Count slow{0};

 private:
  const bool shared_;
  std::atomic<std::int64_t> longest_{0};
  std::array<Count, LatenessHistogram::kBuckets> lateness_{};
};

}  // namespace carillon::detail
