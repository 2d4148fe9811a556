// TimerService::schedule_cron(): timers that follow a cron schedule on the wall clock.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "cron/occurrences.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class ScheduleCron : public ::testing::Test {
 protected:
  void set_clock(const std::string& time_in_utc) { clock_->set_wall(utc(time_in_utc)); }
  auto logging() {
    return [this] {
      ran_.push_back(
          show(std::chrono::floor<std::chrono::seconds>(clock_->wall_now()), "Europe/Berlin"));
    };
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(SteadyTime(500s));
  TimerService timers_{{.clock = clock_}};
  Times ran_;
};

TEST_F(ScheduleCron, EveryWorkingDayAtNine) {
  set_clock("2024-01-05 00:00:00");  // a Friday
  timers_.schedule_cron("0 9 * * MON-FRI", "Europe/Berlin", logging());
  clock_->advance(24h * 4);
  EXPECT_EQ(ran_, (Times{"2024-01-05 09:00:00 CET", "2024-01-08 09:00:00 CET"}));
}

TEST_F(ScheduleCron, ThroughBothClockChanges) {
  set_clock("2024-03-29 12:00:00");
  TimerHandle handle = timers_.schedule_cron("30 2 * * *", "Europe/Berlin", logging());
  clock_->advance(24h * 3);
  EXPECT_EQ(ran_, (Times{"2024-03-30 02:30:00 CET", "2024-03-31 03:00:00 CEST",
                         "2024-04-01 02:30:00 CEST"}));
  EXPECT_TRUE(handle.cancel());
  ran_.clear();

  set_clock("2024-10-26 12:00:00");
  timers_.schedule_cron("30 2 * * *", "Europe/Berlin", logging());
  timers_.schedule_cron("15 2 * * *", "America/New_York", logging());
  clock_->advance(24h * 2);
  EXPECT_EQ(ran_, (Times{"2024-10-27 02:30:00 CEST", "2024-10-27 07:15:00 CET",
                         "2024-10-28 02:30:00 CET", "2024-10-28 07:15:00 CET"}));
}

TEST_F(ScheduleCron, EverySecond) {
  set_clock("2024-01-01 00:00:00");
  int runs = 0;
  timers_.schedule_cron("* * * * * *", "UTC", [&] { ++runs; });
  clock_->advance(1h);
  EXPECT_EQ(runs, 3600);
}

TEST_F(ScheduleCron, OneScheduleForManyTimers) {
  set_clock("2024-01-01 00:00:00");
  const CronSchedule schedule("@hourly", "Europe/Berlin");
  int runs = 0;
  for (int i = 0; i < 100; ++i) timers_.schedule_cron(schedule, [&runs] { ++runs; });
  clock_->advance(2h);
  EXPECT_EQ(runs, 200);
}

TEST_F(ScheduleCron, TimesMissedWhileTheMachineWasSuspendedMakeOneRun) {
  set_clock("2024-01-01 00:00:00");
  timers_.schedule_cron("0 * * * *", "Europe/Berlin", logging());
  clock_->settle();
  // As after a suspend: the wall clock went on, the steady clock did not.
  set_clock("2024-01-01 05:20:00");
  clock_->advance(1h);
  EXPECT_EQ(ran_, (Times{"2024-01-01 06:20:00 CET", "2024-01-01 07:00:00 CET"}));
}

TEST_F(ScheduleCron, TimesMissedWithMissedBurstHaveARunEach) {
  set_clock("2024-01-01 00:00:00");
  timers_.schedule_cron("0 * * * *", "Europe/Berlin", logging(), MissedRuns::kBurst);
  clock_->settle();
  set_clock("2024-01-01 02:20:00");
  EXPECT_EQ(ran_, (Times{"2024-01-01 03:20:00 CET", "2024-01-01 03:20:00 CET"}));
}

TEST_F(ScheduleCron, NoTimeComesTwiceWhenTheClockIsSetBackBySeconds) {
  set_clock("2024-01-01 07:59:00");
  timers_.schedule_cron("0 9 * * *", "Europe/Berlin", logging());
  clock_->advance(1min);
  EXPECT_EQ(ran_.size(), 1U);
  set_clock("2024-01-01 07:59:55");
  clock_->advance(24h);
  EXPECT_EQ(ran_, (Times{"2024-01-01 09:00:00 CET"}));
  clock_->advance(5s);
  EXPECT_EQ(ran_, (Times{"2024-01-01 09:00:00 CET", "2024-01-02 09:00:00 CET"}));
}

TEST_F(ScheduleCron, GoesOnFromTheRightTimeAfterAClockThatWasYearsAhead) {
  set_clock("2035-01-01 00:00:00");
  timers_.schedule_cron("0 9 * * *", "Europe/Berlin", logging());
  clock_->settle();
  set_clock("2024-01-01 00:00:00");
  clock_->advance(24h);
  EXPECT_EQ(ran_, (Times{"2024-01-01 09:00:00 CET"}));
}

TEST_F(ScheduleCron, AWrongExpressionOrZoneSchedulesNothing) {
  EXPECT_THROW(timers_.schedule_cron("0 25 * * *", "Europe/Berlin", [] {}), CronError);
  EXPECT_THROW(timers_.schedule_cron("0 9 * * *", "Europe/Berln", [] {}), std::invalid_argument);
  EXPECT_EQ(timers_.stats().scheduled, 0U);
}

TEST_F(ScheduleCron, ATimeBeyondTheRangeOfNanosecondsNeverComes) {
  clock_->set_wall(WallTime(std::chrono::nanoseconds::max() - 24h * 300));  // in 2261
  const TimerHandle handle = timers_.schedule_cron("0 0 29 2 *", "UTC", [] {});
  EXPECT_FALSE(handle);
}

TEST_F(ScheduleCron, StopReturnsTheTimer) {
  set_clock("2024-01-01 00:00:00");
  const TimerHandle handle = timers_.schedule_cron("0 9 * * *", "Europe/Berlin", logging());
  std::vector<Unprocessed> rest = timers_.stop();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].handle, handle);
  EXPECT_TRUE(rest[0].by_calendar);
  EXPECT_EQ(rest[0].due, utc("2024-01-01 08:00:00").time_since_epoch());
}

}  // namespace
}  // namespace carillon::testing
