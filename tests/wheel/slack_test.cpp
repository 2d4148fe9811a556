// relaxed_expiry: the roundest tick of a range, against a search through the range.
#include "carillon/wheel/slack.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace carillon {
namespace {

constexpr Tick kEndOfTime = std::numeric_limits<Tick>::max();

TEST(Slack, NoSlackChangesNothing) {
  for (const Tick expiry : {Tick{0}, Tick{1}, Tick{1000}, kEndOfTime}) EXPECT_EQ(relaxed_expiry(expiry, 0), expiry);
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

}  // namespace
}  // namespace carillon
