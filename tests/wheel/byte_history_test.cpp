// The histories of the fuzzer (fuzz/wheel_fuzzer.cpp) from random streams, on every model and on
// pools.
#include "wheel/byte_history.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "wheel/any_set.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

std::vector<std::uint8_t> random_stream(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> stream(random() % 200);
  for (std::uint8_t& byte : stream) byte = static_cast<std::uint8_t>(random());
  return stream;
}

TEST(ByteHistory, EveryRandomStreamKeepsTheContracts) {
  for (const AnySetMaker& maker : all_sets()) {
    for (const std::uint64_t seed : seeds(100)) {
      try {
        play(random_stream(seed), maker);
      } catch (const std::exception& error) {
        FAIL() << maker.name << ": " << error.what() << "\n" << replay_with(seed);
      }
    }
  }
}

}  // namespace
}  // namespace carillon::testing
