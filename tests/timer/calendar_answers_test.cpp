// What a calendar of the user's may answer to schedule_by(), and what becomes of an answer that
// makes no sense.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

template <class NextTime>
constexpr bool kAccepted = requires(TimerService& timers, NextTime next_time) {
  timers.schedule_by(next_time, [] {});
};

// A time of another clock would be taken for one of the wall clock: local time an hour or two late,
// a steady one in 1970.
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

// It would run for ever without a pause.
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
            "1060000000000 ns, which is not "
            "later");
  EXPECT_EQ(handle.state(), TimerState::kOver);
  EXPECT_EQ(timers.pending(), 0U);
}

}  // namespace
}  // namespace carillon::testing
