// How long to wait before the next attempt: twice as long each time, up to a limit, and a little at
// random.
#pragma once

#include <chrono>
#include <cstdint>

namespace carillon::cli {

struct Backoff {
  std::chrono::milliseconds first{1'000};
  std::chrono::milliseconds most{3'600'000};

  /// The delay after `failures` earlier ones: first * 2^failures, but not more than `most`, and
  /// less up to a quarter of it by `random` in [0, 1). So what failed together (a service was down)
  /// does not come back together. Never overflows.
  std::chrono::milliseconds delay(std::uint64_t failures, double random) const;
};

}  // namespace carillon::cli
