// Lets one log line of a kind through each second, or another period, and counts those that it
// holds back, so that a full disk does not fill the log too. Used wherever a client or a disk could
// cause many lines.
#pragma once

#include <cstdint>
#include <optional>

namespace carillon::base {

class LogThrottle {
 public:
  explicit LogThrottle(std::uint64_t period_ns = 1'000'000'000) : period_ns_(period_ns) {}

  // Asks whether a line may be written at `mono_ns` (ns of the monotonic clock). If so, returns how
  // many lines were held back since the last one that was let through; if not, returns nothing. The
  // first line is let through.
  std::optional<std::uint64_t> pass(std::uint64_t mono_ns) {
    if (last_ && mono_ns - *last_ < period_ns_) {
      ++held_back_;
      return std::nullopt;
    }
    last_ = mono_ns;
    const std::uint64_t held_back = held_back_;
    held_back_ = 0;
    return held_back;
  }

 private:
  std::uint64_t period_ns_;
  std::optional<std::uint64_t> last_;
  std::uint64_t held_back_ = 0;
};

}  // namespace carillon::base
