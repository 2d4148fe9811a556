// The answers that a user's calendar may give to schedule_by(), the errors after wrong answers, and
// what happens when a calendar throws.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

template <class NextTime>
constexpr bool kAccepted = requires(TimerService& timers, NextTime next_time) {
  timers.schedule_by(next_time, [] {});
};

// A time of another clock would be taken for a time of the wall clock: a local time would be an
// hour or two late, a steady time would be in 1970.
TEST(CalendarAnswers, AreOptionalTimesOfTheSystemClockOrDoNotCompile) {
  using std::chrono::local_seconds;
  using std::chrono::steady_clock;
  using std::chrono::sys_days;
  using std::chrono::sys_seconds;
  EXPECT_TRUE((kAccepted<std::optional<WallTime> (*)(WallTime)>));
  EXPECT_TRUE((kAccepted<std::optional<sys_seconds> (*)(WallTime)>));
  EXPECT_TRUE((kAccepted<const std::optional<sys_days>& (*)(WallTime)>));
  EXPECT_FALSE((kAccepted<std::optional<local_seconds> (*)(WallTime)>));
  EXPECT_FALSE((kAccepted<std::optional<steady_clock::time_point> (*)(WallTime)>));
  EXPECT_FALSE((kAccepted<WallTime (*)(WallTime)>));
  EXPECT_FALSE((kAccepted<std::optional<WallTime> (*)(steady_clock::time_point)>));
}

// Such a timer would run for ever without a pause.
TEST(CalendarAnswers, ATimeThatIsNotLaterIsRefused) {
  const auto clock = std::make_shared<ManualClock>();
  TimerService timers({.clock = clock});
  const auto stands_still = [](WallTime after) { return std::optional(after); };
  const auto goes_back = [](WallTime after) { return std::optional(after - 1h); };
  EXPECT_THROW(timers.schedule_by(stands_still, [] {}), std::logic_error);
  EXPECT_THROW(timers.schedule_by(goes_back, [] {}), std::logic_error);
  EXPECT_EQ(timers.stats().scheduled, 0U);
}

TEST(CalendarAnswers, ATimeThatIsNotLaterAfterARunIsReportedAndEndsTheTimer) {
  const auto clock = std::make_shared<ManualClock>(SteadyTime(500s), WallTime(1000s));
  std::string error;
  std::atomic<int> runs = 0;
  TimerService timers({.clock = clock, .on_error = [&](std::exception_ptr what) {
                         try {
                           std::rethrow_exception(what);
                         } catch (const std::exception& e) {
                           error = e.what();
                         }
                       }});
  TimerHandle handle;
  handle = timers.schedule_by([](WallTime) { return std::optional(WallTime(1060s)); },
                              [&] {
                                if (++runs == 3) handle.cancel();
                              });
  clock->advance(1min);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(error,
            "carillon: a calendar was asked for a time after 1060000000000 ns and answered "
            "1060000000000 ns, which is not later");
  EXPECT_EQ(handle.state(), TimerState::kOver);
  EXPECT_EQ(timers.pending(), 0U);
}

TEST(CalendarAnswers, AnExceptionOfTheFirstCallIsThrown) {
  TimerService timers({.clock = std::make_shared<ManualClock>()});
  const auto broken = [](WallTime) -> std::optional<WallTime> {
    throw std::runtime_error("no calendar");
  };
  EXPECT_THROW(timers.schedule_by(broken, [] {}), std::runtime_error);
  EXPECT_EQ(timers.stats().scheduled, 0U);
}

TEST(CalendarAnswers, AnExceptionOfALaterCallIsReportedAndEndsTheTimer) {
  const auto clock = std::make_shared<ManualClock>();
  std::string error;
  TimerService timers({.clock = clock, .on_error = [&](std::exception_ptr what) {
                         try {
                           std::rethrow_exception(what);
                         } catch (const std::exception& e) {
                           error = e.what();
                         }
                       }});
  int runs = 0;
  const TimerHandle handle = timers.schedule_by(
      [first = true](WallTime after) mutable {
        if (!std::exchange(first, false)) throw std::runtime_error("the calendar ends here");
        return std::optional<WallTime>(after + 1min);
      },
      [&] { ++runs; });
  clock->advance(1min - 1ns);
  EXPECT_EQ(runs, 0);
  clock->advance(5min);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(error, "the calendar ends here");
  EXPECT_EQ(handle.state(), TimerState::kOver);
  EXPECT_EQ(timers.pending(), 0U);
}

}  // namespace
}  // namespace carillon::testing
