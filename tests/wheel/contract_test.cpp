// The contracts of TimerSet (timer_set.h), as literal tests over every model.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/model_test.h"

namespace carillon::testing {
namespace {

class Contract : public FourTimers {};

MODEL_TEST(Contract, ANewSetIsEmptyAndHasNoNextWakeup) {
  ModelUnderTest wheel;
  EXPECT_EQ(wheel.now(), 0U);
  EXPECT_EQ(wheel.size(), 0U);
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.check_invariants();
}

MODEL_TEST(Contract, ANodeIsArmedUntilItFires) {
  ModelUnderTest wheel;
  EXPECT_FALSE(a.armed());
  wheel.schedule(a, 7);
  EXPECT_TRUE(a.armed());
  EXPECT_EQ(a.expiry(), 7U);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, 7), "a");
  EXPECT_FALSE(a.armed());
  EXPECT_TRUE(wheel.empty());
}

MODEL_TEST(Contract, ATimerFiresAtItsTickAndNotOneEarlier) {
  for (const Tick delay : std::vector<Tick>{1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 257, 4095, 4096,
                                            65535, 65536, 65537, 16777216}) {
    if (refuses(delay)) continue;
    ModelUnderTest wheel(1000);
    wheel.schedule(a, 1000 + delay);
    EXPECT_EQ(fire(wheel, 1000 + delay - 1), "") << delay;
    EXPECT_EQ(fire(wheel, 1000 + delay), "a") << delay;
  }
}

MODEL_TEST(Contract, SteppingTickByTickFiresAtTheTickEverySlotBoundaryIncluded) {
  ModelUnderTest wheel(65000);
  wheel.schedule(a, 65535);
  wheel.schedule(b, 65536);
  wheel.schedule(c, 66048);
  for (Tick now = 65001; now <= 66048; ++now) {
    const std::string expected = now == 65535 ? "a" : now == 65536 ? "b" : now == 66048 ? "c" : "";
    ASSERT_EQ(fire(wheel, now), expected) << now;
  }
}

