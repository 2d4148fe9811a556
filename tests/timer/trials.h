// How often a racing test tries its luck: a few thousand times, or CARILLON_TRIALS times as often.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>

namespace carillon::testing {

inline std::size_t trials(std::size_t by_default) {
  const char* factor = std::getenv("CARILLON_TRIALS");
  return factor == nullptr ? by_default : by_default * std::stoul(factor);
}

}  // namespace carillon::testing
