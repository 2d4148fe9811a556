// trials: how many trials a racing test makes. The environment variable CARILLON_TRIALS multiplies
// the default.
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