MODEL_TEST(Contract, AJumpPastTheExpiryFiresInOrderOfExpiry) {
  if (refuses(70'000)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 70000);
  wheel.schedule(b, 3);
  wheel.schedule(c, 300);
  EXPECT_EQ(fire(wheel, 1'000'000), "bca");
  EXPECT_EQ(wheel.now(), 1'000'000U);
}

MODEL_TEST(Contract, TimersOfOneTickFireInTheOrderScheduledWheneverThatWas) {
  if (refuses(70'000)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 70000);
  fire(wheel, 4000);
  wheel.schedule(b, 70000);
  fire(wheel, 69000);
  wheel.schedule(c, 70000);
  fire(wheel, 69999);
  wheel.schedule(d, 70000);
  EXPECT_EQ(fire(wheel, 70000), "abcd");
}

MODEL_TEST(Contract,
           TimersOfOneTickKeepTheirOrderThoughALaterOneIsPlacedBelowBeforeAnEarlierComesDown) {
  if (refuses(70'000)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 70'000);
  fire(wheel, 65'500);
  wheel.schedule(b, 70'000);
  fire(wheel, 69'800);
  wheel.schedule(c, 70'000);
  fire(wheel, 69'998);
  wheel.schedule(d, 70'000);
  EXPECT_EQ(fire(wheel, 80'000), "abcd");
}

MODEL_TEST(Contract, NowIsTheExpiryInsideOnExpire) {
  ModelUnderTest wheel;
  wheel.schedule(a, 5);
  wheel.schedule(b, 5000);
  std::vector<Tick> seen;
  wheel.advance(9000, [&](TimerNode&) { seen.push_back(wheel.now()); });
  EXPECT_EQ(seen, (std::vector<Tick>{5, 5000}));
  EXPECT_EQ(wheel.now(), 9000U);
}

// --- cancel and reschedule

MODEL_TEST(Contract, ACancelledTimerNeverFires) {
  ModelUnderTest wheel;
  wheel.schedule(a, 100);
  wheel.schedule(b, 100);
  EXPECT_TRUE(wheel.cancel(a));
  EXPECT_FALSE(a.armed());
  EXPECT_FALSE(wheel.cancel(a));
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, 1000), "b");
  EXPECT_FALSE(wheel.cancel(b)) << "it has fired";
}

MODEL_TEST(Contract, RescheduleArmsATimerThatIsNotArmed) {
  ModelUnderTest wheel;
  wheel.reschedule(a, 9);
  EXPECT_EQ(fire(wheel, 9), "a");
}

MODEL_TEST(Contract, ATimerPutOffFiresAtItsNewTickOnly) {
  if (refuses(100'000)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  wheel.reschedule(a, 100'000);
  EXPECT_EQ(a.expiry(), 100'000U);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, 99'999), "");
  EXPECT_EQ(fire(wheel, 100'000), "a");
}

MODEL_TEST(Contract, ATimerBroughtForwardFiresAtItsNewTickOnly) {
  if (refuses(100'000)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 100'000);
  wheel.reschedule(a, 10);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, 9), "");
  EXPECT_EQ(fire(wheel, 10), "a");
  EXPECT_EQ(fire(wheel, 200'000), "");
}

MODEL_TEST(Contract, ATimerPutOffAndBroughtBackFiresOnce) {
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  wheel.reschedule(a, 20);
  wheel.reschedule(a, 10);
  EXPECT_EQ(fire(wheel, 15), "a");
  EXPECT_EQ(fire(wheel, 100), "");
}

MODEL_TEST(Contract, AKeepaliveThatIsAlwaysPutOffNeverFires) {
  ModelUnderTest wheel;
  wheel.schedule(a, 30);
  for (Tick now = 1; now < 5000; ++now) {
    ASSERT_EQ(fire(wheel, now), "");
    wheel.reschedule(a, now + 30);
  }
  EXPECT_EQ(fire(wheel, 4999 + 30), "a");
}

// --- delays

MODEL_TEST(Contract, ADelayCountsFromNow) {
  ModelUnderTest wheel(1000);
  wheel.schedule_after(a, 5);
  EXPECT_EQ(a.expiry(), 1005U);
  wheel.reschedule_after(a, 20);
  EXPECT_EQ(a.expiry(), 1020U);
  wheel.schedule_after(b, 1000, 50);
  EXPECT_EQ(b.expiry(), 2048U);
  EXPECT_EQ(fire(wheel, 1020), "a");
  wheel.schedule_after(a, 0);
  EXPECT_EQ(fire(wheel, 1020), "a") << "it is due already";
}

MODEL_TEST(Contract, InsideOnExpireADelayCountsFromTheTickThatIsProcessed) {
  ModelUnderTest wheel;
  wheel.schedule_after(a, 10);
  std::vector<Tick> seen;
  wheel.advance(35, [&](TimerNode& node) {
    seen.push_back(wheel.now());
    wheel.schedule_after(node, 10);
  });
  EXPECT_EQ(seen, (std::vector<Tick>{10, 20, 30}));
}

MODEL_TEST(Contract, ADelayBeyondTheEndOfTimeEndsThere) {
  ModelUnderTest wheel(kEndOfTime - 100);
  wheel.schedule_after(a, kEndOfTime);
  EXPECT_EQ(a.expiry(), kEndOfTime);
  wheel.reschedule_after(a, kEndOfTime - 3);
  EXPECT_EQ(a.expiry(), kEndOfTime);
  EXPECT_EQ(fire(wheel, kEndOfTime), "a");
}

// --- next wake-up

MODEL_TEST(Contract, NothingFiresBeforeTheNextWakeupAndItIsNeverAfterTheNextExpiry) {
  for (const Tick delay : {Tick{1}, Tick{100}, Tick{1000}, Tick{1} << 40, kEndOfTime - 12345}) {
    if (refuses(delay)) continue;
    ModelUnderTest wheel(12345);
    wheel.schedule(a, 12345 + delay);
    while (wheel.now() < 12345 + delay) {
      const std::optional<Tick> wakeup = wheel.next_wakeup();
      ASSERT_TRUE(wakeup.has_value());
      ASSERT_GT(*wakeup, wheel.now());
      ASSERT_LE(*wakeup, 12345 + delay);
      ASSERT_EQ(fire(wheel, *wakeup - 1), "");
      ASSERT_EQ(fire(wheel, *wakeup), *wakeup == 12345 + delay ? "a" : "");
    }
    EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  }
}

MODEL_TEST(Contract, ALaterFineTimerDoesNotHideAnEarlierCoarseOne) {  // glommio#44
  ModelUnderTest wheel;
  wheel.schedule(a, 4096 + 10);
  fire(wheel, 4000);
  wheel.schedule(b, 4096 + 20);
  EXPECT_LE(*wheel.next_wakeup(), 4096U + 10);
  EXPECT_EQ(fire_next(wheel), "a");
  EXPECT_EQ(wheel.now(), 4096U + 10);
}

MODEL_TEST(Contract, AJumpOverEmptyTimeIsOneStep) {
  if (refuses(kEndOfTime - 1)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, kEndOfTime - 1);
  EXPECT_EQ(fire(wheel, kEndOfTime - 2), "");
  EXPECT_EQ(wheel.now(), kEndOfTime - 2);
  EXPECT_EQ(fire(wheel, kEndOfTime - 1), "a");
}

// --- the range of ticks

MODEL_TEST(Contract, TheLastTickOfTimeWorks) {
  if (refuses(kEndOfTime)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, kEndOfTime);
  EXPECT_EQ(fire(wheel, kEndOfTime - 1), "");
  EXPECT_LE(*wheel.next_wakeup(), kEndOfTime);
  EXPECT_EQ(fire(wheel, kEndOfTime), "a");
  wheel.schedule(b, kEndOfTime);
  EXPECT_EQ(fire(wheel, kEndOfTime), "b");
}

MODEL_TEST(Contract, TheLastTicksOfTimeWorkInAWheelThatGoesRound) {
  ModelUnderTest wheel(kEndOfTime - 5000);
  wheel.schedule(c, kEndOfTime);
  wheel.schedule(b, kEndOfTime - 1);
  wheel.schedule(a, kEndOfTime - 4999);
  EXPECT_EQ(fire(wheel, kEndOfTime - 4999), "a");
  EXPECT_EQ(fire(wheel, kEndOfTime - 2), "");
  EXPECT_EQ(fire(wheel, kEndOfTime - 1), "b");
  EXPECT_EQ(fire(wheel, kEndOfTime), "c");
}

MODEL_TEST(Contract, AnEmptySetCanGoToTheEndOfTime) {
  ModelUnderTest wheel;
  EXPECT_EQ(wheel.advance(kEndOfTime, [](TimerNode&) {}), 0U);
  EXPECT_EQ(wheel.now(), kEndOfTime);
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
}

MODEL_TEST(Contract, ASetMayStartAtTheEndOfTime) {
  ModelUnderTest wheel(kEndOfTime);
  wheel.schedule(a, 3);
  wheel.schedule(b, kEndOfTime);
  EXPECT_EQ(fire(wheel, kEndOfTime), "ab");
}

MODEL_TEST(Contract, DoesNotHangAfterTwelveDaysOfMilliseconds) {  // tokio#8334
  if (refuses(10'000)) return;
  constexpr Tick kTwelveDays = Tick{1000} * 60 * 60 * 24 * 12;
  ModelUnderTest wheel;
  std::size_t fired = 0;
  wheel.schedule(a, 10'000);
  while (wheel.now() < 3 * kTwelveDays) {
    fired += wheel.advance(wheel.now() + 10'000,
                           [&](TimerNode& node) { wheel.schedule(node, node.expiry() + 10'000); });
  }
  EXPECT_EQ(fired, 3 * kTwelveDays / 10'000);
}

// --- errors

MODEL_TEST(Contract, GoingBackIsAnErrorThatSaysSo) {
  ModelUnderTest wheel(100);
  wheel.schedule(a, 200);
  try {
    fire(wheel, 99);
    FAIL() << "advance(99) at tick 100 was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "carillon: advance(99) would go back: the wheel is at tick 100, and `to` must not "
                 "be before that");
  }
  EXPECT_EQ(wheel.now(), 100U);
  EXPECT_EQ(fire(wheel, 200), "a");
}

// --- clear and destruction

MODEL_TEST(Contract, ClearHandsOverEveryTimerOnceAndDisarmsIt) {
  if (refuses(1'000'000)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 0);
  wheel.schedule(b, 10);
  wheel.schedule(c, 1'000'000);
  wheel.cancel(b);
  std::string cleared;
  wheel.clear([&](TimerNode& node) {
    EXPECT_FALSE(node.armed());
    cleared += name_of(node);
  });
  EXPECT_TRUE(cleared == "ac" || cleared == "ca") << cleared;
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.schedule(a, 5);
  EXPECT_EQ(fire(wheel, 5), "a");
}

MODEL_TEST(Contract, ASinkThatThrowsLeavesTheRestArmed) {
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  wheel.schedule(b, 10);
  EXPECT_THROW(wheel.clear([](TimerNode&) { throw std::runtime_error("full"); }),
               std::runtime_error);
  wheel.check_invariants();
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, 10).size(), 1U);
}

MODEL_TEST(Contract, ASetThatIsDestroyedDisarmsTheTimersThatAreLeft) {
  {
    ModelUnderTest wheel;
    wheel.schedule(a, 10);
    wheel.schedule(b, 0);
  }
  EXPECT_FALSE(a.armed());
  EXPECT_FALSE(b.armed());
}

// --- slack

MODEL_TEST(Contract, ATimerWithSlackFiresWithinIt) {
  ModelUnderTest wheel;
  wheel.schedule(a, 1000, 50);
  EXPECT_EQ(fire(wheel, 999), "");
  EXPECT_EQ(fire(wheel, 1050), "a");
}

MODEL_TEST(Contract, SlackLetsTimersShareOneTick) {
  ModelUnderTest wheel;
  wheel.schedule(a, 1000, 50);
  wheel.schedule(b, 1010, 50);
  wheel.schedule(c, 1020, 50);
  EXPECT_EQ(fire_next(wheel), "abc");
  EXPECT_EQ(wheel.now(), 1024U);
}

}  // namespace
}  // namespace carillon::testing
