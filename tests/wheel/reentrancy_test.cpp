// Calls that a callback makes on the set that calls it (contract 8 of timer_set.h): literal tests
// over every model.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/model_test.h"

namespace carillon::testing {
namespace {

class InsideOnExpire : public FourTimers {};

MODEL_TEST(InsideOnExpire, ANestedAdvanceIsAnErrorThatSaysSoAndChangesNothing) {
  ModelUnderTest wheel;
  wheel.schedule(a, 5);
  wheel.schedule(b, 5);
  wheel.schedule(c, 500);
  std::string fired;
  wheel.advance(5, [&](TimerNode& node) {
    fired += name_of(node);
    for (const Tick to : {Tick{5}, Tick{6}, Tick{5000}}) {
      EXPECT_THROW(wheel.advance(to, [&](TimerNode&) { fired += "!"; }), std::logic_error);
    }
    EXPECT_THROW(wheel.clear([&](TimerNode&) { fired += "!"; }), std::logic_error);
  });
  EXPECT_EQ(fired, "ab");
  EXPECT_EQ(wheel.now(), 5U);
  EXPECT_EQ(fire(wheel, 500), "c");
}

MODEL_TEST(InsideOnExpire, AnAdvanceInsideClearIsAnErrorToo) {
  ModelUnderTest wheel;
  wheel.schedule(a, 500);
  wheel.clear(
      [&](TimerNode&) { EXPECT_THROW(wheel.advance(1, [](TimerNode&) {}), std::logic_error); });
  EXPECT_EQ(wheel.now(), 0U);
  wheel.schedule(a, 5);
  EXPECT_EQ(fire(wheel, 5), "a");
}

MODEL_TEST(InsideOnExpire,
           ACallbackThatCancelsAndSchedulesAllTheTimeKeepsNoMemoryAndLosesNoSibling) {
  ModelUnderTest wheel;
  std::vector<Timer> siblings(300);
  for (Timer& sibling : siblings) wheel.schedule(sibling, 10);
  Timer restless;
  std::size_t fired = 0;
  wheel.advance(10, [&](TimerNode& node) {
    ASSERT_EQ(&node, &siblings[fired++]);
    for (Tick delay = 1; delay < 300; ++delay) wheel.reschedule(restless, 5000 - delay);
    if (fired % 64 == 0) wheel.check_invariants();
    wheel.cancel(restless);
  });
  EXPECT_EQ(fired, 300U);
  EXPECT_TRUE(wheel.empty());
  wheel.check_invariants();
}

MODEL_TEST(InsideOnExpire, ACallbackMayScheduleItsOwnTimerAgain) {
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  std::vector<Tick> seen;
  wheel.advance(1000, [&](TimerNode& node) {
    EXPECT_FALSE(node.armed());
    seen.push_back(wheel.now());
    if (seen.size() < 4) wheel.schedule(node, wheel.now() + 10);
  });
  EXPECT_EQ(seen, (std::vector<Tick>{10, 20, 30, 40}));
}

MODEL_TEST(InsideOnExpire, CancellingTheTimerThatFiresSaysThatItIsTooLate) {
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  wheel.advance(10, [&](TimerNode& node) { EXPECT_FALSE(wheel.cancel(node)); });
  EXPECT_TRUE(wheel.empty());
}

MODEL_TEST(InsideOnExpire, ACallbackMayCancelASiblingOfTheSameTick) {
  ModelUnderTest wheel;
  for (Timer* timer : {&a, &b, &c}) wheel.schedule(*timer, 10);
  std::string fired;
  wheel.advance(10, [&](TimerNode& node) {
    fired += name_of(node);
    if (fired == "a") wheel.cancel(b);
  });
  EXPECT_EQ(fired, "ac");
}

MODEL_TEST(InsideOnExpire, ACallbackMayPutOffASiblingOfTheSameTick) {
  ModelUnderTest wheel;
  for (Timer* timer : {&a, &b, &c}) wheel.schedule(*timer, 10);
  std::string fired;
  const auto on_expire = [&](TimerNode& node) {
    fired += name_of(node);
    if (fired == "a") wheel.reschedule(b, 11);
  };
  wheel.advance(10, on_expire);
  EXPECT_EQ(fired, "ac");
  wheel.advance(11, on_expire);
  EXPECT_EQ(fired, "acb");
}

MODEL_TEST(InsideOnExpire, ACallbackMayBringALaterTimerIntoTheSpanOfThisAdvance) {
  if (refuses(100'000)) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  wheel.schedule(b, 100'000);
  std::string fired;
  wheel.advance(20, [&](TimerNode& node) {
    fired += name_of(node);
    if (fired == "a") wheel.reschedule(b, 15);
  });
  EXPECT_EQ(fired, "ab");
}

MODEL_TEST(InsideOnExpire, ACallbackMayDestroyTheObjectWhoseTimerFired) {
  ModelUnderTest wheel;
  std::vector<std::unique_ptr<Timer>> timers;
  for (std::size_t i = 0; i < 100; ++i) {
    timers.push_back(std::make_unique<Timer>());
    wheel.schedule(*timers.back(), 10 + i / 50);
  }
  std::size_t next = 0;
  EXPECT_EQ(wheel.advance(20, [&](TimerNode&) { timers[next++].reset(); }), 100U);
}

MODEL_TEST(InsideOnExpire, ACallbackThatThrowsLosesNothingAndFiresNothingTwice) {
  if (refuses(70'000)) return;
  ModelUnderTest wheel;
  for (Timer* timer : {&a, &b, &c}) wheel.schedule(*timer, 10);
  wheel.schedule(d, 70'000);
  std::string fired;
  const auto on_expire = [&](TimerNode& node) {
    fired += name_of(node);
    if (fired.back() == 'b') throw std::runtime_error("b");
  };
  EXPECT_THROW(wheel.advance(100'000, on_expire), std::runtime_error);
  wheel.check_invariants();
  EXPECT_EQ(wheel.now(), 10U);
  EXPECT_EQ(wheel.size(), 2U);
  EXPECT_FALSE(b.armed());
  EXPECT_EQ(wheel.advance(100'000, on_expire), 2U);
  EXPECT_EQ(fired, "abcd");
}

MODEL_TEST(InsideOnExpire, ACallbackMayScheduleBeforeItThrows) {
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  EXPECT_THROW(wheel.advance(10,
                             [&](TimerNode& node) {
                               wheel.schedule(node, 12);
                               throw std::runtime_error("again");
                             }),
               std::runtime_error);
  EXPECT_EQ(fire(wheel, 12), "a");
}

}  // namespace
}  // namespace carillon::testing
