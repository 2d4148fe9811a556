// The range of ticks that a model takes (contract 9 of timer_set.h), one literal test each, over every model.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "carillon/wheel/timer_pool.h"
#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/models.h"

namespace carillon::testing {
namespace {

template <class Model>
class Range : public FourTimers<Model> {};
TYPED_TEST_SUITE(Range, Models, ModelNames);

TYPED_TEST(Range, TheLongestDelayFiresAtItsTick) {
  const Tick last = longest_delay<TypeParam>();
  TypeParam wheel;
  wheel.schedule(this->a, last);
  EXPECT_EQ(this->fire(wheel, last - 1), "");
  EXPECT_EQ(this->fire(wheel, last), "a");
}

TYPED_TEST(Range, TheLongestDelayFiresAtItsTickFromAnyTick) {
  if (longest_delay<TypeParam>() == kEndOfTime) return;  // from any other tick it would end after the end of time
  for (const Tick start : {Tick{1}, Tick{255}, Tick{256}, Tick{86'399}, Tick{0x12345678}, kEndOfTime / 2}) {
    const Tick last = start + longest_delay<TypeParam>();
    TypeParam wheel(start);
    wheel.schedule(this->a, last);
    wheel.schedule(this->b, start + 1);
    EXPECT_EQ(this->fire(wheel, start + 1), "b");
    wheel.schedule(this->c, last);
    wheel.schedule(this->d, last + 1);
    EXPECT_EQ(this->fire(wheel, last - 1), "");
    EXPECT_EQ(this->fire(wheel, last), "ac");
    EXPECT_EQ(this->fire(wheel, last + 1), "d");
  }
}

TYPED_TEST(Range, ABeyondIsRefusedAndChangesNothing) {
  constexpr Tick kLongest = longest_delay<TypeParam>();
  if (kLongest == kEndOfTime) return;
  TypeParam wheel(500);
  wheel.schedule(this->a, 510);
  for (const Tick expiry : {500 + kLongest + 1, 500 + 2 * kLongest, kEndOfTime}) {
    EXPECT_THROW(wheel.schedule(this->b, expiry), std::out_of_range);
    EXPECT_THROW(wheel.reschedule(this->a, expiry), std::out_of_range);
    EXPECT_THROW(wheel.reschedule(this->b, expiry), std::out_of_range);
    EXPECT_THROW(wheel.schedule(this->b, expiry, 100), std::out_of_range);
  }
  EXPECT_FALSE(this->b.armed());
  EXPECT_EQ(this->a.expiry(), 510U);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(this->fire(wheel, 510), "a");
}

TYPED_TEST(Range, SlackEndsWhereTheRangeEnds) {
  constexpr Tick kLongest = longest_delay<TypeParam>();
  TypeParam wheel;
  wheel.schedule(this->a, kLongest - 3, 1000);
  EXPECT_GE(this->a.expiry(), kLongest - 3);
  EXPECT_LE(this->a.expiry(), kLongest);
  EXPECT_EQ(this->fire(wheel, kLongest), "a");
}

TEST(SimpleWheelRange, TheErrorSaysWhatWasAskedForAndWhatIsAllowed) {
  SimpleWheel<12> wheel(100);
  Timer timer;
  try {
    wheel.schedule(timer, 112);
    FAIL() << "12 ticks were accepted by 12 slots";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(),
                 "carillon: expiry 112 is beyond the range of the wheel: at tick 100 it takes expiries up to 111 "
                 "(11 ticks ahead)");
  }
}

TEST(SimpleWheelRange, APoolWhoseModelRefusesIsAsItWas) {
  TimerPool<int, SimpleWheel<12>> pool;
  const TimerId id = pool.schedule(11, 1);
  EXPECT_THROW(pool.schedule(12, 2), std::out_of_range);
  EXPECT_THROW(pool.reschedule(id, 12), std::out_of_range);
  pool.check_invariants();
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_EQ(pool.expiry(id), 11U);
}

TEST(SimpleWheelRange, ItMovesWithTheHand) {
  SimpleWheel<12> wheel;
  Timer timer;
  EXPECT_THROW(wheel.schedule(timer, 12), std::out_of_range);
  wheel.advance(1, [](TimerNode&) {});
  wheel.schedule(timer, 12);
  EXPECT_EQ(wheel.advance(11, [](TimerNode&) {}), 0U);
  EXPECT_EQ(wheel.advance(12, [](TimerNode&) {}), 1U);
}

}  // namespace
}  // namespace carillon::testing
