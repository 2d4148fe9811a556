// A wheel ends the process when it is used against its contract, and says how.
#include <gtest/gtest.h>

#include <cstddef>

#include "carillon/wheel/detail/occupancy.h"
#include "carillon/wheel/detail/slot.h"
#include "carillon/wheel/hashed_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::testing {
namespace {

TEST(WheelPreconditionsDeathTest, ATimerOfAnotherWheelIsNotCancelled) {
  HierarchicalWheel<> wheel, other;
  TimerNode timer;
  wheel.schedule(timer, Moment{500});
  EXPECT_DEATH(other.cancel(timer),
               "cancel\\(\\) requires: holds\\(node\\); node.expiry\\(\\) = 500");
}

TEST(WheelPreconditionsDeathTest, ATimerOfAnotherWheelIsNotScheduledAgain) {
  HierarchicalWheel<> wheel, other;
  TimerNode timer;
  wheel.schedule(timer, Moment{500});
  EXPECT_DEATH(other.schedule(timer, Moment{501}),
               "reschedule\\(\\) requires: table_.holds\\(node\\); node.expiry\\(\\) = 500");
}

TEST(WheelPreconditionsDeathTest, ATimerThatIsNotArmedHasNoPosition) {
  const HierarchicalWheel<> wheel;
  const TimerNode timer;
  EXPECT_DEATH(static_cast<void>(wheel.position(timer)),
               "position\\(\\) requires: node.armed\\(\\)");
}

TEST(WheelPreconditionsDeathTest, ATimerThatIsNotArmedHasNoRounds) {
  const HashedWheel<8> wheel;
  const TimerNode timer;
  EXPECT_DEATH(static_cast<void>(wheel.rounds(timer)),
               "rounds\\(\\) requires: node.armed\\(\\); node.expiry\\(\\) = 0");
}

TEST(WheelPreconditionsDeathTest, AnArmedTimerIsNotReplaced) {
  HierarchicalWheel<> wheel;
  TimerNode from, to;
  wheel.schedule(to, Moment{7});
  EXPECT_DEATH(detail::NodeAccess::move(from, to), "move\\(\\) requires: !to.armed\\(\\)");
}

TEST(WheelPreconditionsDeathTest, AnEmptyOccupancyHasNoFirstSlot) {
  const detail::Occupancy<64> occupancy;
  EXPECT_DEATH(static_cast<void>(occupancy.first()), "first\\(\\) requires: !none\\(\\)");
}

TEST(WheelPreconditionsDeathTest, AFullSlotGivesNoEntry) {
  detail::Slot<8> slot;
  EXPECT_DEATH(slot.take(), "take\\(\\) requires: !needs_chunk\\(\\)");
}

TEST(WheelPreconditionsDeathTest, AChunkWithATimerIsNotGivenBack) {
  std::size_t timers = 1;
  detail::ChunkPool<8> pool(WheelPages::kDefault, timers);
  detail::Slot<8> slot;
  EXPECT_DEATH(slot.drop_front(pool), "drop_front\\(\\) requires: !empty\\(\\)");
  slot.add_chunk(pool.acquire());
  TimerNode timer;
  *slot.take() = &timer;
  EXPECT_DEATH(slot.drop_front(pool), "drop_front\\(\\) requires: std::all_of");
}

}  // namespace
}  // namespace carillon::testing
