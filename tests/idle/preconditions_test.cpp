// The parts of a tracker end the process when they are used against their contracts, and say how.
#include <gtest/gtest.h>

#include "carillon/idle/detail/block.h"
#include "carillon/idle/detail/connection_blocks.h"
#include "carillon/idle/detail/stamp.h"
#include "carillon/idle/detail/stamp_table.h"
#include "carillon/idle/detail/timeout_class.h"

namespace carillon::testing {
namespace {

using Blocks = detail::ConnectionBlocks<int, detail::Stamp::kGenerationMask>;

TEST(IdlePreconditionsDeathTest, AFactorIsInZeroToOne) {
  EXPECT_DEATH(detail::Factor(1.5),
               "Factor\\(\\) requires: 0 <= factor && factor <= 1; factor = 1.5");
}

TEST(IdlePreconditionsDeathTest, AStampHasAnIndexWithinTheTable) {
  detail::StampTable table(1);
  EXPECT_DEATH(static_cast<void>(table[16'384]),
               "requires: has\\(index\\); index = 16384, limit_ = 16384");
}

TEST(IdlePreconditionsDeathTest, ATableOfStampsGrowsByWholeSteps) {
  detail::StampTable table(1);
  EXPECT_DEATH(table.grow(1), "grow\\(\\) requires: .*; size = 1, size_ = 0, limit_ = 16384");
}

TEST(IdlePreconditionsDeathTest, TheKeyOfALiveConnectionIsNotTaken) {
  Blocks blocks(1'000);
  blocks.reserve(1);
  detail::Block& block = *blocks.empty_block();
  blocks.start_using(block);
  const std::uint32_t index = blocks.acquire(block, 42, 10);
  EXPECT_DEATH(blocks.take_key(index), "take_key\\(\\) requires: .*; index = 0");
  EXPECT_DEATH(blocks.stop_using(block), "stop_using\\(\\) requires: block.live == 0");
}

TEST(IdlePreconditionsDeathTest, RoomIsReservedForAsManyConnectionsAsThereMayBe) {
  Blocks blocks(1'000);
  EXPECT_DEATH(blocks.reserve(1'001),
               "reserve\\(\\) requires: .*; connections = 1001, most_ = 1000, retired_ = 0");
}

TEST(IdlePreconditionsDeathTest, ABlockWithConnectionsToHandOverStaysInTheQueue) {
  detail::FoundBlocks found;
  EXPECT_DEATH(found.pop(), "pop\\(\\) requires: front_ != nullptr");
  detail::Block block;
  found.add(block, 1);
  EXPECT_DEATH(found.pop(), "pop\\(\\) requires: front_ != nullptr");
}

}  // namespace
}  // namespace carillon::testing
