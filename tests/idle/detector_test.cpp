// Tests every design behind IdleDetector: a connection whose packets are less than a time-out apart
// is never found; any other is found in [time-out, time-out + tick].
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "carillon/idle/idle_detector.h"
#include "carillon/idle/idle_ring.h"
#include "carillon/idle/idle_tracker.h"
#include "models/idle_scan.h"
#include "models/timer_per_packet.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

using Detectors =
    ::testing::Types<IdleTracker<int>, IdleRing<int>, IdleScan<int>, TimerPerPacket<int>>;

struct DetectorNames {
  template <class D>
  static std::string GetName(int) {
    if (std::is_same_v<D, IdleTracker<int>>) return "IdleTracker";
    if (std::is_same_v<D, IdleRing<int>>) return "IdleRing";
    if (std::is_same_v<D, IdleScan<int>>) return "IdleScan";
    if (std::is_same_v<D, TimerPerPacket<int>>) return "TimerPerPacket";
    return "unnamed";
  }
};

template <class D>
std::vector<int> found_at(D& detector, Tick tick) {
  std::vector<int> found;
  const std::size_t count =
      detector.advance(tick, [&](const typename D::Id&, int key) { found.push_back(key); });
  EXPECT_EQ(count, found.size());
  EXPECT_EQ(detector.now(), tick);
  return found;
}

template <class D>
class Detector : public ::testing::Test {};
TYPED_TEST_SUITE(Detector, Detectors, DetectorNames);

TYPED_TEST(Detector, ATimeOutAndAMomentCannotBeSwapped) {
  static_assert(std::is_constructible_v<TypeParam, Ticks, Tick>);
  static_assert(!std::is_constructible_v<TypeParam, Tick, Ticks>);
  static_assert(!std::is_constructible_v<TypeParam, Tick, Tick>);
  static_assert(!std::is_constructible_v<TypeParam, Ticks, Ticks>);
  static_assert(!std::is_constructible_v<TypeParam, Tick>);
}

TYPED_TEST(Detector, AConnectionWithoutPacketsIsFoundATimeOutAfterTheEndOfItsLogInTick) {
  TypeParam detector(Ticks{30}, 1000);
  detector.add(7);
  for (Tick tick = 1001; tick <= 1030; ++tick)
    ASSERT_EQ(found_at(detector, tick), std::vector<int>{}) << tick;
  EXPECT_EQ(found_at(detector, 1031), std::vector{7});
  EXPECT_EQ(detector.size(), 0U);
}

TYPED_TEST(Detector, AConnectionThatSendsAPacketEachTimeOutIsNeverFound) {
  TypeParam detector(Ticks{30}, 1000);
  const auto id = detector.add(7);
  for (Tick tick = 1001; tick <= 2000; ++tick) {
    ASSERT_EQ(found_at(detector, tick), std::vector<int>{}) << tick;
    if (tick % 30 == 0) detector.touch(id);
  }
  EXPECT_EQ(detector.size(), 1U);
}

TYPED_TEST(Detector, APacketInTheLastTickKeepsTheConnection) {
  TypeParam detector(Ticks{30});
  const auto id = detector.add(7);
  found_at(detector, 30);
  detector.touch(id);
  EXPECT_EQ(found_at(detector, 60), std::vector<int>{});
  EXPECT_EQ(found_at(detector, 61), std::vector{7});
}

TYPED_TEST(Detector, OnlySilentConnectionsAreFound) {
  TypeParam detector(Ticks{30});
  std::map<int, typename TypeParam::Id> ids;
  for (int key = 0; key < 100; ++key) ids.emplace(key, detector.add(key));
  std::set<int> found;
  for (Tick tick = 1; tick <= 100; ++tick) {
    for (const int key : found_at(detector, tick))
      EXPECT_TRUE(found.insert(key).second) << key << " was found twice";
    for (int key = 0; key < 100; key += 3) detector.touch(ids.at(key));
  }
  EXPECT_EQ(found.size(), 66U);
  for (const int key : found) EXPECT_NE(key % 3, 0);
  EXPECT_EQ(detector.size(), 34U);
}

