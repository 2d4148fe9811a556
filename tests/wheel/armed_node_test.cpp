// What used to corrupt a set: timers that are scheduled while they are armed, and timers that are
// destroyed while they are armed. Literal tests over every model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/wheel/timer_set.h"
#include "wheel/four_timers.h"
#include "wheel/model_test.h"

namespace carillon::testing {
namespace {

class ArmedNode : public FourTimers {};

// --- scheduled again

MODEL_TEST(ArmedNode, ScheduleMovesATimerThatIsArmedToALaterTick) {
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  wheel.schedule(a, 500);
  EXPECT_EQ(wheel.size(), 1U);
  wheel.check_invariants();
  EXPECT_EQ(fire(wheel, 499), "");
  EXPECT_EQ(fire(wheel, 500), "a");
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
}

MODEL_TEST(ArmedNode, ScheduleMovesATimerThatIsArmedToAnEarlierTick) {
  ModelUnderTest wheel;
  wheel.schedule(a, 500);
  wheel.schedule(b, 500);
  wheel.schedule(a, 10);
  EXPECT_EQ(wheel.size(), 2U);
  wheel.check_invariants();
  EXPECT_EQ(fire(wheel, 10), "a");
  EXPECT_EQ(fire(wheel, 1000), "b");
}

MODEL_TEST(ArmedNode, ScheduleMovesATimerThatIsDueAlready) {
  ModelUnderTest wheel(50);
  wheel.schedule(a, 10);
  wheel.schedule(a, 60);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, 59), "");
  EXPECT_EQ(fire(wheel, 60), "a");
}

MODEL_TEST(ArmedNode, ScheduleWithSlackMovesATimerThatIsArmed) {
  ModelUnderTest wheel;
  wheel.schedule(a, 500);
  wheel.schedule(a, 1000, 50);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, 999), "");
  EXPECT_EQ(fire(wheel, 1050), "a");
}

MODEL_TEST(ArmedNode, AMoveBeyondTheRangeIsRefusedAndLeavesTheTimer) {
  if (ModelUnderTest::longest_delay() == kEndOfTime) return;
  ModelUnderTest wheel;
  wheel.schedule(a, 10);
  EXPECT_THROW(wheel.schedule(a, ModelUnderTest::longest_delay() + 1), std::out_of_range);
  EXPECT_EQ(a.expiry(), 10U);
  EXPECT_EQ(fire(wheel, 10), "a");
}

// --- destroyed

MODEL_TEST(ArmedNode, ATimerThatIsDestroyedIsCancelled) {
  ModelUnderTest wheel(50);
  {
    Timer lone, first, second, due;
    wheel.schedule(lone, 60);
    wheel.schedule(first, 4000);
    wheel.schedule(second, 4000);
    wheel.schedule(due, 20);
    EXPECT_EQ(wheel.size(), 4U);
  }
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.check_invariants();
  EXPECT_EQ(fire(wheel, 8000), "");
}

MODEL_TEST(ArmedNode, TheOtherTimersOfItsTickFire) {
  ModelUnderTest wheel;
  wheel.schedule(a, 4000);
  {
    Timer gone;
    wheel.schedule(gone, 4000);
    wheel.schedule(b, 4000);
  }
  wheel.schedule(c, 4000);
  EXPECT_EQ(wheel.size(), 3U);
  EXPECT_EQ(fire(wheel, 4000), "abc");
}

MODEL_TEST(ArmedNode, AnEarlierTimerThatIsDestroyedDoesNotMakeALaterOneEarly) {
  ModelUnderTest wheel;
  wheel.schedule(b, 200);
  {
    Timer gone;
    wheel.schedule(gone, 100);
  }
  EXPECT_EQ(fire(wheel, 100), "");
  EXPECT_EQ(fire(wheel, 199), "");
  EXPECT_EQ(fire(wheel, 200), "b");
}

MODEL_TEST(ArmedNode, ATimerThatALimitHasLeftIsCancelledWhenItIsDestroyed) {
  ModelUnderTest wheel;
  wheel.schedule(a, 100);
  {
    Timer gone;
    wheel.schedule(gone, 100);
    wheel.schedule(b, 100);
    while (wheel.now() < 100)
      wheel.advance(
          100, [](TimerNode&) {}, 0);
  }
  EXPECT_EQ(wheel.size(), 2U);
  EXPECT_EQ(fire(wheel, 100), "ab");
}

MODEL_TEST(ArmedNode, ACallbackMayDestroyOtherTimers) {
  ModelUnderTest wheel;
  auto gone = std::make_unique<Timer>('x');
  wheel.schedule(a, 100);
  wheel.schedule(*gone, 100);
  wheel.schedule(b, 101);
  std::string fired;
  wheel.advance(200, [&](TimerNode& node) {
    fired += name_of(node);
    gone.reset();
    wheel.check_invariants();
  });
  EXPECT_EQ(fired, "ab");
  EXPECT_TRUE(wheel.empty());
}

MODEL_TEST(ArmedNode, ASinkOfClearMayDestroyOtherTimers) {
  ModelUnderTest wheel;
  auto gone = std::make_unique<Timer>('x');
  auto also_gone = std::make_unique<Timer>('y');
  wheel.schedule(*gone, 100);
  wheel.schedule(*also_gone, 100);
  wheel.schedule(a, 100);
  std::size_t cleared = 0;
  wheel.clear([&](TimerNode& node) {
    ++cleared;
    if (&node != gone.get()) gone.reset();
    if (&node != also_gone.get()) also_gone.reset();
  });
  EXPECT_LE(cleared, 3U);
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.check_invariants();
}

// Timers of many ticks, in slots of many chunks, of which half die in random order. The set moves
// on meanwhile, so that the others cascade, are swept together and fire.
MODEL_TEST(ArmedNode, ManyThatAreDestroyedLeaveTheOthersAsTheyWere) {
  const std::size_t count = std::min<std::size_t>(20'000, ModelUnderTest::kind().many);
  const Tick longest = ModelUnderTest::within(60'000);
  ModelUnderTest wheel;
  std::mt19937_64 random(7);
  std::vector<std::unique_ptr<TimerNode>> mortal(count);
  std::vector<TimerNode> others(count);
  for (std::size_t i = 0; i < count; ++i) {
    mortal[i] = std::make_unique<TimerNode>();
    wheel.schedule(*mortal[i], 1 + random() % longest);
    wheel.schedule(others[i], 1 + random() % longest);
  }
  std::shuffle(mortal.begin(), mortal.end(), random);
  std::size_t fired = 0, dead = 0;
  for (Tick step = 1; step <= 10; ++step) {
    for (std::size_t i = 0; i < count / 10; ++i) {
      if (mortal.back()->armed()) ++dead;
      mortal.pop_back();
    }
    wheel.check_invariants();
    wheel.advance(longest * step / 10, [&](TimerNode& node) {
      ++fired;
      ASSERT_EQ(node.expiry(), wheel.now());
    });
    wheel.check_invariants();
  }
  EXPECT_EQ(fired + dead, 2 * count);
  EXPECT_GT(dead, count / 4);
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
}

}  // namespace
}  // namespace carillon::testing
