// The bucket of tokens behind the limits of tubes.

#include "queue/engine/workers/limiter.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "queue/seed.h"

namespace carillon::queue {
namespace {

TEST(Limiter, ABucketBeginsEmptyAndFillsUpToItsBurst) {
  Limiter limiter({.rate = 2, .period = 1'000, .burst = 3}, 0);
  EXPECT_FALSE(limiter.may_start(0, 499));
  EXPECT_EQ(limiter.next_start(0), 500U);
  EXPECT_TRUE(limiter.may_start(0, 500));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(limiter.may_start(0, 1'000'000));
    limiter.start(1'000'000);
  }
  EXPECT_FALSE(limiter.may_start(0, 1'000'000));
  EXPECT_EQ(limiter.next_start(1'000'000), 1'000'500U);
}

TEST(Limiter, NoPartOfATokenIsLost) {
  Limiter limiter({.rate = 3, .period = 1'000, .burst = 1}, 0);
  int started = 0;
  for (std::uint64_t now = 0; now <= 30'000; ++now) {
    if (!limiter.may_start(0, now)) continue;
    limiter.start(now);
    ++started;
  }
  EXPECT_EQ(started, 90);
}

TEST(Limiter, SeveralMayComeInAMillisecond) {
  Limiter limiter({.rate = 5'000, .period = 1'000, .burst = 1}, 0);
  int started = 0;
  for (std::uint64_t now = 0; now < 1'000; ++now) {
    for (; limiter.may_start(0, now); ++started) limiter.start(now);
  }
  EXPECT_EQ(started, 4'995) << "none in the first millisecond";
}

TEST(Limiter, TheLargestNumbersDoNotOverflow) {
  Limiter limiter({.rate = kMostTokens, .period = kLongestPeriod, .burst = kMostTokens}, 0);
  EXPECT_FALSE(limiter.may_start(0, 2'591));
  EXPECT_TRUE(limiter.may_start(0, 2'592));
  for (std::uint64_t i = 0; i < kMostTokens; ++i) {
    ASSERT_TRUE(limiter.may_start(0, UINT64_MAX / 2));
    limiter.start(UINT64_MAX / 2);
  }
  EXPECT_FALSE(limiter.may_start(0, UINT64_MAX / 2));
}

TEST(Limiter, ItMayBeSetAnewAtAnyTime) {
  Limiter limiter({.rate = 10, .period = 1'000, .burst = 10}, 0);
  limiter.set({.rate = 1, .period = 1'000, .burst = 2}, 10'000);
  limiter.start(10'000);
  limiter.start(10'000);
  EXPECT_FALSE(limiter.may_start(0, 10'999)) << "the burst is less now";
  limiter.set({.max_running = 2}, 10'999);
  EXPECT_TRUE(limiter.may_start(1, 10'999));
  EXPECT_FALSE(limiter.may_start(2, 10'999));
  limiter.set({.rate = 1, .period = 1'000, .burst = 5}, 11'000);
  for (int i = 0; i < 5; ++i) limiter.start(11'000);
  EXPECT_FALSE(limiter.may_start(0, 11'000));
}

TEST(Limiter, AStartThatIsUndonePutsItsTokenBack) {
  Limiter limiter({.rate = 1, .period = 1'000, .burst = 2}, 0);
  EXPECT_FALSE(limiter.start(999));
  EXPECT_TRUE(limiter.start(1'000));
  EXPECT_FALSE(limiter.may_start(0, 1'500));
  limiter.undo_start(1'500);
  EXPECT_TRUE(limiter.start(1'500));
  EXPECT_EQ(limiter.next_start(1'500), 2'000U);
  limiter.undo_start(10'000);
  EXPECT_TRUE(limiter.start(10'000));
  EXPECT_TRUE(limiter.start(10'000));
  EXPECT_FALSE(limiter.start(10'000)) << "there is no room for more than the burst";
}

TEST(Limiter, TheRateHoldsInEveryTimeAndNextStartIsTheFirst) {
  const std::uint64_t seed = seed_or(1);
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int history = 0; history < 200; ++history) {
    const Limits limits{
        .rate = 1 + random() % 50, .period = 1 + random() % 200, .burst = 1 + random() % 10};
    std::uint64_t now = random() % 1'000;
    Limiter limiter(limits, now);
    std::vector<std::uint64_t> starts;
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t next = limiter.next_start(now);
      ASSERT_TRUE(limiter.may_start(0, next));
      ASSERT_TRUE(next == now || !limiter.may_start(0, next - 1));
      now = random() % 2 == 0 ? next : now + random() % 30;
      if (limiter.start(now)) starts.push_back(now);
    }
    for (std::size_t first = 0; first < starts.size(); ++first) {
      for (std::size_t last = first; last < starts.size(); ++last) {
        ASSERT_LT((last - first + 1) * limits.period,
                  limits.burst * limits.period + limits.rate * (starts[last] - starts[first] + 1));
      }
    }
  }
}

}  // namespace
}  // namespace carillon::queue