TYPED_TEST(Detector, ARemovedConnectionIsNotFoundAndATouchOfItDoesNothing) {
  TypeParam detector(Ticks{30});
  const auto id = detector.add(7);
  EXPECT_TRUE(detector.remove(id));
  EXPECT_FALSE(detector.remove(id));
  detector.touch(id);
  EXPECT_EQ(detector.size(), 0U);
  EXPECT_EQ(found_at(detector, 1000), std::vector<int>{});
}

TYPED_TEST(Detector, ATimeOutMayBeOneTick) {
  TypeParam detector(Ticks{1});
  const auto id = detector.add(7);
  for (Tick tick = 1; tick <= 10; ++tick) {
    ASSERT_EQ(found_at(detector, tick), std::vector<int>{});
    detector.touch(id);
  }
  EXPECT_EQ(found_at(detector, 11), std::vector<int>{});
  EXPECT_EQ(found_at(detector, 12), std::vector{7});
}

TYPED_TEST(Detector, AnAdvanceThatComesLateFindsAllIdleConnections) {
  TypeParam detector(Ticks{30});
  detector.add(1);
  found_at(detector, 20);
  detector.add(2);
  std::vector<int> found = found_at(detector, 1'000'000);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector{1, 2}));
}

TYPED_TEST(Detector, OnIdleMayAddTheSameKeyAgainAndTouchAndRemoveOthers) {
  TypeParam detector(Ticks{30});
  const auto first = detector.add(1);
  const auto second = detector.add(2);
  int calls = 0;
  detector.advance(31, [&](const typename TypeParam::Id&, int key) {
    ++calls;
    detector.touch(first);
    detector.touch(second);
    detector.remove(key == 1 ? second : first);
    detector.add(key);
    detector.add(key + 10);
  });
  EXPECT_EQ(calls, 1) << "the other connection was removed before its turn";
  EXPECT_EQ(detector.size(), 2U);
  EXPECT_EQ(found_at(detector, detector.now() + 30), std::vector<int>{});
  EXPECT_EQ(found_at(detector, detector.now() + 1).size(), 2U);
}

TYPED_TEST(Detector, AnExceptionOfOnIdleLeavesAdvanceAndTheRestIsFoundNextTime) {
  TypeParam detector(Ticks{30});
  for (int key = 0; key < 5; ++key) detector.add(key);
  const auto thrower = [](const auto&, int) { throw std::runtime_error("thrown by on_idle"); };
  EXPECT_THROW(detector.advance(31, thrower), std::runtime_error);
  EXPECT_EQ(detector.size(), 4U) << "the connection whose callback threw counts as found";
  EXPECT_EQ(found_at(detector, 31).size() + found_at(detector, 32).size(), 4U);
}

TYPED_TEST(Detector, ANestedAdvanceAndOneThatGoesBackAreErrors) {
  TypeParam detector(Ticks{30});
  detector.add(1);
  bool refused = false;
  detector.advance(100, [&](const auto&, int) {
    EXPECT_THROW(detector.advance(101, [](const auto&, int) {}), std::logic_error);
    refused = true;
  });
  EXPECT_TRUE(refused);
  EXPECT_THROW(detector.advance(99, [](const auto&, int) {}), std::invalid_argument);
  EXPECT_THROW(TypeParam(Ticks{0}, 0), std::invalid_argument);
}

