// The delay before the next attempt: it doubles with each failure, up to a limit, and is shortened
// by a random part.
//
//   constexpr Backoff kBackoff{.first = 100ms, .most = 5s};
//   wait(kBackoff.delay(3, 0));                     // 800 ms
#pragma once

#include <algorithm>
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

inline std::chrono::milliseconds Backoff::delay(std::uint64_t failures, double random) const {
  std::chrono::milliseconds delay = std::min(first, most);
  for (; failures > 0 && delay.count() > 0 && delay < most; --failures) {
    delay = delay > most / 2 ? most : delay * 2;
  }
  const auto off = static_cast<double>(delay.count()) / 4 * random;
  return delay - std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(off));
}

}  // namespace carillon::cli
