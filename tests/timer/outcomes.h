// Outcomes: counts how often each of many timers fired, was cancelled, was returned by stop() or
// was refused, so that a test can check that it had exactly one outcome.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace carillon::testing {

class Outcomes {
 public:
  explicit Outcomes(std::size_t timers) : counts_(timers) {}

  void fired(std::size_t timer) { add(timer, 1); }
  void cancelled(std::size_t timer) { add(timer, 1 << 8); }
  void returned(std::size_t timer) { add(timer, 1 << 16); }
  void refused(std::size_t timer) { add(timer, 1 << 24); }

  // Fails the test unless every timer had exactly one outcome.
  void expect_one_each() const {
    std::size_t wrong = 0;
    for (std::size_t timer = 0; timer < counts_.size(); ++timer) {
      const std::uint32_t count = counts_[timer].load();
      const bool one = count == 1 || count == 1 << 8 || count == 1 << 16 || count == 1 << 24;
      if (one || ++wrong > 5) continue;
      ADD_FAILURE() << "timer " << timer << ": fired " << (count & 255) << ", cancelled "
                    << (count >> 8 & 255) << ", returned " << (count >> 16 & 255) << ", refused "
                    << (count >> 24) << " times";
    }
    EXPECT_EQ(wrong, 0U) << "of " << counts_.size() << " timers";
  }
  std::size_t fired() const { return number_of(1); }
  std::size_t cancelled() const { return number_of(1 << 8); }
  std::size_t returned() const { return number_of(1 << 16); }
  std::size_t refused() const { return number_of(1 << 24); }

 private:
  void add(std::size_t timer, std::uint32_t what) {
    counts_[timer].fetch_add(what, std::memory_order_relaxed);
  }
  std::size_t number_of(std::uint32_t what) const {
    std::size_t number = 0;
    for (const auto& count : counts_) number += count.load() == what ? 1U : 0U;
    return number;
  }

  std::vector<std::atomic<std::uint32_t>> counts_;
};

}  // namespace carillon::testing