// Packets come between the ticks, at hundredths of a tick; the owner advances at each tick. A
// connection is found in [time-out, time-out + tick] after its last packet, and not otherwise.
TYPED_TEST(Detector, WithPacketsBetweenTicksNoConnectionIsFoundEarlyOrLate) {
  for (const std::uint64_t seed : seeds(40)) {
    SCOPED_TRACE(replay_with(seed));
    std::mt19937_64 random(seed);
    const std::uint64_t timeout = 1 + random() % 40;
    TypeParam detector(Ticks{timeout});
    std::map<int, typename TypeParam::Id> ids;
    std::map<int, std::uint64_t> last_packet;  // hundredths
    int next_key = 0;
    const std::uint64_t mean_gap = 1 + random() % 200;
    for (std::uint64_t time = 0; time < 30'000; ++time) {
      if (time % 100 == 0) {
        detector.advance(time / 100, [&](const auto&, int key) {
          ASSERT_GE(time - last_packet.at(key), timeout * 100) << "early at " << time;
          ASSERT_LE(time - last_packet.at(key), timeout * 100 + 100) << "late at " << time;
          last_packet.erase(key);
        });
        for (const auto& [key, last] : last_packet)
          ASSERT_LT(time - last, timeout * 100 + 100) << "kept at " << time;
        ASSERT_EQ(detector.size(), last_packet.size());
      }
      if (random() % mean_gap != 0) continue;
      if (random() % 4 == 0) {
        ids.emplace(next_key, detector.add(next_key));
        last_packet[next_key++] = time;
      } else if (!last_packet.empty()) {
        auto which = last_packet.begin();
        std::advance(which, random() % last_packet.size());
        if (random() % 20 == 0) {
          EXPECT_TRUE(detector.remove(ids.at(which->first)));
          last_packet.erase(which);
        } else {
          detector.touch(ids.at(which->first));
          which->second = time;
        }
      }
    }
  }
}

// --- M11, the published ring: 30 slots, the hand moves each second, and a packet moves the id to
// the slot just behind the hand. A connection whose packets are less than 30 s apart is never found
// idle; any other is found at the 30th second and not before.

TEST(M11, ARingOf30SlotsFindsASilentConnectionAtThe30thSecondAndNotBefore) {
  auto ring = IdleRing<int>::with_slots(30);
  ASSERT_EQ(ring.slots(), 30U);
  ring.add(1);
  ring.add(2);
  for (Tick second = 1; second <= 300; ++second) {
    EXPECT_EQ(found_at(ring, second), second == 30 ? std::vector{2} : std::vector<int>{}) << second;
    if (second % 29 == 0) ring.touch(1);
  }
  EXPECT_EQ(ring.size(), 1U);
}

TEST(M11, TheTrackerFindsASilentConnectionAtThe30thSecondAndNotBefore) {
  IdleTracker<int> tracker(Ticks{30});
  const IdleId first = tracker.add(1, Ticks{30}, 0);
  tracker.add(2, Ticks{30}, 0);
  for (Tick second = 1; second <= 300; ++second) {
    EXPECT_EQ(found_at(tracker, second), second == 30 ? std::vector{2} : std::vector<int>{})
        << second;
    if (second % 29 == 0) tracker.touch(first, second);
  }
  EXPECT_EQ(tracker.size(), 1U);
}

// This is why IdleRing(Ticks{30}) has 31 slots.
TEST(M11, ARingOf30SlotsIsEarlyAfterAPacketInTheLastFractionOfASecond) {
  auto ring = IdleRing<int>::with_slots(30);
  ring.add(1);  // at second 0.9
  EXPECT_EQ(found_at(ring, 30), std::vector{1}) << "29.1 s later";
  EXPECT_EQ(IdleRing<int>(Ticks{30}).slots(), 31U);
}

TEST(M4, ATimerPerPacketHoldsATimerForEachPacketOfTheLastTimeOut) {
  TimerPerPacket<int> detector(Ticks{30});
  detector.add(1);
  for (int packet = 0; packet < 1000; ++packet) detector.touch(1);
  EXPECT_EQ(detector.timers(), 1001U);
  EXPECT_EQ(found_at(detector, 31), std::vector{1});
  EXPECT_EQ(detector.timers(), 0U);
}

}  // namespace
}  // namespace carillon::testing
