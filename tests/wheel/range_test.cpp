// The range of ticks that a model takes (contract 9 of timer_set.h): literal tests over every
// model.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "carillon/wheel/simple_wheel.h"
#include "carillon/wheel/timer_pool.h"
#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/model_test.h"

namespace carillon::testing {
namespace {

class Range : public FourTimers {};

MODEL_TEST(Range, TheLongestDelayFiresAtItsTick) {
  const Tick last = ModelUnderTest::longest_delay();
  ModelUnderTest wheel;
  wheel.schedule(a, last);
  EXPECT_EQ(fire(wheel, last - 1), "");
  EXPECT_EQ(fire(wheel, last), "a");
}

MODEL_TEST(Range, TheLongestDelayFiresAtItsTickFromAnyTick) {
  // With the whole range of ticks, such a timer would end after the end of time.
  if (ModelUnderTest::longest_delay() == kEndOfTime) return;
  for (const Tick start :
       {Tick{1}, Tick{255}, Tick{256}, Tick{86'399}, Tick{0x12345678}, kEndOfTime / 2}) {
    const Tick last = start + ModelUnderTest::longest_delay();
    ModelUnderTest wheel(start);
    wheel.schedule(a, last);
    wheel.schedule(b, start + 1);
    EXPECT_EQ(fire(wheel, start + 1), "b");
    wheel.schedule(c, last);
    wheel.schedule(d, last + 1);
    EXPECT_EQ(fire(wheel, last - 1), "");
    EXPECT_EQ(fire(wheel, last), "ac");
    EXPECT_EQ(fire(wheel, last + 1), "d");
  }
}

MODEL_TEST(Range, AnExpiryBeyondIsRefusedAndChangesNothing) {
  const Tick longest = ModelUnderTest::longest_delay();
  if (longest == kEndOfTime) return;
  ModelUnderTest wheel(500);
  wheel.schedule(a, 510);
  for (const Tick expiry : {500 + longest + 1, 500 + 2 * longest, kEndOfTime}) {
    EXPECT_THROW(wheel.schedule(b, expiry), std::out_of_range);
    EXPECT_THROW(wheel.reschedule(a, expiry), std::out_of_range);
    EXPECT_THROW(wheel.reschedule(b, expiry), std::out_of_range);
    EXPECT_THROW(wheel.schedule(b, expiry, 100), std::out_of_range);
  }
  EXPECT_FALSE(b.armed());
  EXPECT_EQ(a.expiry(), 510U);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, 510), "a");
}

MODEL_TEST(Range, SlackEndsWhereTheRangeEnds) {
  const Tick longest = ModelUnderTest::longest_delay();
  ModelUnderTest wheel;
  wheel.schedule(a, longest - 3, 1000);
  EXPECT_GE(a.expiry(), longest - 3);
  EXPECT_LE(a.expiry(), longest);
  EXPECT_EQ(fire(wheel, longest), "a");
}

TEST(SimpleWheelRange, TheErrorGivesTheExpiryAndTheRange) {
  SimpleWheel<12> wheel(100);
  Timer timer;
  try {
    wheel.schedule(timer, Moment{112});
    FAIL() << "12 ticks were accepted by 12 slots";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(),
                 "carillon: expiry 112 is beyond the range of the wheel: at tick 100 it takes "
                 "expiries up to 111 (11 ticks ahead)");
  }
}

TEST(SimpleWheelRange, APoolWhoseModelRefusesIsAsItWas) {
  TimerPool<int, SimpleWheel<12>> pool;
  const TimerId id = pool.schedule(Moment{11}, 1);
  EXPECT_THROW(pool.schedule(Moment{12}, 2), std::out_of_range);
  EXPECT_THROW(pool.reschedule(id, Moment{12}), std::out_of_range);
  pool.check_invariants();
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_EQ(pool.expiry(id), 11U);
}

TEST(SimpleWheelRange, ItMovesWithTheHand) {
  SimpleWheel<12> wheel;
  Timer timer;
  EXPECT_THROW(wheel.schedule(timer, Moment{12}), std::out_of_range);
  wheel.advance(1, [](TimerNode&) {});
  wheel.schedule(timer, Moment{12});
  EXPECT_EQ(wheel.advance(11, [](TimerNode&) {}), 0U);
  EXPECT_EQ(wheel.advance(12, [](TimerNode&) {}), 1U);
}

}  // namespace
}  // namespace carillon::testing
