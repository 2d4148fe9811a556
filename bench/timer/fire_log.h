// FireLog: when each timer should fire, and when it did fire. Its cost is the same for all systems:
// one reading of the clock and one store when a timer is scheduled, and again when it fires.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace carillon::bench {

class FireLog {
 public:
  // `timers`: 0 turns the log off, for trials in which no timer fires.
  explicit FireLog(std::size_t timers) : deadlines_(timers), fired_at_(timers) {}

  bool on() const { return !deadlines_.empty(); }

  // Called right before timer `slot` is scheduled to fire after `delay`, on the thread that
  // schedules it.
  void expect(std::size_t slot, std::chrono::milliseconds delay) {
    if (on()) deadlines_[slot] = now() + std::chrono::nanoseconds(delay).count();
  }

  // Called by the task of timer `slot`.
  void fire(std::size_t slot) {
    if (!on()) return;
    fired_at_[slot] = now();
    fired_.fetch_add(1, std::memory_order_release);
  }

  std::size_t fired() const { return fired_.load(std::memory_order_acquire); }

  // In ns of now(). REQUIRES: all timers have fired.
  const std::vector<std::int64_t>& deadlines() const { return deadlines_; }
  const std::vector<std::int64_t>& fired_at() const { return fired_at_; }

  static std::int64_t now() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  }

 private:
  std::vector<std::int64_t> deadlines_, fired_at_;
  alignas(64) std::atomic<std::size_t> fired_{0};
};

}  // namespace carillon::bench
