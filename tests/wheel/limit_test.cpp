// advance() with a limit (contract 7 of timer_set.h): literal tests over every model.
#include <gtest/gtest.h>

#include <vector>

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/model_test.h"

namespace carillon::testing {
namespace {

class Limit : public FourTimers {};

MODEL_TEST(Limit, BoundsTheTimersFiredAndTheRestFollowsInOrder) {
  if (ModelUnderTest::kind().may_stop_short) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 3);
  wheel.schedule(b, 3);
  wheel.schedule(c, 300);
  wheel.schedule(d, 400);
  EXPECT_EQ(fire(wheel, 350, 1), "a");
  EXPECT_EQ(wheel.now(), 3U);
  EXPECT_EQ(wheel.next_wakeup(), 3U);
  EXPECT_EQ(fire(wheel, 350, 1), "b");
  EXPECT_EQ(wheel.now(), 300U) << "c is left, and due then";
  EXPECT_EQ(fire(wheel, 350, 1), "c");
  EXPECT_EQ(wheel.now(), 350U) << "no earlier timer is left";
  EXPECT_EQ(fire(wheel, 400, 5), "d");
}

MODEL_TEST(Limit, ALimitOfZeroFiresNothingAndLosesNothing) {
  ModelUnderTest wheel;
  wheel.schedule(a, 3);
  EXPECT_EQ(fire(wheel, 1000, 0), "");
  EXPECT_LE(wheel.now(), 3U);
  EXPECT_EQ(wheel.next_wakeup(), wheel.now());
  EXPECT_EQ(fire(wheel, 1000), "a");
}

MODEL_TEST(Limit, TimersThatALimitLeftCanBeCancelledAndPutOff) {
  if (ModelUnderTest::kind().may_stop_short) return;
  ModelUnderTest wheel;
  for (Timer* timer : {&a, &b, &c, &d}) wheel.schedule(*timer, 9);
  EXPECT_EQ(fire(wheel, 20, 1), "a");
  wheel.cancel(b);
  wheel.reschedule(c, 15);
  EXPECT_EQ(fire(wheel, 20, 1), "d");
  EXPECT_EQ(fire(wheel, 20, 1), "c");
}

MODEL_TEST(Limit, ABurstDueInOneTickIsExpiredInBoundedSteps) {
  if (ModelUnderTest::kind().may_stop_short) return;
  ModelUnderTest wheel;
  std::vector<Timer> burst(10'000);
  for (Timer& timer : burst) wheel.schedule(timer, 777);
  const Timer* next = burst.data();
  for (int step = 0; step < 100; ++step) {
    ASSERT_EQ(wheel.advance(
                  1000, [&](TimerNode& node) { ASSERT_EQ(&node, next++); }, 100),
              100U);
    ASSERT_EQ(wheel.size(), 10'000U - 100U * static_cast<unsigned>(step + 1));
  }
  EXPECT_EQ(wheel.now(), 1000U);
}

// The bound on the entries that a call with a limit reads: three here, a million in the defaults.
class Halting : public ::testing::Test {
 public:
  static const ModelKinds& kinds() { return halting_models(); }
};

MODEL_TEST(Halting, ACallThatHasReadEnoughEntriesEndsAndTheNextGoesOn) {
  ModelUnderTest wheel;
  std::vector<Timer> timers(100);
  for (Timer& timer : timers) wheel.schedule(timer, 1000);
  std::size_t fired = 0;
  int calls = 0;
  while (fired < timers.size()) {
    ASSERT_LE(++calls, 1000);
    fired += wheel.advance(
        5000, [&](TimerNode& node) { ASSERT_EQ(&node, &timers[fired]); }, 1);
    wheel.check_invariants();
    if (fired < timers.size()) {
      ASSERT_LE(wheel.now(), 1000U);
      ASSERT_LE(*wheel.next_wakeup(), 5000U) << "next_wakeup() says that there is more to do";
    }
  }
  EXPECT_GT(calls, 100) << "no call ended early: the test shows nothing";
}

MODEL_TEST(Halting, ATimerScheduledInTheMiddleOfACascadeKeepsItsTurn) {
  ModelUnderTest wheel;
  std::vector<Timer> timers(200);
  std::size_t scheduled = 0;
  for (; scheduled < 100; ++scheduled) wheel.schedule(timers[scheduled], 1000);
  std::size_t fired = 0;
  const auto in_order = [&](TimerNode& node) { ASSERT_EQ(&node, &timers[fired++]); };
  while (wheel.now() < 1000) {
    wheel.advance(5000, in_order, 1);
    if (wheel.now() < 1000) wheel.schedule(timers[scheduled++], 1000);
    wheel.check_invariants();
  }
  EXPECT_GT(scheduled, 110U) << "no cascade stopped in the middle: the test shows nothing";
  wheel.advance(5000, in_order);
  EXPECT_EQ(fired, scheduled);
}

MODEL_TEST(Halting, ACallWithoutALimitDoesNotEndEarly) {
  ModelUnderTest wheel;
  std::vector<Timer> timers(100);
  for (Timer& timer : timers) wheel.schedule(timer, 1000);
  EXPECT_EQ(wheel.advance(5000, [](TimerNode&) {}), 100U);
  EXPECT_EQ(wheel.now(), 5000U);
}

TEST(Limit, LoneTimersThatWereReArmedAreMovedOnWithinTheBound) {
  HierarchicalWheel<BinaryDigits<8>, 64, 3> wheel;
  std::vector<TimerNode> timers(250);
  for (std::size_t i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], Moment{i + 1});
  for (TimerNode& timer : timers) wheel.reschedule(timer, Moment{100'000});
  EXPECT_EQ(wheel.advance(
                255, [](TimerNode&) {}, 1),
            0U);
  EXPECT_LE(wheel.now(), 3U + 1 + 62);
  EXPECT_EQ(wheel.next_wakeup(), wheel.now());
  wheel.clear([](TimerNode&) {});
}

}  // namespace
}  // namespace carillon::testing
