// TimerStats: the counters of a timer service.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace carillon {

// Counts how many values fell into each range (bucket) of nanoseconds. Below 16 ns each value has
// its own bucket; above, each power of two has 8.
class LatenessHistogram {
 public:
  static constexpr std::size_t kBuckets = 16 + 60 * 8;

  // The bucket of a value, and the largest value of a bucket, in ns.
  static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
    if (ns < 16) return static_cast<std::size_t>(ns);
    const auto exponent = static_cast<std::size_t>(std::bit_width(ns)) - 4;  // >= 1
    return 8 + exponent * 8 + static_cast<std::size_t>((ns >> exponent) & 7);
  }
  static constexpr std::uint64_t last_of(std::size_t bucket) noexcept {
    if (bucket < 16) return bucket;
    const std::size_t exponent = bucket / 8 - 1;
    return ((std::uint64_t{8 + bucket % 8} + 1) << exponent) - 1;
  }

  void add(std::size_t bucket, std::uint64_t times) noexcept {
    counts_[bucket] += times;
    total_ += times;
  }

  std::uint64_t count() const noexcept { return total_; }
  std::uint64_t count_in(std::size_t bucket) const noexcept { return counts_[bucket]; }

  // Returns a bound that at least `fraction` (0 to 1) of the values do not exceed. It is at most an
  // eighth above the least such bound. Returns 0 if there are no values.
  std::chrono::nanoseconds percentile(double fraction) const noexcept;

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
};

// While no other thread uses the service, scheduled == pending + fired + cancelled + returned.
// While threads are at work, each number is right by itself, but the sum may be off by the timers
// that are just changing from one state to another.
struct TimerStats {
  // Timers that wait, that are queued for the executor, or (periodic timers) that are running.
  std::uint64_t pending = 0;
  std::uint64_t scheduled = 0;  // accepted
  // One-shot timers that have started to run; periodic timers that stop() found running, or that
  // their calendar has ended.
  std::uint64_t fired = 0;
  // By cancel(), or by an executor that destroyed the task without running it.
  std::uint64_t cancelled = 0;
  std::uint64_t returned = 0;  // by stop() or drain()
  std::uint64_t rejected = 0;  // by TooManyTimers or TimersStopped

  std::uint64_t runs = 0;    // runs of tasks: one per one-shot timer that fired, and one per period
  std::uint64_t failed = 0;  // runs that ended with an exception
  std::uint64_t slow = 0;    // runs that took longer than TimerOptions::slow_task
  std::chrono::nanoseconds longest_run{0};
  std::uint64_t wakeups = 0;  // how often the timer thread woke from its sleep

  LatenessHistogram lateness;  // from the deadline to the start of the run
};

}  // namespace carillon
