// The models under test. Every MODEL_TEST in this folder runs over each of Models; random histories
// run over MoreGeometries too. Few files include this header, since the models take long to
// compile; the other tests include any_model.h.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>

#include "carillon/wheel/clock_wheel.h"
#include "carillon/wheel/hashed_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/kafka_wheel.h"
#include "carillon/wheel/levels.h"
#include "carillon/wheel/linux_wheel.h"
#include "carillon/wheel/simple_wheel.h"
#include "models/binary_heap.h"
#include "models/scan_list.h"
#include "models/sorted_list.h"

namespace carillon::testing {

using Simple = SimpleWheel<8192>;
using Hashed = HashedWheel<64>;

// With these geometries, small tests meet cases that the default meets only with many timers:
// digits whose size does not divide 64, more slots than one summary word covers (occupancy.h),
// slots of many chunks (two entries each), sweeps after a handful of cancels, and cascades that
// stop in the middle.
using SixBitWheel = HierarchicalWheel<BinaryDigits<6>>;
using TenBitWheel = HierarchicalWheel<BinaryDigits<10>>;
using TinyWheel = HierarchicalWheel<BinaryDigits<3>, 4>;
using HaltingWheel = HierarchicalWheel<BinaryDigits<4>, 4, 3>;

// The same for the other placements (levels.h), over the whole range of ticks.
using HaltingDecimalWheel = HierarchicalWheel<EqualLevels<SlotPlacement::kDigit, 10>, 4, 3>;
using HaltingDistanceWheel = HierarchicalWheel<EqualLevels<SlotPlacement::kDistance, 16>, 4, 3>;
using HaltingKafkaWheel = HierarchicalWheel<EqualLevels<SlotPlacement::kSlotsAhead, 5>, 4, 3>;
using HaltingHashedWheel = HashedWheel<8, 4, 3>;

// Ranges so short that random histories go round them all the time. They are too short for the
// literal tests.
using TwelveSlots = SimpleWheel<12>;
using SmallClock = HierarchicalWheel<WheelLevels<SlotPlacement::kDigit, 3, 5, 2, 4>, 4, 3>;
using SmallLinux = HierarchicalWheel<WheelLevels<SlotPlacement::kDistance, 8, 4, 4>, 4, 3>;
using SmallKafka = HierarchicalWheel<WheelLevels<SlotPlacement::kSlotsAhead, 4, 4, 4>, 4, 3>;

// The default wheel in pages of 2 MiB, for AnySet.
struct HugePageWheel : HierarchicalWheel<> {
  explicit HugePageWheel(Tick start_tick = 0)
      : HierarchicalWheel<>(start_tick, WheelPages::kHuge) {}
};

using Models = ::testing::Types<HierarchicalWheel<>, TinyWheel, HaltingWheel, Simple, Hashed,
                                ClockWheel, LinuxWheel, KafkaWheel, HaltingDistanceWheel, ScanList,
                                SortedList, BinaryHeap>;

using MoreGeometries =
    ::testing::Types<SixBitWheel, TenBitWheel, HaltingDecimalWheel, HaltingKafkaWheel,
                     HaltingHashedWheel, TwelveSlots, SmallClock, SmallLinux, SmallKafka>;

// The bound on the entries that a call with a limit reads: three here, a million in the defaults.
using HaltingModels = ::testing::Types<HaltingWheel, HaltingHashedWheel, HaltingDecimalWheel,
                                       HaltingDistanceWheel, HaltingKafkaWheel>;

// The memory that a model takes, and the number of timers that it is fast enough for. The tests
// expect exactly these.
template <class Model>
struct Traits {
  static constexpr bool kTwoEntriesPerChunk = std::is_same_v<Model, TinyWheel> ||
                                              std::is_same_v<Model, HaltingWheel> ||
                                              std::is_same_v<Model, HaltingDistanceWheel>;

