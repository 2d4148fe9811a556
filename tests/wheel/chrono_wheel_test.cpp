// ChronoWheel: rounding, delays, and the ends of time.
#include "carillon/wheel/chrono_wheel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <vector>

#include "carillon/wheel/simple_wheel.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Time = std::chrono::steady_clock::time_point;

constexpr Time at(std::chrono::nanoseconds since_epoch) {
  return Time(since_epoch);
}
void ignore(TimerNode&) {}

TEST(AChronoWheel, FiresAtTheEndOfTheTickAndNeverEarly) {
  ChronoWheel<milliseconds> wheel(at(100ms));
  TimerNode timer;
  wheel.schedule_at(timer, at(110ms + 1ns));
  EXPECT_EQ(wheel.advance(at(111ms - 1ns), ignore), 0U);
  EXPECT_EQ(wheel.next_wakeup(), at(111ms));
  EXPECT_EQ(wheel.advance(at(111ms), ignore), 1U);
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
}

TEST(AChronoWheel, ATimeOnTheGridIsKept) {
  ChronoWheel<milliseconds> wheel(at(100ms));
  TimerNode timer;
  wheel.schedule_at(timer, at(110ms));
  EXPECT_EQ(wheel.advance(at(110ms - 1ns), ignore), 0U);
  EXPECT_EQ(wheel.advance(at(110ms), ignore), 1U);
}

TEST(AChronoWheel, ADelayCountsFromTheTimeToldLastAndIsNeverEarly) {
  ChronoWheel<milliseconds> wheel(at(100ms));
  TimerNode timer;
  wheel.advance(at(200ms + 999us), ignore);
  wheel.schedule_after(timer, 5ms);
  EXPECT_EQ(wheel.advance(at(205ms + 998us), ignore), 0U);
  EXPECT_EQ(wheel.advance(at(206ms), ignore), 1U);
}

TEST(AChronoWheel, InsideACallbackADelayCountsFromTheTimeOfTheAdvance) {
  ChronoWheel<milliseconds> wheel(at(0ms));
  TimerNode timer;
  wheel.schedule_after(timer, 10ms);
  wheel.advance(at(50ms), [&](TimerNode& node) { wheel.schedule_after(node, 10ms); });
  EXPECT_EQ(wheel.next_wakeup(), at(60ms));
}

TEST(AChronoWheel, MovesAndCancels) {
  ChronoWheel<std::chrono::seconds> wheel(at(0s));
  TimerNode timer;
  wheel.schedule_after(timer, 10s);
  wheel.reschedule_after(timer, 20s);
  EXPECT_EQ(wheel.advance(at(19s), ignore), 0U);
  wheel.reschedule_at(timer, at(25s));
  EXPECT_EQ(wheel.advance(at(24s), ignore), 0U);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_TRUE(wheel.cancel(timer));
  EXPECT_TRUE(wheel.empty());
}

TEST(AChronoWheel, SlackIsWholeTicks) {
  ChronoWheel<milliseconds> wheel(at(0ms));
  TimerNode relaxed, exact;
  wheel.schedule_at(relaxed, at(1000ms), 50ms);
  wheel.schedule_at(exact, at(1001ms), 999us);
  EXPECT_EQ(relaxed.expiry(), 1024U);
  EXPECT_EQ(exact.expiry(), 1001U);
  wheel.reschedule_at(relaxed, at(1001ms), 999us);
  wheel.reschedule_after(exact, 1000ms, 50ms);
  EXPECT_EQ(relaxed.expiry(), 1001U);
  EXPECT_EQ(exact.expiry(), 1024U);
}

TEST(AChronoWheel, RefusesToGoBack) {
  ChronoWheel<milliseconds> wheel(at(100ms + 5us));
  EXPECT_THROW(wheel.advance(at(100ms + 4us), ignore), std::invalid_argument);
  EXPECT_EQ(wheel.now(), at(100ms + 5us));
}

