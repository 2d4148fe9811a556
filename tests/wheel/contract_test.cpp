// The contracts of TimerSet (timer_set.h), one literal test each, over every model.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/models.h"

namespace carillon::testing {
namespace {

template <class Model>
class Contract : public FourTimers<Model> {};
TYPED_TEST_SUITE(Contract, Models, ModelNames);

TYPED_TEST(Contract, ANewSetIsEmptyAndHasNoNextWakeup) {
  TypeParam wheel;
  EXPECT_EQ(wheel.now(), 0U);
  EXPECT_EQ(wheel.size(), 0U);
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.check_invariants();
}

TYPED_TEST(Contract, ANodeIsArmedUntilItFires) {
  TypeParam wheel;
  EXPECT_FALSE(this->a.armed());
  wheel.schedule(this->a, 7);
  EXPECT_TRUE(this->a.armed());
  EXPECT_EQ(this->a.expiry(), 7U);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(this->fire(wheel, 7), "a");
  EXPECT_FALSE(this->a.armed());
  EXPECT_TRUE(wheel.empty());
}

TYPED_TEST(Contract, ATimerFiresAtItsTickAndNotOneEarlier) {
  for (const Tick delay :
       std::vector<Tick>{1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 257, 4095, 4096, 65535, 65536, 65537, 16777216}) {
    if (this->refuses(delay)) continue;
    TypeParam wheel(1000);
    wheel.schedule(this->a, 1000 + delay);
    EXPECT_EQ(this->fire(wheel, 1000 + delay - 1), "") << delay;
    EXPECT_EQ(this->fire(wheel, 1000 + delay), "a") << delay;
  }
}

TYPED_TEST(Contract, SteppingTickByTickFiresAtTheTickEverySlotBoundaryIncluded) {
  TypeParam wheel(65000);
  wheel.schedule(this->a, 65535);
  wheel.schedule(this->b, 65536);
  wheel.schedule(this->c, 66048);
  for (Tick now = 65001; now <= 66048; ++now) {
    const std::string expected = now == 65535 ? "a" : now == 65536 ? "b" : now == 66048 ? "c" : "";
    ASSERT_EQ(this->fire(wheel, now), expected) << now;
  }
}

TYPED_TEST(Contract, AJumpPastTheExpiryFiresInOrderOfExpiry) {
  if (this->refuses(70'000)) return;
  TypeParam wheel;
  wheel.schedule(this->a, 70000);
  wheel.schedule(this->b, 3);
  wheel.schedule(this->c, 300);
  EXPECT_EQ(this->fire(wheel, 1'000'000), "bca");
  EXPECT_EQ(wheel.now(), 1'000'000U);
}

TYPED_TEST(Contract, TimersOfOneTickFireInTheOrderScheduledWheneverThatWas) {
  if (this->refuses(70'000)) return;
  TypeParam wheel;
  wheel.schedule(this->a, 70000);
  this->fire(wheel, 4000);
  wheel.schedule(this->b, 70000);
  this->fire(wheel, 69000);
  wheel.schedule(this->c, 70000);
  this->fire(wheel, 69999);
  wheel.schedule(this->d, 70000);
  EXPECT_EQ(this->fire(wheel, 70000), "abcd");
}

TYPED_TEST(Contract, TimersOfOneTickKeepTheirOrderThoughALaterOneIsPlacedBelowBeforeAnEarlierComesDown) {
  if (this->refuses(70'000)) return;
  TypeParam wheel;
  wheel.schedule(this->a, 70'000);
  this->fire(wheel, 65'500);
  wheel.schedule(this->b, 70'000);
  this->fire(wheel, 69'800);
  wheel.schedule(this->c, 70'000);
  this->fire(wheel, 69'998);
  wheel.schedule(this->d, 70'000);
  EXPECT_EQ(this->fire(wheel, 80'000), "abcd");
}

TYPED_TEST(Contract, NowIsTheExpiryInsideOnExpire) {
  TypeParam wheel;
  wheel.schedule(this->a, 5);
  wheel.schedule(this->b, 5000);
  std::vector<Tick> seen;
  wheel.advance(9000, [&](TimerNode&) { seen.push_back(wheel.now()); });
  EXPECT_EQ(seen, (std::vector<Tick>{5, 5000}));
  EXPECT_EQ(wheel.now(), 9000U);
}

// --- cancel and reschedule

TYPED_TEST(Contract, ACancelledTimerNeverFires) {
  TypeParam wheel;
  wheel.schedule(this->a, 100);
  wheel.schedule(this->b, 100);
  EXPECT_TRUE(wheel.cancel(this->a));
  EXPECT_FALSE(this->a.armed());
  EXPECT_FALSE(wheel.cancel(this->a));
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(this->fire(wheel, 1000), "b");
  EXPECT_FALSE(wheel.cancel(this->b)) << "it has fired";
}

TYPED_TEST(Contract, RescheduleArmsATimerThatIsNotArmed) {
  TypeParam wheel;
  wheel.reschedule(this->a, 9);
  EXPECT_EQ(this->fire(wheel, 9), "a");
}

TYPED_TEST(Contract, ATimerPutOffFiresAtItsNewTickOnly) {
  if (this->refuses(100'000)) return;
  TypeParam wheel;
  wheel.schedule(this->a, 10);
  wheel.reschedule(this->a, 100'000);
  EXPECT_EQ(this->a.expiry(), 100'000U);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(this->fire(wheel, 99'999), "");
  EXPECT_EQ(this->fire(wheel, 100'000), "a");
}

TYPED_TEST(Contract, ATimerBroughtForwardFiresAtItsNewTickOnly) {
  if (this->refuses(100'000)) return;
  TypeParam wheel;
  wheel.schedule(this->a, 100'000);
  wheel.reschedule(this->a, 10);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(this->fire(wheel, 9), "");
  EXPECT_EQ(this->fire(wheel, 10), "a");
  EXPECT_EQ(this->fire(wheel, 200'000), "");
}

TYPED_TEST(Contract, ATimerPutOffAndBroughtBackFiresOnce) {
  TypeParam wheel;
  wheel.schedule(this->a, 10);
  wheel.reschedule(this->a, 20);
  wheel.reschedule(this->a, 10);
  EXPECT_EQ(this->fire(wheel, 15), "a");
  EXPECT_EQ(this->fire(wheel, 100), "");
}

TYPED_TEST(Contract, AKeepaliveThatIsAlwaysPutOffNeverFires) {
  TypeParam wheel;
  wheel.schedule(this->a, 30);
  for (Tick now = 1; now < 5000; ++now) {
    ASSERT_EQ(this->fire(wheel, now), "");
    wheel.reschedule(this->a, now + 30);
  }
  EXPECT_EQ(this->fire(wheel, 4999 + 30), "a");
}

// --- next wake-up

TYPED_TEST(Contract, NothingFiresBeforeTheNextWakeupAndItIsNeverAfterTheNextExpiry) {
  for (const Tick delay : {Tick{1}, Tick{100}, Tick{1000}, Tick{1} << 40, kEndOfTime - 12345}) {
    if (this->refuses(delay)) continue;
    TypeParam wheel(12345);
    wheel.schedule(this->a, 12345 + delay);
    while (wheel.now() < 12345 + delay) {
      const std::optional<Tick> wakeup = wheel.next_wakeup();
      ASSERT_TRUE(wakeup.has_value());
      ASSERT_GT(*wakeup, wheel.now());
      ASSERT_LE(*wakeup, 12345 + delay);
      ASSERT_EQ(this->fire(wheel, *wakeup - 1), "");
      ASSERT_EQ(this->fire(wheel, *wakeup), *wakeup == 12345 + delay ? "a" : "");
    }
    EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  }
}

TYPED_TEST(Contract, ALaterFineTimerDoesNotHideAnEarlierCoarseOne) {  // glommio#44
  TypeParam wheel;
  wheel.schedule(this->a, 4096 + 10);
  this->fire(wheel, 4000);
  wheel.schedule(this->b, 4096 + 20);
  EXPECT_LE(*wheel.next_wakeup(), 4096U + 10);
  EXPECT_EQ(this->fire_next(wheel), "a");
  EXPECT_EQ(wheel.now(), 4096U + 10);
}

TYPED_TEST(Contract, AJumpOverEmptyTimeIsOneStep) {
  if (this->refuses(kEndOfTime - 1)) return;
  TypeParam wheel;
  wheel.schedule(this->a, kEndOfTime - 1);
  EXPECT_EQ(this->fire(wheel, kEndOfTime - 2), "");
  EXPECT_EQ(wheel.now(), kEndOfTime - 2);
  EXPECT_EQ(this->fire(wheel, kEndOfTime - 1), "a");
}

// --- the range of ticks

TYPED_TEST(Contract, TheLastTickOfTimeWorks) {
  if (this->refuses(kEndOfTime)) return;
  TypeParam wheel;
  wheel.schedule(this->a, kEndOfTime);
  EXPECT_EQ(this->fire(wheel, kEndOfTime - 1), "");
  EXPECT_LE(*wheel.next_wakeup(), kEndOfTime);
  EXPECT_EQ(this->fire(wheel, kEndOfTime), "a");
  wheel.schedule(this->b, kEndOfTime);
  EXPECT_EQ(this->fire(wheel, kEndOfTime), "b");
}

TYPED_TEST(Contract, TheLastTicksOfTimeWorkInAWheelThatGoesRound) {
  TypeParam wheel(kEndOfTime - 5000);
  wheel.schedule(this->c, kEndOfTime);
  wheel.schedule(this->b, kEndOfTime - 1);
  wheel.schedule(this->a, kEndOfTime - 4999);
  EXPECT_EQ(this->fire(wheel, kEndOfTime - 4999), "a");
  EXPECT_EQ(this->fire(wheel, kEndOfTime - 2), "");
  EXPECT_EQ(this->fire(wheel, kEndOfTime - 1), "b");
  EXPECT_EQ(this->fire(wheel, kEndOfTime), "c");
}

TYPED_TEST(Contract, AnEmptySetCanGoToTheEndOfTime) {
  TypeParam wheel;
  EXPECT_EQ(wheel.advance(kEndOfTime, [](TimerNode&) {}), 0U);
  EXPECT_EQ(wheel.now(), kEndOfTime);
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
}

TYPED_TEST(Contract, ASetMayStartAtTheEndOfTime) {
  TypeParam wheel(kEndOfTime);
  wheel.schedule(this->a, 3);
  wheel.schedule(this->b, kEndOfTime);
  EXPECT_EQ(this->fire(wheel, kEndOfTime), "ab");
}

TYPED_TEST(Contract, DoesNotHangAfterTwelveDaysOfMilliseconds) {  // tokio#8334
  if (this->refuses(10'000)) return;
  constexpr Tick kTwelveDays = Tick{1000} * 60 * 60 * 24 * 12;
  TypeParam wheel;
  std::size_t fired = 0;
  wheel.schedule(this->a, 10'000);
  while (wheel.now() < 3 * kTwelveDays) {
    fired +=
        wheel.advance(wheel.now() + 10'000, [&](TimerNode& node) { wheel.schedule(node, node.expiry() + 10'000); });
  }
  EXPECT_EQ(fired, 3 * kTwelveDays / 10'000);
}

// --- errors

TYPED_TEST(Contract, GoingBackIsAnErrorThatSaysSo) {
  TypeParam wheel(100);
  wheel.schedule(this->a, 200);
  try {
    this->fire(wheel, 99);
    FAIL() << "advance(99) at tick 100 was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "carillon: advance(99) would go back: the wheel is at tick 100, and `to` must not be before that");
  }
  EXPECT_EQ(wheel.now(), 100U);
  EXPECT_EQ(this->fire(wheel, 200), "a");
}

// --- clear and destruction

TYPED_TEST(Contract, ClearHandsOverEveryTimerOnceAndDisarmed) {
  if (this->refuses(1'000'000)) return;
  TypeParam wheel;
  wheel.schedule(this->a, 0);
  wheel.schedule(this->b, 10);
  wheel.schedule(this->c, 1'000'000);
  wheel.cancel(this->b);
  std::string cleared;
  wheel.clear([&](TimerNode& node) {
    EXPECT_FALSE(node.armed());
    cleared += name_of(node);
  });
  EXPECT_TRUE(cleared == "ac" || cleared == "ca") << cleared;
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.schedule(this->a, 5);
  EXPECT_EQ(this->fire(wheel, 5), "a");
}

TYPED_TEST(Contract, ASinkThatThrowsLeavesTheRestArmed) {
  TypeParam wheel;
  wheel.schedule(this->a, 10);
  wheel.schedule(this->b, 10);
  EXPECT_THROW(wheel.clear([](TimerNode&) { throw std::runtime_error("full"); }), std::runtime_error);
  wheel.check_invariants();
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(this->fire(wheel, 10).size(), 1U);
}

TYPED_TEST(Contract, ASetThatIsDestroyedDisarmsWhatIsLeft) {
  {
    TypeParam wheel;
    wheel.schedule(this->a, 10);
    wheel.schedule(this->b, 0);
  }
  EXPECT_FALSE(this->a.armed());
  EXPECT_FALSE(this->b.armed());
}

// --- slack

TYPED_TEST(Contract, ATimerWithSlackFiresWithinIt) {
  TypeParam wheel;
  wheel.schedule(this->a, 1000, 50);
  EXPECT_EQ(this->fire(wheel, 999), "");
  EXPECT_EQ(this->fire(wheel, 1050), "a");
}

TYPED_TEST(Contract, SlackLetsTimersShareOneTick) {
  TypeParam wheel;
  wheel.schedule(this->a, 1000, 50);
  wheel.schedule(this->b, 1010, 50);
  wheel.schedule(this->c, 1020, 50);
  EXPECT_EQ(this->fire_next(wheel), "abc");
  EXPECT_EQ(wheel.now(), 1024U);
}

}  // namespace
}  // namespace carillon::testing
