// Lets one log line of a kind through each second, and counts those it kept back, so that a full
// disk does not fill the log too.
#pragma once

#include <cstdint>
#include <optional>

namespace carillon::server {

class LogThrottle {
 public:
  // At `mono_ns` by the monotonic clock: how many lines were kept back since the last one let
  // through, or nothing when this one is to be kept back too. The first is let through.
  std::optional<std::uint64_t> pass(std::uint64_t mono_ns) {
    if (last_ && mono_ns - *last_ < kPeriodNs) {
      ++kept_back_;
      return std::nullopt;
    }
    last_ = mono_ns;
    const std::uint64_t kept_back = kept_back_;
    kept_back_ = 0;
    return kept_back;
  }

 private:
  static constexpr std::uint64_t kPeriodNs = 1'000'000'000;

  std::optional<std::uint64_t> last_;
  std::uint64_t kept_back_ = 0;
};

}  // namespace carillon::server
