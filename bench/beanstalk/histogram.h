// Percentiles of any number of times in constant memory, to within 2 % (for a time of more than
// 50 us): a logarithmic histogram with 32 buckets for each doubling.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace carillon::bench {

class Histogram {
 public:
  // Negative times count as 0.
  void add(double us) {
    const double bucket = std::log2(std::max(us, 0.0) + 1) * kPerDoubling;
    ++counts_[std::min(static_cast<std::size_t>(bucket), counts_.size() - 1)];
    ++total_;
  }

  // Returns the middle of the bucket with the time that a `share` (0 to 1) of all times does not
  // exceed, in microseconds; 0 if there are no times.
  double percentile(double share) const {
    const double wanted = share * static_cast<double>(total_);
    std::uint64_t passed = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      passed += counts_[i];
      if (passed > 0 && static_cast<double>(passed) >= wanted)
        return std::exp2((static_cast<double>(i) + 0.5) / kPerDoubling) - 1;
    }
    return 0;
  }

  void clear() { *this = Histogram(); }

 private:
  static constexpr std::size_t kPerDoubling = 32;
  std::array<std::uint64_t, 40 * kPerDoubling> counts_{};  // up to 2^40 us, 13 days
  std::uint64_t total_ = 0;
};

}  // namespace carillon::bench
