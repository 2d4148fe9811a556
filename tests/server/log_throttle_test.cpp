// LogThrottle lets one line a second through and counts the lines it holds back.

#include "base/log_throttle.h"

#include <gtest/gtest.h>

namespace carillon::server {
namespace {

TEST(LogThrottle, LetsOneLineThroughEachSecondAndCountsTheOthers) {
  base::LogThrottle throttle;
  EXPECT_EQ(throttle.pass(7), 0u);
  EXPECT_EQ(throttle.pass(8), std::nullopt);
  EXPECT_EQ(throttle.pass(1'000'000'006), std::nullopt);
  EXPECT_EQ(throttle.pass(1'000'000'007), 2u);
  EXPECT_EQ(throttle.pass(9'000'000'000), 0u);
}

TEST(LogThrottle, HasAnyPeriod) {
  base::LogThrottle throttle(10);
  EXPECT_EQ(throttle.pass(7), 0u);
  EXPECT_EQ(throttle.pass(16), std::nullopt);
  EXPECT_EQ(throttle.pass(17), 1u);
}

}  // namespace
}  // namespace carillon::server
