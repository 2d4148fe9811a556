// Turns a number into one that looks random, always the same one: what an engine draws must depend
// only on its commands.
#pragma once

#include <cstdint>

namespace carillon::queue {

// Spreads the bits of a number over all of them (the finalizer of MurmurHash3).
constexpr std::uint64_t mix(std::uint64_t number) {
  number = (number ^ (number >> 33)) * 0xff51afd7ed558ccd;
  number = (number ^ (number >> 33)) * 0xc4ceb9fe1a85ec53;
  return number ^ (number >> 33);
}

}  // namespace carillon::queue
