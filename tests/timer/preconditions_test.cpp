// The parts of the timer service end the process when they are used against their contracts, and
// say how.
#include <gtest/gtest.h>

#include "carillon/timer/detail/door.h"
#include "carillon/timer/detail/tick_scale.h"
#include "carillon/timer/detail/timer_block.h"
#include "carillon/timer/detail/timer_word.h"
#include "carillon/timer/timer_task.h"
#include "timer/block_list.h"

namespace carillon::testing {
namespace {

struct Note {
  Note* next = nullptr;
};

TEST(TimerPreconditionsDeathTest, AnEmptyTaskIsNotCalled) {
  TimerTask task;
  EXPECT_DEATH(task(), "requires: ops_ != nullptr");
}

TEST(TimerPreconditionsDeathTest, ATickIsAtLeastANanosecond) {
  EXPECT_DEATH(detail::TickScale(0), "TickScale\\(\\) requires: tick >= 1; tick = 0");
}

TEST(TimerPreconditionsDeathTest, ATimerIsArmedOnce) {
  detail::TimerWord word;
  word.arm(false);
  EXPECT_DEATH(word.arm(false), "arm\\(\\) requires: .*; phase_of\\(word\\) = 1, generation = 1");
}

TEST(TimerPreconditionsDeathTest, ATimerIsFinishedOnce) {
  detail::TimerWord word;
  EXPECT_DEATH(word.finish(), "finish\\(\\) requires: phase_of\\(old\\) != Phase::kFree");
}

TEST(TimerPreconditionsDeathTest, AnArmedTimerDoesNotGoBackToThePool) {
  detail::TimerBlock block;
  block.word.arm(false);
  EXPECT_DEATH(detail::release_block(block),
               "release_block\\(\\) requires: block.word.is_free\\(\\)");
}

TEST(TimerPreconditionsDeathTest, OnlyTheThreadInsideLeavesADoor) {
  detail::Door<Note> door;
  EXPECT_DEATH(door.leave(), "take_notes\\(\\) requires: seen != kOpen && seen != kShut; seen = 0");
}

TEST(TimerPreconditionsDeathTest, AnEmptyListHasNoFirstBlock) {
  detail::BlockList list;
  EXPECT_DEATH(list.pop(), "pop\\(\\) requires: !empty\\(\\)");
}

}  // namespace
}  // namespace carillon::testing
