// The models under test: every typed test of this folder runs over all of them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "carillon/wheel/hierarchical_wheel.h"

namespace carillon::testing {

// Geometries that make small tests meet what the default meets only at scale: digits that 64 is no multiple of, more slots than one
// word sums up, slots of many chunks (two entries each), sweeps after a handful of cancels, and cascades that stop in the middle.
using SixBitWheel = HierarchicalWheel<BinaryDigits<6>>;
using TenBitWheel = HierarchicalWheel<BinaryDigits<10>>;
using TinyWheel = HierarchicalWheel<BinaryDigits<3>, 4>;
using HaltingWheel = HierarchicalWheel<BinaryDigits<4>, 4, 3>;

using Models = ::testing::Types<HierarchicalWheel<>, SixBitWheel, TenBitWheel, TinyWheel, HaltingWheel>;

// Whether an advance with a limit may return before it has fired `limit` timers although more are due.
template <class Model>
inline constexpr bool kMayStopShort = std::is_same_v<Model, HaltingWheel>;

struct ModelNames {
  template <class Model>
  static std::string GetName(int) {
    if (std::is_same_v<Model, HierarchicalWheel<>>) return "HierarchicalWheel";
    if (std::is_same_v<Model, SixBitWheel>) return "SixBitWheel";
    if (std::is_same_v<Model, TenBitWheel>) return "TenBitWheel";
    if (std::is_same_v<Model, TinyWheel>) return "TinyWheel";
    if (std::is_same_v<Model, HaltingWheel>) return "HaltingWheel";
    return "unnamed";
  }
};

}  // namespace carillon::testing
