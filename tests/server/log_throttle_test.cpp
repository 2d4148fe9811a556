// One log line a second, and the number of those that were kept back.

#include "server/log_throttle.h"

#include <gtest/gtest.h>

namespace carillon::server {
namespace {

TEST(LogThrottle, LetsOneThroughEachSecondAndCountsTheOthers) {
  LogThrottle throttle;
  EXPECT_EQ(throttle.pass(7), 0u);
  EXPECT_EQ(throttle.pass(8), std::nullopt);
  EXPECT_EQ(throttle.pass(1'000'000'006), std::nullopt);
  EXPECT_EQ(throttle.pass(1'000'000'007), 2u);
  EXPECT_EQ(throttle.pass(9'000'000'000), 0u);
}

}  // namespace
}  // namespace carillon::server
