// How long syncs take (src/server/loop_warnings.h).
#include "server/loop_warnings.h"

#include <gtest/gtest.h>

#include <optional>

namespace carillon::server {
namespace {

TEST(SlowSyncs, TimeASyncFromItsRequest) {
  SlowSyncs syncs;
  EXPECT_EQ(syncs.observe(100, 0, 0), std::nullopt);
  EXPECT_EQ(syncs.observe(200, 1, 0), std::nullopt);
  EXPECT_EQ(syncs.observe(250, 1, 0), std::nullopt);
  EXPECT_EQ(syncs.observe(300, 1, 1), 100u);
  EXPECT_EQ(syncs.observe(400, 1, 1), std::nullopt);
}

TEST(SlowSyncs, TheNextOneIsTimedFromTheTurnInWhichTheOneBeforeIsDone) {
  SlowSyncs syncs;
  EXPECT_EQ(syncs.observe(100, 1, 0), std::nullopt);
  EXPECT_EQ(syncs.observe(180, 2, 1), 80u) << "and more is requested in the same turn";
  EXPECT_EQ(syncs.observe(190, 3, 1), std::nullopt);
  EXPECT_EQ(syncs.observe(210, 3, 3), 30u);
}

}  // namespace
}  // namespace carillon::server
