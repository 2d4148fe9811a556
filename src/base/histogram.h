// How often something took how long.
//
//   Histogram commits;
//   commits.observe(0.0031);                       // seconds
//   commits.count_of(2);                           // those above kBounds[1], up to kBounds[2]
//
// The bounds are the same for all, so that they can be added and compared.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace carillon::base {

class Histogram {
 public:
  // Each bucket's upper bound, in seconds; one more bucket has what is above the last.
  static constexpr std::array kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                         0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                         1.0,    2.5,     5.0,    10.0,  60.0};

  // O(log buckets).
  void observe(double seconds) {
    const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
    ++counts_[static_cast<std::size_t>(bucket)];
    ++count_;
    sum_ += seconds;
  }

  std::uint64_t count_of(std::size_t bucket) const { return counts_[bucket]; }
  std::uint64_t count() const { return count_; }
  // The sum of all observed values, in seconds.
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace carillon::base
