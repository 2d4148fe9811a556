// IdleTracker: time-outs of each connection, ids, limits, wake-ups, the ends of time, overload.
#include "carillon/idle/idle_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "idle/tracker_access.h"

namespace carillon::testing {
namespace {

template <class Tracker>
std::vector<int> found_at(Tracker& tracker, Tick tick, std::size_t limit = kNoLimit) {
  std::vector<int> found;
  tracker.advance(
      tick, [&](IdleId, int key) { found.push_back(key); }, limit);
  tracker.check_invariants();
  std::sort(found.begin(), found.end());
  return found;
}

const std::vector<int> kNone;

TEST(IdleTracker, EachConnectionHasItsOwnTimeOut) {
  IdleTracker<int> tracker(Ticks{30}, 100);
  tracker.add(1, Ticks{5});
  tracker.add(2);
  tracker.add(3, Ticks{100'000});
  EXPECT_EQ(found_at(tracker, 105), kNone);
  EXPECT_EQ(found_at(tracker, 106), std::vector{1});
  EXPECT_EQ(found_at(tracker, 130), kNone);
  EXPECT_EQ(found_at(tracker, 131), std::vector{2});
  EXPECT_EQ(found_at(tracker, 100'100), kNone);
  EXPECT_EQ(found_at(tracker, 100'101), std::vector{3});
}

TEST(IdleTracker, APacketAtAnExactTickIsFoundExactlyATimeOutLater) {
  IdleTracker<int> tracker(Ticks{30});
  const IdleId id = tracker.add(1, Ticks{30}, 0);
  found_at(tracker, 10);
  tracker.touch(id, 7);
  EXPECT_EQ(tracker.last_packet(id), 7U);
  EXPECT_EQ(found_at(tracker, 36), kNone);
  EXPECT_EQ(found_at(tracker, 37), std::vector{1});
}

TEST(IdleTracker, APacketEarlierThanTheLastIsIgnored) {
  IdleTracker<int> tracker(Ticks{30});
  const IdleId id = tracker.add(1);
  found_at(tracker, 20);
  tracker.touch(id);
  tracker.touch(id, 5);
  EXPECT_EQ(tracker.last_packet(id), 21U);
}

TEST(IdleTracker, AChangedTimeOutCountsFromTheLastPacket) {
  IdleTracker<int> tracker(Ticks{30});
  const IdleId shorter = tracker.add(1), longer = tracker.add(2), passed = tracker.add(3);
  found_at(tracker, 20);
  EXPECT_TRUE(tracker.set_timeout(shorter, Ticks{25}));
  EXPECT_TRUE(tracker.set_timeout(longer, Ticks{5000}));
  EXPECT_TRUE(tracker.set_timeout(passed, Ticks{10}));
  EXPECT_EQ(tracker.timeout(longer), Ticks{5000});
  EXPECT_EQ(found_at(tracker, 20), std::vector{3}) << "the new time-out has passed already";
  EXPECT_EQ(found_at(tracker, 25), kNone);
  EXPECT_EQ(found_at(tracker, 26), std::vector{1});
  EXPECT_EQ(found_at(tracker, 5000), kNone);
  EXPECT_EQ(found_at(tracker, 5001), std::vector{2});
  EXPECT_FALSE(tracker.set_timeout(longer, Ticks{30})) << "the connection is gone";
}

TEST(IdleTracker, OnIdleGetsTheIdAndTheKey) {
  IdleTracker<std::unique_ptr<std::string>> tracker(Ticks{1});
  const IdleId id = tracker.add(std::make_unique<std::string>("ada"));
  ASSERT_NE(tracker.key(id), nullptr);
  EXPECT_EQ(**tracker.key(id), "ada");
  std::unique_ptr<std::string> got;
  tracker.advance(2, [&](IdleId which, std::unique_ptr<std::string>&& key) {
    EXPECT_EQ(which, id);
    EXPECT_FALSE(tracker.contains(which)) << "forgotten before on_idle is called";
    got = std::move(key);
  });
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(*got, "ada");
  EXPECT_EQ(tracker.key(id), nullptr);
}

TEST(IdleTracker, KeysAreDestroyedOnceEach) {
  const auto key = std::make_shared<int>(1);
  {
    IdleTracker<std::shared_ptr<int>> tracker(Ticks{10});
    const IdleId first = tracker.add(key);
    for (int i = 0; i < 99; ++i) tracker.add(key);
    EXPECT_EQ(key.use_count(), 101);
    tracker.remove(first);
    EXPECT_EQ(key.use_count(), 100);
    tracker.advance(
        11, [](IdleId, std::shared_ptr<int>&&) {}, 9);
    EXPECT_EQ(key.use_count(), 91);
  }
  EXPECT_EQ(key.use_count(), 1);
}

// --- ids

TEST(IdleTrackerIds, AnOldIdTouchesNoOtherConnection) {
  IdleTracker<int> tracker(Ticks{30});
  const IdleId old = tracker.add(1);
  EXPECT_TRUE(tracker.remove(old));
  const IdleId stranger = tracker.add(2);
  ASSERT_EQ(stranger.index, old.index) << "the index is used again";
  found_at(tracker, 20);
  tracker.touch(old);
  tracker.touch(old, 25);
  EXPECT_EQ(tracker.last_packet(stranger), 1U);
  EXPECT_FALSE(tracker.remove(old));
  EXPECT_FALSE(tracker.contains(old));
  EXPECT_FALSE(tracker.set_timeout(old, Ticks{5}));
  EXPECT_EQ(tracker.last_packet(old), std::nullopt);
  EXPECT_EQ(found_at(tracker, 30), kNone);
  EXPECT_EQ(found_at(tracker, 31), std::vector{2});
}

TEST(IdleTrackerIds, NoConnectionHasTheDefaultId) {
  IdleTracker<int> tracker(Ticks{30});
  tracker.touch(IdleId{});
  EXPECT_FALSE(tracker.remove(IdleId{}));
  const IdleId id = tracker.add(1);
  EXPECT_NE(id, IdleId{});
  found_at(tracker, 5);
  tracker.touch(IdleId{});
  tracker.touch(IdleId{4'000'000'000U, 1});
  EXPECT_FALSE(tracker.contains(IdleId{}));
  EXPECT_FALSE(tracker.contains(IdleId{4'000'000'000U, 1}));
  EXPECT_EQ(tracker.last_packet(id), 1U);
}

TEST(IdleTrackerIds, ATouchOvertakenByItsOwnRemoveMakesNoConnectionIdleEarly) {
  IdleTracker<int> tracker(Ticks{30});
  const IdleId old = tracker.add(1);
  tracker.remove(old);
  const IdleId stranger = tracker.add(2);
  found_at(tracker, 20);
  tracker.touch(stranger);                             // so it must be found at 51
  detail::TrackerAccess::store_late(tracker, old, 3);  // its thread was held up since tick 2
  EXPECT_EQ(found_at(tracker, 50), kNone);
  EXPECT_EQ(found_at(tracker, 51), kNone) << "a new time-out began at 51";
  EXPECT_TRUE(tracker.contains(stranger));
  EXPECT_EQ(found_at(tracker, 51 + 30), std::vector{2}) << "late by at most a time-out";
}

TEST(IdleTrackerIds, ATouchOvertakenByItsOwnRemoveBringsNoConnectionBack) {
  IdleTracker<int> tracker(Ticks{30});
  const IdleId old = tracker.add(1);
  tracker.remove(old);
  detail::TrackerAccess::store_late(tracker, old, 3);
  EXPECT_FALSE(tracker.contains(old));
  EXPECT_EQ(found_at(tracker, 100), kNone);
  const IdleId next = tracker.add(2);
  EXPECT_EQ(tracker.last_packet(next), 101U);
}

TEST(IdleTrackerIds, AnIndexWhoseGenerationsAreUsedUpIsRetired) {
  IdleTracker<int, 5> tracker(Ticks{30});  // three connections per index
  std::vector<IdleId> given;
  for (int connection = 0; connection < 100; ++connection) {
    const IdleId id = tracker.add(connection);
    EXPECT_EQ(std::count(given.begin(), given.end(), id), 0);
    given.push_back(id);
    if (connection % 2 == 0) {
      EXPECT_TRUE(tracker.remove(id));
    } else {
      EXPECT_EQ(found_at(tracker, tracker.now() + 31), std::vector{connection});
    }
    tracker.check_invariants();
  }
  EXPECT_EQ(given[3].index, given[0].index + 1) << "the first index is retired";
  for (const IdleId id : given) EXPECT_FALSE(tracker.contains(id));
}

// --- limits and wake-ups

TEST(IdleTrackerAdvance, ALimitIsExactAndTheRestIsFoundByTheNextCalls) {
  IdleTracker<int> tracker(Ticks{30});
  for (int key = 0; key < 100; ++key) tracker.add(key);
  std::vector<int> all;
  for (int call = 0; call < 9; ++call) {
    const auto found = found_at(tracker, 31, 11);
    EXPECT_EQ(found.size(), 11U);
    EXPECT_EQ(tracker.next_wakeup(), 31U) << "some are left";
    all.insert(all.end(), found.begin(), found.end());
  }
  const auto last = found_at(tracker, 31, 11);
  all.insert(all.end(), last.begin(), last.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 100U);
  for (int key = 0; key < 100; ++key) EXPECT_EQ(all[static_cast<std::size_t>(key)], key);
  EXPECT_EQ(tracker.next_wakeup(), std::nullopt);
}

TEST(IdleTrackerAdvance, AConnectionTouchedOrRemovedBetweenTwoLimitedCallsIsNotFound) {
  IdleTracker<int> tracker(Ticks{30});
  std::vector<IdleId> ids;
  for (int key = 0; key < 10; ++key) ids.push_back(tracker.add(key));
  const auto first = found_at(tracker, 31, 1);
  ASSERT_EQ(first.size(), 1U);
  for (const IdleId id : ids) {
    if (id.index % 2 == 0) tracker.touch(id);
    if (id.index % 3 == 0) tracker.remove(id);
  }
  const IdleId newcomer = tracker.add(77);
  for (const int key : found_at(tracker, 31)) EXPECT_TRUE(key % 2 != 0 && key % 3 != 0) << key;
  EXPECT_TRUE(tracker.contains(newcomer));
  EXPECT_EQ(found_at(tracker, 61), kNone);
  for (const int key : found_at(tracker, 62)) EXPECT_TRUE(key == 77 || key % 2 == 0) << key;
  EXPECT_TRUE(tracker.empty());
}

TEST(IdleTrackerAdvance, AnOwnerThatSleepsUntilTheNextWakeUpIsNeverLate) {
  IdleTracker<int> tracker(Ticks{30'000}, 5);
  const IdleId id = tracker.add(1);
  tracker.add(2, Ticks{777});
  std::vector<Tick> found;
  int wakeups = 0;
  for (; !tracker.empty() && wakeups < 1000; ++wakeups) {
    ASSERT_GT(*tracker.next_wakeup(), tracker.now());
    tracker.advance(*tracker.next_wakeup(), [&](IdleId, int) { found.push_back(tracker.now()); });
    if (tracker.now() < 20'000) tracker.touch(id);
  }
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], 5 + 1 + 777U);
  EXPECT_LE(found[1], 20'000 + 30'001U);
  EXPECT_LE(wakeups, 30) << "a few inspections per time-out";
}

TEST(IdleTrackerAdvance, OnIdleMayChangeTimeOutsScaleThemAndReserve) {
  IdleTracker<int> tracker(Ticks{30});
  const IdleId other = tracker.add(1, Ticks{1000});
  tracker.add(2);
  bool called = false;
  tracker.advance(31, [&](IdleId, int key) {
    EXPECT_EQ(key, 2);
    called = true;
    tracker.set_timeout(other, Ticks{2000});
    tracker.scale_timeouts(0.5);
    tracker.reserve(10'000, {Ticks{7}, Ticks{70}, Ticks{700}});
    EXPECT_THROW(tracker.advance(31, [](IdleId, int) {}), std::logic_error);
    EXPECT_THROW(tracker.advance(40, [](IdleId, int) {}), std::logic_error);
  });
  EXPECT_TRUE(called);
  EXPECT_EQ(found_at(tracker, 1000), kNone);
  EXPECT_EQ(found_at(tracker, 1001), std::vector{1});
}

// --- the ends of time

// In milliseconds, 2^32 ticks are 49.7 days, 2^40 are 34 years.
TEST(IdleTrackerTime, StampsOfFortyBitsDoNotWrap) {
  for (const Tick edge :
       {Tick{1} << 32, Tick{1} << 39, Tick{1} << 40, Tick{3} << 40, Tick{1} << 62}) {
    IdleTracker<int> tracker(Ticks{30}, edge - 100);
    const IdleId id = tracker.add(1);
    tracker.add(2);
    std::vector<Tick> found;
    for (Tick tick = edge - 99; tick <= edge + 100; ++tick) {
      tracker.advance(tick, [&](IdleId, int key) {
        EXPECT_EQ(key, 2);
        found.push_back(tick);
      });
      if (tick % 29 == 0) tracker.touch(id);
    }
    EXPECT_EQ(found, std::vector{edge - 99 + 30});
  }
}

TEST(IdleTrackerTime, TheLongestTimeOutAndAJumpOverYearsFindAll) {
  IdleTracker<int> tracker(Ticks{30});
  tracker.add(1, Ticks{IdleTracker<int>::kLongestTimeout});
  tracker.add(2);
  EXPECT_EQ(found_at(tracker, IdleTracker<int>::kLongestTimeout), std::vector{2});
  EXPECT_EQ(found_at(tracker, IdleTracker<int>::kLongestTimeout + 1), std::vector{1});
  tracker.add(3, Ticks{IdleTracker<int>::kLongestTimeout});
  tracker.add(4);
  EXPECT_EQ(found_at(tracker, Tick{1} << 60), (std::vector{3, 4}));
  tracker.add(5);
  EXPECT_EQ(found_at(tracker, IdleTracker<int>::kLastTick), std::vector{5});
}

TEST(IdleTrackerTime, AnArgumentOutOfRangeIsRefused) {
  IdleTracker<int> tracker(Ticks{30}, 10);
  const IdleId id = tracker.add(1);
  EXPECT_THROW(tracker.add(1, Ticks{0}), std::invalid_argument);
  EXPECT_THROW(tracker.add(1, Ticks{IdleTracker<int>::kLongestTimeout + 1}), std::invalid_argument);
  EXPECT_THROW(tracker.set_timeout(id, Ticks{0}), std::invalid_argument);
  EXPECT_THROW(tracker.advance(9, [](IdleId, int) {}), std::invalid_argument);
  EXPECT_THROW(tracker.advance(Tick{1} << 63, [](IdleId, int) {}), std::invalid_argument);
  EXPECT_THROW(IdleTracker<int>(Ticks{0}), std::invalid_argument);
  EXPECT_THROW(IdleTracker<int>(Ticks{1}, Tick{1} << 63), std::invalid_argument);
  for (const double factor : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(tracker.scale_timeouts(factor), std::invalid_argument);
  try {
    tracker.add(1, Ticks{0});
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "carillon: a time-out of 0 ticks; it must be in 1 .. 274877906943");
  }
  for (const std::size_t too_many :
       {(std::size_t{1} << 31) + 1, std::numeric_limits<std::size_t>::max()}) {
    const std::size_t before = tracker.allocated_bytes();
    EXPECT_THROW(tracker.reserve(too_many), std::length_error);
    EXPECT_EQ(tracker.allocated_bytes(), before);
  }
  EXPECT_EQ(tracker.size(), 1U);
  EXPECT_EQ(found_at(tracker, 41), std::vector{1});
}

// --- overload

TEST(IdleTrackerOverload, AFallFindsConnectionsThatAreIdleForTheScaledTimeOutAtOnce) {
  IdleTracker<int> tracker(Ticks{1000});
  for (int key = 0; key < 10; ++key) {  // last packets count at 1, 101, …, 901
    found_at(tracker, static_cast<Tick>(key) * 100);
    tracker.add(key);
  }
  EXPECT_EQ(found_at(tracker, 1000), kNone);
  tracker.scale_timeouts(0.5);
  EXPECT_EQ(tracker.factor(), 0.5);
  EXPECT_EQ(tracker.next_wakeup(), 1000U);
  EXPECT_EQ(found_at(tracker, 1000), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(found_at(tracker, 1001), std::vector{5});
  EXPECT_EQ(found_at(tracker, 1100), kNone);
  EXPECT_EQ(found_at(tracker, 1101), std::vector{6});
  tracker.scale_timeouts(0.1);
  EXPECT_EQ(found_at(tracker, 1101), (std::vector{7, 8, 9}));
}

// A property test found it. At 0.6 both time-outs are 2 ticks, and the block is inspected at 65, as
// the hand of the longer one stands at 66. At 0.4 they are 1 and 2 ticks: the hand has not moved.
TEST(IdleTrackerOverload, AFallMayFindAConnectionBesideALongerTimeOutOneTickLate) {
  IdleTracker<int> tracker(Ticks{2}, 64);
  tracker.add(1, Ticks{2}, 64);
  tracker.set_timeout(tracker.add(2), Ticks{3});
  tracker.scale_timeouts(0.6);
  EXPECT_EQ(found_at(tracker, 64), kNone);
  EXPECT_EQ(found_at(tracker, 65), kNone);
  tracker.scale_timeouts(0.4);
  EXPECT_EQ(found_at(tracker, 65), kNone);
  EXPECT_EQ(found_at(tracker, 66), std::vector{1});
  EXPECT_EQ(found_at(tracker, 67), std::vector{2});
}

TEST(IdleTrackerOverload, PacketsKeepAConnectionAtAnyFactor) {
  IdleTracker<int> tracker(Ticks{1000});
  const IdleId id = tracker.add(1);
  tracker.add(2);
  tracker.scale_timeouts(0.01);
  for (Tick tick = 1; tick < 3000; ++tick) {
    EXPECT_EQ(found_at(tracker, tick), tick == 11 ? std::vector{2} : kNone);
    if (tick % 10 == 0) tracker.touch(id);
  }
}

TEST(IdleTrackerOverload, AtFactorZeroAConnectionWithoutAPacketInThisTickIsFound) {
  IdleTracker<int> tracker(Ticks{1000});
  const IdleId id = tracker.add(1);
  tracker.add(2);
  found_at(tracker, 10);
  tracker.touch(id);
  tracker.scale_timeouts(0);
  EXPECT_EQ(found_at(tracker, 10), std::vector{2});
  tracker.touch(id);
  EXPECT_EQ(found_at(tracker, 11), std::vector{1});
}

TEST(IdleTrackerOverload, ARiseGivesWaitingConnectionsTheirTimeBack) {
  IdleTracker<int> tracker(Ticks{1000});
  tracker.add(1);
  tracker.scale_timeouts(0.5);
  EXPECT_EQ(found_at(tracker, 400), kNone);
  tracker.scale_timeouts(1);
  EXPECT_EQ(found_at(tracker, 1000), kNone);
  EXPECT_EQ(found_at(tracker, 1001), std::vector{1});
}

TEST(IdleTrackerOverload, EachTimeOutIsScaledByItself) {
  IdleTracker<int> tracker(Ticks{1000});
  tracker.add(1, Ticks{100});
  tracker.add(2, Ticks{1000});
  tracker.add(3, Ticks{100'000});
  tracker.scale_timeouts(0.25);
  EXPECT_EQ(found_at(tracker, 25), kNone);
  EXPECT_EQ(found_at(tracker, 26), std::vector{1});
  EXPECT_EQ(found_at(tracker, 250), kNone);
  EXPECT_EQ(found_at(tracker, 251), std::vector{2});
  EXPECT_EQ(found_at(tracker, 25'000), kNone);
  EXPECT_EQ(found_at(tracker, 25'001), std::vector{3});
}

TEST(IdleTrackerOverload, AScaledTimeOutIsRoundedUp) {
  IdleTracker<int> tracker(Ticks{10});
  tracker.add(1);
  tracker.scale_timeouts(0.34);
  EXPECT_EQ(found_at(tracker, 4), kNone) << "3.4 ticks from the end of tick 0";
  EXPECT_EQ(found_at(tracker, 5), std::vector{1});
}

TEST(IdleTracker, IdsAreKeysOfUnorderedContainers) {
  std::unordered_set<IdleId> ids{{.index = 1, .generation = 3}, {.index = 3, .generation = 1}};
  EXPECT_TRUE(ids.contains({.index = 1, .generation = 3}));
  EXPECT_FALSE(ids.contains({.index = 1, .generation = 1}));
}

}  // namespace
}  // namespace carillon::testing
