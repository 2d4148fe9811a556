// Stamp against a plain computation of the same, and StampTable.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <thread>

#include "carillon/idle/detail/stamp.h"
#include "carillon/idle/detail/stamp_table.h"
#include "carillon/idle/idle_tracker.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

using detail::Stamp;
using detail::StampTable;

constexpr Tick kTicks = Tick{1} << 40;  // different ticks in a stamp

TEST(IdleStamp, SupersedesOnlyAnEarlierTickOfTheSameGeneration) {
  for (const std::uint64_t seed : seeds(1)) {
    SCOPED_TRACE(replay_with(seed));
    std::mt19937_64 random(seed);
    const auto near_a_power_of_two = [&] { return (Tick{1} << random() % 40) + random() % 3 - 1; };
    for (int trial = 0; trial < 1'000'000; ++trial) {
      const Tick from = random() % 2 == 0 ? random() % kTicks : near_a_power_of_two() % kTicks;
      // Ahead, or behind.
      const Tick ahead = random() % 2 == 0 ? near_a_power_of_two() : kTicks - near_a_power_of_two();
      const std::uint64_t other_generation = random() % (Stamp::kGenerationMask + 1);
      const std::uint64_t generation =
          random() % 2 == 0 ? other_generation
                            : (other_generation ^ (1U << random() % Stamp::kGenerationBits));
      ASSERT_EQ(
          Stamp::supersedes(Stamp::of(from + ahead) | generation,
                            Stamp::of(from) | other_generation),
          generation == other_generation && ahead % kTicks > 0 && ahead % kTicks < Stamp::kReach)
          << from << " + " << ahead << ", " << generation << " and " << other_generation;
    }
  }
}

TEST(IdleStamp, AGenerationIsOddAndHasTwentyFourBits) {
  for (const std::uint32_t odd : {1U, 3U, 0xFFFFFFU}) EXPECT_TRUE(Stamp::is_generation(odd)) << odd;
  for (const std::uint32_t none : {0U, 2U, 0xFFFFFEU, 0x1000001U, 0xFFFFFFFFU})
    EXPECT_FALSE(Stamp::is_generation(none)) << none;
}

TEST(IdleStampTable, GrowsInPlaceWhileOtherThreadsReadIt) {
  constexpr std::size_t kWords = 64 * StampTable::kStep;
  StampTable table(kWords + 1);
  const StampTable::Word* const begin = &table[0];
  std::atomic<std::size_t> reads{0};
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::mt19937 random(1);
    for (; !done.load(); reads.fetch_add(1)) {
      const auto near = static_cast<std::uint32_t>(random() % kWords);
      EXPECT_EQ(table[near].load(std::memory_order_relaxed), 0U) << near;
    }
  });
  for (std::size_t size = StampTable::kStep; size <= kWords; size += StampTable::kStep) {
    const std::size_t before = reads.load();
    table.grow(size);
    EXPECT_EQ(&table[0], begin);
    EXPECT_EQ(table.size(), size);
    while (reads.load() < before + 100) std::this_thread::yield();
  }
  done = true;
  reader.join();
  table[kWords - 1].store(7);
  EXPECT_EQ(table[kWords - 1].load(), 7U);
  EXPECT_EQ(table[kWords].load(), 0U);
  EXPECT_EQ(table.limit(), kWords + StampTable::kStep) << "rounded up";
  EXPECT_TRUE(table.has(kWords + StampTable::kStep - 1));
  EXPECT_FALSE(table.has(kWords + StampTable::kStep));
}

TEST(IdleStampTable, ATouchWithAnyOtherIdChangesNoConnection) {
  std::mt19937_64 random(seeds(1).front());
  IdleTracker<int> tracker(Ticks{1'000});
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

// Sanitizers need more addresses than this limit themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(IdleStampTableDeathTest, TooFewAddressesAreABadAlloc) {
  const auto refused_below = [](rlim_t bytes) {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(3);
    try {
      const IdleTracker<int> tracker(Ticks{30}, 0, MostConnections{std::size_t{1} << 31});
      std::exit(1);
    } catch (const std::bad_alloc& error) {
      std::fputs(error.what(), stderr);
      std::exit(0);
    }
  };
  EXPECT_EXIT(refused_below(rlim_t{8} << 30), ::testing::ExitedWithCode(0),
              "gets no addresses for its MostConnections, 8 bytes each");
}
#endif

}  // namespace
}  // namespace carillon::testing
