// The seed of a random test: from the environment, to replay a history; else the test's own.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace carillon::queue {

// Returns the seed, and prints it, so that a failure can be replayed with CARILLON_SEED=n.
inline std::uint64_t seed_or(std::uint64_t otherwise) {
  const char* given = std::getenv("CARILLON_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
  std::printf("CARILLON_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace carillon::queue
