// The seeds of the random tests: fresh ones at each run, or the one in CARILLON_SEED to replay a
// failure.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace carillon::testing {

// Returns `count` fresh seeds, or the one in CARILLON_SEED alone. A test that fails prints its
// seed.
inline std::vector<std::uint64_t> seeds(std::size_t count) {
  if (const char* replay = std::getenv("CARILLON_SEED")) return {std::stoull(replay)};
  std::random_device device;
  std::vector<std::uint64_t> result(count);
  for (std::uint64_t& seed : result) seed = device();
  return result;
}

inline std::string replay_with(std::uint64_t seed) {
  return "replay with CARILLON_SEED=" + std::to_string(seed);
}

}  // namespace carillon::testing
