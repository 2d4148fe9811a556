// A schedule ends the process when it is asked beyond the years that it knows, and says how.
#include <gtest/gtest.h>

#include <chrono>

#include "carillon/timer/cron_schedule.h"

namespace carillon::testing {
namespace {

using std::chrono::sys_days;
using std::chrono::year;

TEST(CronPreconditionsDeathTest, AZoneIsAskedAboutTheYears1To9999) {
  const CronSchedule daily("@daily", "Europe/Berlin");
  EXPECT_DEATH(static_cast<void>(daily.ahead_of_utc(sys_days(year(10'001) / 1 / 1))),
               "at\\(\\) requires: .*; time = 253433923200 s, name_ = \"Europe/Berlin\"");
}

}  // namespace
}  // namespace carillon::testing
