// What is known of empty places, against the set of all places that are taken.

#include "queue/store/state/tombstone_hints.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

#include "queue/store/state/record_keys.h"
#include "seed.h"

namespace carillon::queue {

namespace {

constexpr std::uint64_t kWorth = TombstoneHints::kWorthKnowing;

IndexKey at(UtcMs due) {
  return due_index_key(1, due, 0);
}

TEST(TombstoneHints, NoJobStandsInWhatAScanLeavesOut) {
  std::mt19937_64 random(seed_or(20261123));
  TombstoneHints places;
  std::set<UtcMs> taken;
  constexpr UtcMs kMost = 100;
  for (int step = 0; step < 100'000; ++step) {
    const UtcMs place = random() % kMost;
    const auto next = [&taken](UtcMs from) {
      const auto found = taken.lower_bound(from);
      return found == taken.end() ? kMost : *found;
    };
    switch (random() % 4) {
      case 0:
        taken.insert(place);
        places.entered(at(place));
        break;
      case 1:
      case 2:
        taken.erase(place);
        break;
      default:
        const IndexKey start = places.start(at(place));
        ASSERT_LE(view(at(place)), view(start));
        ASSERT_LE(view(start), view(at(next(place))));
        places.scanned(at(place), at(next(place)), random() % (2 * kWorth));
    }
  }
}

TEST(TombstoneHints, AScanGoesOnWhereTheOneBeforeHasMetAJob) {
  TombstoneHints places;
  places.scanned(at(10), at(50), kWorth);
  EXPECT_EQ(places.start(at(10)), at(50));
  EXPECT_EQ(places.start(at(49)), at(50));
  EXPECT_EQ(places.start(at(9)), at(9));
  EXPECT_EQ(places.start(at(50)), at(50));
  EXPECT_EQ(places.start(due_index_key(2, 10, 0)), due_index_key(2, 10, 0));
  places.scanned(at(70), at(80), kWorth - 1);
  EXPECT_EQ(places.start(at(10)), at(50)) << "a scan that passed little is not remembered";
  places.scanned(at(5), at(50), kWorth);
  places.scanned(at(50), at(60), kWorth);
  EXPECT_EQ(places.start(at(5)), at(60));
  places.entered(at(55));
  EXPECT_EQ(places.start(at(5)), at(55));
  places.forget(1);
  EXPECT_EQ(places.start(at(5)), at(5));
}

}  // namespace
}  // namespace carillon::queue
