// What a callback may do to the set that calls it (contract 8 of timer_set.h), one literal test each, over every model.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/models.h"

namespace carillon::testing {
namespace {

template <class Model>
class InsideOnExpire : public FourTimers<Model> {};
TYPED_TEST_SUITE(InsideOnExpire, Models, ModelNames);

TYPED_TEST(InsideOnExpire, ANestedAdvanceIsAnErrorThatSaysSoAndChangesNothing) {
  TypeParam wheel;
  wheel.schedule(this->a, 5);
  wheel.schedule(this->b, 5);
  wheel.schedule(this->c, 500);
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
  EXPECT_EQ(this->fire(wheel, 500), "c");
}

TYPED_TEST(InsideOnExpire, AnAdvanceInsideClearIsAnErrorToo) {
  TypeParam wheel;
  wheel.schedule(this->a, 500);
  wheel.clear([&](TimerNode&) { EXPECT_THROW(wheel.advance(1, [](TimerNode&) {}), std::logic_error); });
  EXPECT_EQ(wheel.now(), 0U);
  wheel.schedule(this->a, 5);
  EXPECT_EQ(this->fire(wheel, 5), "a");
}

TYPED_TEST(InsideOnExpire, ACallbackThatCancelsAndSchedulesAllTheTimeKeepsNoMemoryAndLosesNoSibling) {
  TypeParam wheel;
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

TYPED_TEST(InsideOnExpire, ACallbackMayScheduleItsOwnTimerAgain) {
  TypeParam wheel;
  wheel.schedule(this->a, 10);
  std::vector<Tick> seen;
  wheel.advance(1000, [&](TimerNode& node) {
    EXPECT_FALSE(node.armed());
    seen.push_back(wheel.now());
    if (seen.size() < 4) wheel.schedule(node, wheel.now() + 10);
  });
  EXPECT_EQ(seen, (std::vector<Tick>{10, 20, 30, 40}));
}

TYPED_TEST(InsideOnExpire, CancellingTheTimerThatFiresSaysThatItIsTooLate) {
  TypeParam wheel;
  wheel.schedule(this->a, 10);
  wheel.advance(10, [&](TimerNode& node) { EXPECT_FALSE(wheel.cancel(node)); });
  EXPECT_TRUE(wheel.empty());
}

TYPED_TEST(InsideOnExpire, ACallbackMayCancelASiblingOfTheSameTick) {
  TypeParam wheel;
  for (Timer* timer : {&this->a, &this->b, &this->c}) wheel.schedule(*timer, 10);
  std::string fired;
  wheel.advance(10, [&](TimerNode& node) {
    fired += name_of(node);
    if (fired == "a") wheel.cancel(this->b);
  });
  EXPECT_EQ(fired, "ac");
}

TYPED_TEST(InsideOnExpire, ACallbackMayPutOffASiblingOfTheSameTick) {
  TypeParam wheel;
  for (Timer* timer : {&this->a, &this->b, &this->c}) wheel.schedule(*timer, 10);
  std::string fired;
  const auto on_expire = [&](TimerNode& node) {
    fired += name_of(node);
    if (fired == "a") wheel.reschedule(this->b, 11);
  };
  wheel.advance(10, on_expire);
  EXPECT_EQ(fired, "ac");
  wheel.advance(11, on_expire);
  EXPECT_EQ(fired, "acb");
}

TYPED_TEST(InsideOnExpire, ACallbackMayBringALaterTimerIntoTheSpanOfThisAdvance) {
  if (this->refuses(100'000)) return;
  TypeParam wheel;
  wheel.schedule(this->a, 10);
  wheel.schedule(this->b, 100'000);
  std::string fired;
  wheel.advance(20, [&](TimerNode& node) {
    fired += name_of(node);
    if (fired == "a") wheel.reschedule(this->b, 15);
  });
  EXPECT_EQ(fired, "ab");
}

TYPED_TEST(InsideOnExpire, ACallbackMayDestroyTheObjectWhoseTimerFired) {
  TypeParam wheel;
  std::vector<std::unique_ptr<Timer>> timers;
  for (std::size_t i = 0; i < 100; ++i) {
    timers.push_back(std::make_unique<Timer>());
    wheel.schedule(*timers.back(), 10 + i / 50);
  }
  std::size_t next = 0;
  EXPECT_EQ(wheel.advance(20, [&](TimerNode&) { timers[next++].reset(); }), 100U);
}

TYPED_TEST(InsideOnExpire, ACallbackThatThrowsLosesNothingAndFiresNothingTwice) {
  if (this->refuses(70'000)) return;
  TypeParam wheel;
  for (Timer* timer : {&this->a, &this->b, &this->c}) wheel.schedule(*timer, 10);
  wheel.schedule(this->d, 70'000);
  std::string fired;
  const auto on_expire = [&](TimerNode& node) {
    fired += name_of(node);
    if (fired.back() == 'b') throw std::runtime_error("b");
  };
  EXPECT_THROW(wheel.advance(100'000, on_expire), std::runtime_error);
  wheel.check_invariants();
  EXPECT_EQ(wheel.now(), 10U);
  EXPECT_EQ(wheel.size(), 2U);
  EXPECT_FALSE(this->b.armed());
  EXPECT_EQ(wheel.advance(100'000, on_expire), 2U);
  EXPECT_EQ(fired, "abcd");
}

TYPED_TEST(InsideOnExpire, ACallbackMayScheduleBeforeItThrows) {
  TypeParam wheel;
  wheel.schedule(this->a, 10);
  EXPECT_THROW(wheel.advance(10,
                             [&](TimerNode& node) {
                               wheel.schedule(node, 12);
                               throw std::runtime_error("again");
                             }),
               std::runtime_error);
  EXPECT_EQ(this->fire(wheel, 12), "a");
}

}  // namespace
}  // namespace carillon::testing
