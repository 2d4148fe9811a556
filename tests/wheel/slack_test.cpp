// Slack: the roundest tick of a range, compared with a search through the range; the ticks at which
// timers with slack fire; and how many wake-ups they save.
#include "carillon/wheel/slack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "carillon/wheel/hierarchical_wheel.h"
#include "wheel/any_set.h"
#include "wheel/seeds.h"

namespace carillon {
namespace {

constexpr Tick kEndOfTime = std::numeric_limits<Tick>::max();

TEST(Slack, NoSlackChangesNothing) {
  for (const Tick expiry : {Tick{0}, Tick{1}, Tick{1000}, kEndOfTime})
    EXPECT_EQ(relaxed_expiry(expiry, 0), expiry);
}

TEST(Slack, PicksTheTickWithTheMostTrailingZeros) {
  EXPECT_EQ(relaxed_expiry(1000, 50), 1024U);
  EXPECT_EQ(relaxed_expiry(1000, 23), 1008U);
  EXPECT_EQ(relaxed_expiry(5, 2), 6U);
  EXPECT_EQ(relaxed_expiry(0, 99), 0U);
}

TEST(Slack, NeverLeavesTheRangeAndNothingInItIsRounder) {
  for (Tick expiry = 0; expiry < 300; ++expiry) {
    for (Tick slack = 0; slack < 70; ++slack) {
      const Tick chosen = relaxed_expiry(expiry, slack);
      ASSERT_GE(chosen, expiry);
      ASSERT_LE(chosen, expiry + slack);
      for (Tick other = expiry; other <= expiry + slack; ++other) {
        ASSERT_LE(std::countr_zero(other), std::countr_zero(chosen)) << expiry << " + " << slack;
      }
    }
  }
}

TEST(Slack, IsCutOffAtTheEndOfTime) {
  EXPECT_EQ(relaxed_expiry(kEndOfTime - 2, 100), kEndOfTime - 1);
  EXPECT_EQ(relaxed_expiry(kEndOfTime, kEndOfTime), kEndOfTime);
  EXPECT_EQ(relaxed_expiry(1, kEndOfTime), Tick{1} << 63);
}

// One history: timers with slack on any model, from any tick; each fires within its range.
void fires_within_its_slack(const testing::AnySetMaker& maker, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Tick start = random() >> random() % 64;
  const auto set = maker.make(start);
  const Tick range = std::min({set->longest_delay(), kEndOfTime - start, Tick{1} << random() % 40});
  struct Range {
    Tick first, last;
  };
  std::vector<Range> ranges;
  for (int timer = 0; timer < 60; ++timer) {
    const Tick first = start + (range == 0 ? 0 : random() % range);
    const Tick slack = random() >> random() % 64;
    ranges.push_back({first, slack > kEndOfTime - first ? kEndOfTime : first + slack});
    set->schedule(timer, first, slack);
  }
  std::size_t fired = 0;
  while (!set->empty()) {
    set->advance(set->next_wakeup().value(), [&](int timer) {
      const Range& allowed = ranges[static_cast<std::size_t>(timer)];
      ++fired;
      EXPECT_GE(set->now(), allowed.first) << maker.name << ", timer " << timer;
      EXPECT_LE(set->now(), allowed.last) << maker.name << ", timer " << timer;
    });
  }
  EXPECT_EQ(fired, ranges.size()) << maker.name;
}

TEST(Slack, NoTimerOfAnyModelFiresOutsideItsSlack) {
  for (const std::uint64_t seed : testing::seeds(40)) {
    SCOPED_TRACE(testing::replay_with(seed));
    for (const testing::AnySetMaker& maker : testing::all_sets())
      fires_within_its_slack(maker, seed);
  }
}

// How often an owner that sleeps until next_wakeup() wakes up, for 10 000 timers of up to 10
// minutes in ticks of a millisecond.
struct WakeUps {
  std::size_t all = 0;
  std::size_t that_fired = 0;
};

WakeUps wake_ups(Tick slack_percent) {
  HierarchicalWheel<> wheel;
  std::vector<TimerNode> timers(10'000);
  std::mt19937_64 random(7);
  for (TimerNode& timer : timers) {
    const Tick delay = 1000 + random() % 599'000;
    wheel.schedule(timer, Moment{delay}, delay * slack_percent / 100);
  }
  WakeUps count;
  while (!wheel.empty()) {
    ++count.all;
    if (wheel.advance(*wheel.next_wakeup(), [](TimerNode&) {}) > 0) ++count.that_fired;
  }
  return count;
}

TEST(Slack, TenPercentOfSlackLeavesOneWakeUpOfFifty) {
  const WakeUps exact = wake_ups(0);
  const WakeUps relaxed = wake_ups(10);
  EXPECT_GE(exact.that_fired, 9500U)
      << "10 000 timers over 599 000 ticks: hardly any two at one tick";
  EXPECT_LE(relaxed.that_fired, exact.that_fired / 50);
  EXPECT_LE(relaxed.all, exact.all / 50)
      << "93 instead of 12 167, with the slots of the default wheel";
}

}  // namespace
}  // namespace carillon
