// The seeds of the random tests: the same in each run, or the one in CARILLON_SEED, to replay a
// failure or to try another history.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace carillon::testing {

// Returns the seeds from 1 to `count`, or the one in CARILLON_SEED alone. A test that fails prints
// its seed.
inline std::vector<std::uint64_t> seeds(std::size_t count) {
  if (const char* replay = std::getenv("CARILLON_SEED")) return {std::stoull(replay)};
  std::vector<std::uint64_t> result(count);
  std::iota(result.begin(), result.end(), std::uint64_t{1});
  return result;
}

inline std::string replay_with(std::uint64_t seed) {
  return "replay with CARILLON_SEED=" + std::to_string(seed);
}

}  // namespace carillon::testing
