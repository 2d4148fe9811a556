// What is scheduled at or before now() (contract 4 of timer_set.h), one literal test each, over every model.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/models.h"

namespace carillon::testing {
namespace {

template <class Model>
class DueAlready : public FourTimers<Model> {};
TYPED_TEST_SUITE(DueAlready, Models, ModelNames);

TYPED_TEST(DueAlready, AnExpiryAtNowFiresOnTheNextAdvanceEvenIfThatStandsStill) {
  TypeParam wheel(50);
  wheel.schedule(this->a, 50);
  EXPECT_EQ(wheel.next_wakeup(), 50U);
  EXPECT_EQ(this->fire(wheel, 50), "a");
}

TYPED_TEST(DueAlready, AnExpiryInThePastFiresOnTheNextAdvance) {
  TypeParam wheel(50);
  wheel.schedule(this->a, 0);
  wheel.schedule(this->b, 49);
  EXPECT_EQ(wheel.next_wakeup(), 50U);
  EXPECT_EQ(this->fire(wheel, 51), "ab");
  EXPECT_EQ(this->a.expiry(), 0U);
}

TYPED_TEST(DueAlready, WhatIsDueAlreadyFiresInTheOrderScheduledAndBeforeTheNextTick) {
  TypeParam wheel(50);
  wheel.schedule(this->c, 51);
  wheel.schedule(this->a, 40);
  wheel.schedule(this->b, 30);
  EXPECT_EQ(this->fire(wheel, 60), "abc");
}

TYPED_TEST(DueAlready, ATimerThatIsDueAlreadyCanBeCancelledOrPutOff) {
  TypeParam wheel(50);
  wheel.schedule(this->a, 10);
  wheel.schedule(this->b, 10);
  EXPECT_TRUE(wheel.cancel(this->a));
  wheel.reschedule(this->b, 60);
  EXPECT_EQ(this->fire(wheel, 59), "");
  EXPECT_EQ(this->fire(wheel, 60), "b");
}

TYPED_TEST(DueAlready, ATimerScheduledForNowByACallbackWaitsForTheNextAdvance) {
  TypeParam wheel;
  wheel.schedule(this->a, 5);
  wheel.advance(5, [&](TimerNode&) { wheel.schedule(this->b, 5); });
  EXPECT_TRUE(this->b.armed());
  EXPECT_EQ(wheel.next_wakeup(), 5U);
  EXPECT_EQ(this->fire(wheel, 5), "b");
}

TYPED_TEST(DueAlready, ATimerScheduledForNowByACallbackFiresInTheSameAdvanceIfThatGoesOn) {
  TypeParam wheel;
  wheel.schedule(this->a, 5);
  wheel.schedule(this->c, 6);
  std::string fired;
  wheel.advance(10, [&](TimerNode& node) {
    fired += name_of(node);
    if (fired == "a") wheel.schedule(this->b, 0);
  });
  EXPECT_EQ(fired, "abc");
}

TYPED_TEST(DueAlready, ACallbackThatAlwaysReschedulesForNowFiresOncePerTick) {
  TypeParam wheel;
  wheel.schedule(this->a, 1);
  std::vector<Tick> seen;
  const auto again = [&](TimerNode& node) {
    seen.push_back(wheel.now());
    wheel.reschedule(node, wheel.now());
  };
  EXPECT_EQ(wheel.advance(4, again), 4U);
  EXPECT_EQ(wheel.advance(4, again), 1U);
  EXPECT_EQ(seen, (std::vector<Tick>{1, 2, 3, 4, 4}));
}

TYPED_TEST(DueAlready, ACallbackThatAlwaysReschedulesForNowEndsAtTheEndOfTime) {
  TypeParam wheel(kEndOfTime);
  wheel.schedule(this->a, kEndOfTime);
  const auto again = [&](TimerNode& node) { wheel.reschedule(node, kEndOfTime); };
  EXPECT_EQ(wheel.advance(kEndOfTime, again), 1U);
  EXPECT_EQ(wheel.advance(kEndOfTime, again), 1U);
}

}  // namespace
}  // namespace carillon::testing
