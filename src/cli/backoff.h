// The delay before the next attempt: it doubles with each failure, up to a limit, and is shortened
// by a random part.
#pragma once

#include <chrono>
#include <cstdint>

namespace carillon::cli {

struct Backoff {
  std::chrono::milliseconds first{1'000};
  std::chrono::milliseconds most{3'600'000};

  // Returns the delay after `failures` earlier failures: min(first * 2^failures, most), shortened
  // by up to a quarter: by `random` / 4 of it, with `random` in [0, 1). The random part spreads the
  // retries of jobs that failed together, for example because a service was down. Never overflows.
  std::chrono::milliseconds delay(std::uint64_t failures, double random) const;
};

}  // namespace carillon::cli
