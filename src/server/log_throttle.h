// Lets one log line of a kind through each second and counts those that it holds back, so that a
// full disk does not fill the log too. Used wherever a client or a disk could cause many lines.
#pragma once

#include <cstdint>
#include <optional>

namespace carillon::server {

class LogThrottle {
 public:
  // Asks whether a line may be written at `mono_ns` (ns of the monotonic clock). If so, returns how
  // many lines were held back since the last one that was let through; if not, returns nothing. The
  // first line is let through.
  std::optional<std::uint64_t> pass(std::uint64_t mono_ns) {
    if (last_ && mono_ns - *last_ < kPeriodNs) {
      ++held_back_;
      return std::nullopt;
    }
    last_ = mono_ns;
    const std::uint64_t held_back = held_back_;
    held_back_ = 0;
    return held_back;
  }

 private:
  static constexpr std::uint64_t kPeriodNs = 1'000'000'000;

  std::optional<std::uint64_t> last_;
  std::uint64_t held_back_ = 0;
};

}  // namespace carillon::server
