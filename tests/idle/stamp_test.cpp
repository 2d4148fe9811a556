// Stamps and the table of them, beside plain words for the same.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <thread>

#include "carillon/idle/idle_tracker.h"
#include "carillon/idle/stamp.h"
#include "carillon/idle/stamp_table.h"

namespace carillon::testing {
namespace {

using detail::Stamp;
using detail::StampTable;

constexpr Tick kTicks = Tick{1} << 40;  // that a stamp tells from each other

TEST(IdleStamp, SupersedesOnlyAnEarlierTickOfItsGeneration) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto near_a_power_of_two = [&] { return (Tick{1} << random() % 40) + random() % 3 - 1; };
  for (int trial = 0; trial < 1'000'000; ++trial) {
    const Tick from = random() % 2 == 0 ? random() % kTicks : near_a_power_of_two() % kTicks;
    const Tick later = trial % 10 == 0 ? 0 : near_a_power_of_two();
    const std::uint64_t other_generation = random() % (Stamp::kGenerationMask + 1);
    const std::uint64_t generation =
        random() % 2 == 0 ? other_generation : (other_generation ^ (1U << random() % Stamp::kGenerationBits));
    EXPECT_EQ(Stamp::supersedes(Stamp::of(from + later) | generation, Stamp::of(from) | other_generation),
              generation == other_generation && later > 0 && later < Stamp::kReach)
        << from << " + " << later << ", " << generation << " and " << other_generation;
  }
}

TEST(IdleStamp, AGenerationIsOddAndOfTwentyFourBits) {
  for (const std::uint32_t odd : {1U, 3U, 0xFFFFFFU}) EXPECT_TRUE(Stamp::is_generation(odd)) << odd;
  for (const std::uint32_t none : {0U, 2U, 0xFFFFFEU, 0x1000001U, 0xFFFFFFFFU})
    EXPECT_FALSE(Stamp::is_generation(none)) << none;
}

TEST(IdleStampTable, GrowsWhereItIsWhileOthersReadAllOfIt) {
  StampTable table;
  const StampTable::Word* const begin = &table[0];
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::mt19937 random(1);
    while (!done.load()) {
      const auto index = static_cast<std::uint32_t>(random());
      EXPECT_EQ(table[index].load(std::memory_order_relaxed), 0U) << index;
    }
  });
  for (std::size_t size = 16'384; size <= 64 * 16'384; size += 16'384) {
    table.grow(size);
    EXPECT_EQ(&table[0], begin);
    EXPECT_EQ(table.size(), size);
  }
  done = true;
  reader.join();
  table[64 * 16'384 - 1].store(7);
  EXPECT_EQ(table[64 * 16'384 - 1].load(), 7U);
  EXPECT_EQ(table[64 * 16'384].load(), 0U);
  EXPECT_EQ(table[0xFFFFFFFF].load(), 0U);
}

TEST(IdleStampTable, ATouchWithAnyIdAtAllChangesNothingButItsOwnConnection) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  IdleTracker<int> tracker(1'000);
  const IdleId id = tracker.add(1);
  tracker.advance(10, [](IdleId, int) {});
  for (int i = 0; i < 100'000; ++i) {
    const IdleId any{static_cast<std::uint32_t>(random() >> random() % 64),
                     static_cast<std::uint32_t>(random() >> random() % 64)};
    if (any != id) tracker.touch(any);
  }
  EXPECT_EQ(tracker.last_packet(id), 1U);
  const IdleId next = tracker.add(2);
  EXPECT_EQ(tracker.last_packet(next), 11U);
  tracker.check_invariants();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need more addresses than that themselves
TEST(IdleStampTableDeathTest, WhereAddressesAreShortThatIsBadAlloc) {
  const auto refused_below = [](rlim_t bytes) {
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
    try {
      const IdleTracker<int> tracker(30);
      std::exit(1);
    } catch (const std::bad_alloc&) {
      std::exit(0);
    }
  };
  EXPECT_EXIT(refused_below(rlim_t{8} << 30), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace carillon::testing
