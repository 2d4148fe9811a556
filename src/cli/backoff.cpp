// Computes the delay before the next attempt.

#include "cli/backoff.h"

#include <algorithm>

namespace carillon::cli {

std::chrono::milliseconds Backoff::delay(std::uint64_t failures, double random) const {
  std::chrono::milliseconds delay = std::min(first, most);
  for (; failures > 0 && delay.count() > 0 && delay < most; --failures) {
    delay = delay > most / 2 ? most : delay * 2;
  }
  const auto off = static_cast<double>(delay.count()) / 4 * random;
  return delay - std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(off));
}

}  // namespace carillon::cli