  static constexpr double kBytesPerTimer = kTwoEntriesPerChunk ? 18 : 10;  // beside the node
  static constexpr bool kGivesMemoryBack = true;   // false: keeps it until it is destroyed
  static constexpr std::size_t kMany = 1'000'000;  // timers for a test that needs many
};

template <>
struct Traits<Simple> {
  // Half a chunk for each of its slots.
  static constexpr double kBytesPerTimer = 8 + 256 * 8192 / 1e6 + 0.2;
  static constexpr bool kGivesMemoryBack = true;
  static constexpr std::size_t kMany = 1'000'000;
};

template <>
struct Traits<ScanList> {
  static constexpr double kBytesPerTimer = 16 * 2;
  static constexpr bool kGivesMemoryBack = false;
  static constexpr std::size_t kMany = 2000;
};

template <>
struct Traits<SortedList> {
  static constexpr double kBytesPerTimer = 40 * 2;
  static constexpr bool kGivesMemoryBack = false;
  static constexpr std::size_t kMany = 2000;
};

template <>
struct Traits<BinaryHeap> {
  static constexpr double kBytesPerTimer = 32 * 2;
  static constexpr bool kGivesMemoryBack = false;
  static constexpr std::size_t kMany = 1'000'000;
};

// The longest delay, expiry - now(), that the model takes. A longer one is refused with
// std::out_of_range.
template <class Model>
constexpr Tick longest_delay() {
  if constexpr (requires { Model::kLongestDelay; }) return Model::kLongestDelay;
  return std::numeric_limits<Tick>::max();
}

// True if an advance with a limit may return before it has fired `limit` timers although more are
// due.
template <class Model>
inline constexpr bool kMayStopShort = false;
template <class Geometry, std::size_t kWords>
inline constexpr bool kMayStopShort<HierarchicalWheel<Geometry, kWords, 3>> = true;
template <>
inline constexpr bool kMayStopShort<HaltingHashedWheel> = true;

struct ModelNames {
  template <class Model>
  static std::string GetName(int) {
    if (std::is_same_v<Model, HierarchicalWheel<>>) return "HierarchicalWheel";
    if (std::is_same_v<Model, HugePageWheel>) return "HierarchicalWheel in huge pages";
    if (std::is_same_v<Model, SixBitWheel>) return "SixBitWheel";
    if (std::is_same_v<Model, TenBitWheel>) return "TenBitWheel";
    if (std::is_same_v<Model, TinyWheel>) return "TinyWheel";
    if (std::is_same_v<Model, HaltingWheel>) return "HaltingWheel";
    if (std::is_same_v<Model, Simple>) return "SimpleWheel";
    if (std::is_same_v<Model, Hashed>) return "HashedWheel";
    if (std::is_same_v<Model, HaltingHashedWheel>) return "HaltingHashedWheel";
    if (std::is_same_v<Model, ClockWheel>) return "ClockWheel";
    if (std::is_same_v<Model, HaltingDecimalWheel>) return "HaltingDecimalWheel";
    if (std::is_same_v<Model, LinuxWheel>) return "LinuxWheel";
    if (std::is_same_v<Model, HaltingDistanceWheel>) return "HaltingDistanceWheel";
    if (std::is_same_v<Model, KafkaWheel>) return "KafkaWheel";
    if (std::is_same_v<Model, HaltingKafkaWheel>) return "HaltingKafkaWheel";
    if (std::is_same_v<Model, ScanList>) return "ScanList";
    if (std::is_same_v<Model, SortedList>) return "SortedList";
    if (std::is_same_v<Model, BinaryHeap>) return "BinaryHeap";
    if (std::is_same_v<Model, TwelveSlots>) return "TwelveSlots";
    if (std::is_same_v<Model, SmallClock>) return "SmallClock";
    if (std::is_same_v<Model, SmallLinux>) return "SmallLinux";
    if (std::is_same_v<Model, SmallKafka>) return "SmallKafka";
    return "unnamed";
  }
};

}  // namespace carillon::testing