TEST(AChronoWheel, TheEndOfTimeDoesNotWrap) {
  ChronoWheel<milliseconds> wheel(at(1h));
  TimerNode last, longest;
  wheel.schedule_at(last, Time::max());
  wheel.schedule_after(longest, Time::duration::max());
  EXPECT_EQ(wheel.advance(at(1000h), ignore), 0U);
  while (wheel.next_wakeup() < Time::max())
    ASSERT_EQ(wheel.advance(*wheel.next_wakeup(), ignore), 0U);
  EXPECT_EQ(wheel.next_wakeup(), Time::max());
  EXPECT_EQ(wheel.size(), 2U);
  wheel.clear(ignore);
}

// Bug: the time in nanoseconds wrapped, and the timer fired at once.
TEST(AChronoWheel, ADurationOrTimeBeyondTheClocksRangeIsTheEndOfTime) {
  using std::chrono::hours;
  using Hours = std::chrono::time_point<std::chrono::steady_clock, hours>;
  ChronoWheel<milliseconds> wheel(at(1h));
  TimerNode timer;
  wheel.schedule_after(timer, milliseconds::max());
  EXPECT_EQ(wheel.advance(at(1000h), ignore), 0U);
  wheel.reschedule_after(timer, hours::max());
  EXPECT_EQ(wheel.advance(at(2000h), ignore), 0U);
  wheel.schedule_at(timer, Hours::max());
  EXPECT_EQ(wheel.advance(at(3000h), ignore), 0U);
  wheel.reschedule_at(timer, Hours::max());
  EXPECT_EQ(wheel.advance(at(4000h), ignore), 0U);
  wheel.schedule_after(timer, 1h, hours::max());
  EXPECT_EQ(wheel.advance(at(5000h), ignore), 0U) << "any time from an hour on";
  wheel.reschedule_after(timer, hours::min());
  EXPECT_EQ(wheel.advance(at(5001h), ignore), 1U) << "long ago";
  wheel.schedule_after(timer, std::chrono::duration<double>(1e300));
  EXPECT_EQ(wheel.advance(at(6000h), ignore), 0U);
  wheel.clear(ignore);
  EXPECT_EQ(wheel.advance(Hours::max(), ignore), 0U);
  EXPECT_EQ(wheel.now(), Time::max());
}

// Bug: now() had moved by the time the model refused.
TEST(AChronoWheel, ANestedAdvanceIsRefusedAndChangesNothing) {
  ChronoWheel<milliseconds> wheel(at(0ms));
  TimerNode first, second;
  wheel.schedule_after(first, 10ms);
  wheel.schedule_after(second, 20ms);
  const auto nested = [&](TimerNode&) {
    const Time now = wheel.now();
    EXPECT_THROW(wheel.advance(at(1h), ignore), std::logic_error);
    EXPECT_THROW(wheel.clear(ignore), std::logic_error);
    EXPECT_EQ(wheel.now(), now);
  };
  wheel.advance(at(10ms), nested);
  EXPECT_EQ(wheel.now(), at(10ms));
  wheel.clear(nested);
  EXPECT_EQ(wheel.now(), at(10ms));
  EXPECT_EQ(wheel.advance(at(30ms), ignore), 0U) << "it is as usable as before";
}

TEST(AChronoWheel, TimesBeforeTheEpochCountAsTheEpoch) {
  ChronoWheel<milliseconds> wheel(at(0ms));
  TimerNode timer;
  wheel.schedule_at(timer, at(-5ms));
  EXPECT_EQ(wheel.advance(at(0ms), ignore), 1U);
}

TEST(AChronoWheel, TakesOtherClocksAndModels) {
  using Wall = std::chrono::system_clock;
  const Wall::time_point start{1'700'000'000s};
  ChronoWheel<std::chrono::minutes, Wall, SimpleWheel<60>> wheel(start);
  TimerNode timer;
  EXPECT_THROW(wheel.schedule_at(timer, start + 61min), std::out_of_range);
  wheel.schedule_at(timer, start + 30min);
  EXPECT_EQ(wheel.advance(start + 30min, ignore), 0U) << "the epoch is 20 s off the minute";
  EXPECT_EQ(wheel.advance(start + 31min, ignore), 1U);
}

}  // namespace
}  // namespace carillon::testing
