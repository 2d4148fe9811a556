// Timers that are scheduled at or before now() (contract 4 of timer_set.h): literal tests over
// every model.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/model_test.h"

namespace carillon::testing {
namespace {

class DueAlready : public FourTimers {};

MODEL_TEST(DueAlready, ATimerForNowFiresOnTheNextAdvanceEvenIfThatStandsStill) {
  ModelUnderTest wheel(50);
  wheel.schedule(a, 50);
  EXPECT_EQ(wheel.next_wakeup(), 50U);
  EXPECT_EQ(fire(wheel, 50), "a");
}

MODEL_TEST(DueAlready, ATimerForThePastFiresOnTheNextAdvance) {
  ModelUnderTest wheel(50);
  wheel.schedule(a, 0);
  wheel.schedule(b, 49);
  EXPECT_EQ(wheel.next_wakeup(), 50U);
  EXPECT_EQ(fire(wheel, 51), "ab");
  EXPECT_EQ(a.expiry(), 0U);
}

MODEL_TEST(DueAlready, TimersDueAlreadyFireInTheOrderScheduledAndBeforeTheNextTick) {
  ModelUnderTest wheel(50);
  wheel.schedule(c, 51);
  wheel.schedule(a, 40);
  wheel.schedule(b, 30);
  EXPECT_EQ(fire(wheel, 60), "abc");
}

MODEL_TEST(DueAlready, ATimerThatIsDueAlreadyCanBeCancelledOrPutOff) {
  ModelUnderTest wheel(50);
  wheel.schedule(a, 10);
  wheel.schedule(b, 10);
  EXPECT_TRUE(wheel.cancel(a));
  wheel.reschedule(b, 60);
  EXPECT_EQ(fire(wheel, 59), "");
  EXPECT_EQ(fire(wheel, 60), "b");
}

MODEL_TEST(DueAlready, ATimerThatIsPutOffToTheNextTickFiresAfterThoseThatAreStillDueAlready) {
  ModelUnderTest wheel(50);
  wheel.schedule(a, 40);
  wheel.schedule(b, 40);
  wheel.schedule(c, 40);
  wheel.reschedule(a, 51);
  wheel.schedule(b, 51);
  EXPECT_EQ(wheel.size(), 3U);
  const std::string fired = fire(wheel, 51);
  EXPECT_TRUE(fired == "cab" || fired == "cba") << fired;
}

MODEL_TEST(DueAlready, ATimerScheduledForNowByACallbackWaitsForTheNextAdvance) {
  ModelUnderTest wheel;
  wheel.schedule(a, 5);
  wheel.advance(5, [&](TimerNode&) { wheel.schedule(b, 5); });
  EXPECT_TRUE(b.armed());
  EXPECT_EQ(wheel.next_wakeup(), 5U);
  EXPECT_EQ(fire(wheel, 5), "b");
}

MODEL_TEST(DueAlready, ATimerScheduledForNowByACallbackFiresInTheSameAdvanceIfThatGoesOn) {
  ModelUnderTest wheel;
  wheel.schedule(a, 5);
  wheel.schedule(c, 6);
  std::string fired;
  wheel.advance(10, [&](TimerNode& node) {
    fired += name_of(node);
    if (fired == "a") wheel.schedule(b, 0);
  });
  EXPECT_EQ(fired, "abc");
}

MODEL_TEST(DueAlready, ACallbackThatAlwaysReschedulesForNowFiresOncePerTick) {
  ModelUnderTest wheel;
  wheel.schedule(a, 1);
  std::vector<Tick> seen;
  const auto again = [&](TimerNode& node) {
    seen.push_back(wheel.now());
    wheel.reschedule(node, wheel.now());
  };
  EXPECT_EQ(wheel.advance(4, again), 4U);
  EXPECT_EQ(wheel.advance(4, again), 1U);
  EXPECT_EQ(seen, (std::vector<Tick>{1, 2, 3, 4, 4}));
}

MODEL_TEST(DueAlready, ACallbackThatAlwaysReschedulesForNowEndsAtTheEndOfTime) {
  ModelUnderTest wheel(kEndOfTime);
  wheel.schedule(a, kEndOfTime);
  const auto again = [&](TimerNode& node) { wheel.reschedule(node, kEndOfTime); };
  EXPECT_EQ(wheel.advance(kEndOfTime, again), 1U);
  EXPECT_EQ(wheel.advance(kEndOfTime, again), 1U);
}

}  // namespace
}  // namespace carillon::testing
