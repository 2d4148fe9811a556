// Cron schedules when the clocks of their zone go forward or back.
#include <gtest/gtest.h>

#include "cron/occurrences.h"

namespace carillon::testing {
namespace {

// --- Europe/Berlin: on 2024-03-31 2:00 CET is 3:00 CEST; on 2024-10-27 3:00 CEST is 2:00 CET.

TEST(ClockChange, ATimeThatIsLeftOutRunsOnceAtTheChange) {
  EXPECT_EQ(occurrences("30 2 * * *", "Europe/Berlin", "2024-03-29 12:00:00", 4),
            (Times{"2024-03-30 02:30:00 CET", "2024-03-31 03:00:00 CEST",
                   "2024-04-01 02:30:00 CEST", "2024-04-02 02:30:00 CEST"}));
}

TEST(ClockChange, TimesThatAreLeftOutMakeOneRunTogether) {
  EXPECT_EQ(occurrences("0,20,40 2 * * *", "Europe/Berlin", "2024-03-30 12:00:00", 2),
            (Times{"2024-03-31 03:00:00 CEST", "2024-04-01 02:00:00 CEST"}));
}

TEST(ClockChange, ATimeAtTheChangeRunsOnce) {
  EXPECT_EQ(occurrences("0 2,3 * * *", "Europe/Berlin", "2024-03-30 12:00:00", 2),
            (Times{"2024-03-31 03:00:00 CEST", "2024-04-01 02:00:00 CEST"}));
  EXPECT_EQ(occurrences("5 2,3 * * *", "Europe/Berlin", "2024-03-30 12:00:00", 2),
            (Times{"2024-03-31 03:00:00 CEST", "2024-03-31 03:05:00 CEST"}));
}

TEST(ClockChange, ATimeThatComesTwiceRunsTheFirstTime) {
  EXPECT_EQ(occurrences("30 2 * * *", "Europe/Berlin", "2024-10-26 12:00:00", 2),
            (Times{"2024-10-27 02:30:00 CEST", "2024-10-28 02:30:00 CET"}));
  EXPECT_EQ(occurrences("0 3 * * *", "Europe/Berlin", "2024-10-26 12:00:00", 2),
            (Times{"2024-10-27 03:00:00 CET", "2024-10-28 03:00:00 CET"}))
      << "3:00 comes once: what would be 3:00 CEST is 2:00 CET";
}

TEST(ClockChange, AskedBetweenTheTwoTimesTheSecondDoesNotCount) {
  EXPECT_EQ(occurrences("30 2 * * *", "Europe/Berlin", "2024-10-27 01:10:00", 1),
            (Times{"2024-10-28 02:30:00 CET"}))
      << "from 2:10 CET";
}

TEST(ClockChange, EveryHourGoesByElapsedTime) {
  EXPECT_EQ(occurrences("*/30 * * * *", "Europe/Berlin", "2024-03-31 00:15:00", 4),
            (Times{"2024-03-31 01:30:00 CET", "2024-03-31 03:00:00 CEST",
                   "2024-03-31 03:30:00 CEST", "2024-03-31 04:00:00 CEST"}));
  EXPECT_EQ(
      occurrences("*/30 * * * *", "Europe/Berlin", "2024-10-26 23:45:00", 6),
      (Times{"2024-10-27 02:00:00 CEST", "2024-10-27 02:30:00 CEST", "2024-10-27 02:00:00 CET",
             "2024-10-27 02:30:00 CET", "2024-10-27 03:00:00 CET", "2024-10-27 03:30:00 CET"}));
  EXPECT_EQ(
      occurrences("@hourly", "Europe/Berlin", "2024-10-26 23:30:00", 3),
      (Times{"2024-10-27 02:00:00 CEST", "2024-10-27 02:00:00 CET", "2024-10-27 03:00:00 CET"}));
  EXPECT_EQ(occurrences("30 0-23 * * *", "Europe/Berlin", "2024-10-27 00:00:00", 2),
            (Times{"2024-10-27 02:30:00 CEST", "2024-10-27 02:30:00 CET"}))
      << "0-23 is the same as *";
}

TEST(ClockChange, AnyMinuteOfAnHourThatIsNamedIsATimeOfDay) {
  EXPECT_EQ(occurrences("*/30 2 * * *", "Europe/Berlin", "2024-03-30 12:00:00", 2),
            (Times{"2024-03-31 03:00:00 CEST", "2024-04-01 02:00:00 CEST"}));
  EXPECT_EQ(
      occurrences("*/30 1-3 * * *", "Europe/Berlin", "2024-10-26 23:45:00", 5),
      (Times{"2024-10-27 02:00:00 CEST", "2024-10-27 02:30:00 CEST", "2024-10-27 03:00:00 CET",
             "2024-10-27 03:30:00 CET", "2024-10-28 01:00:00 CET"}));
}

TEST(ClockChange, EveryOtherHourIsTwelveTimesOfDay) {
  EXPECT_EQ(
      occurrences("0 */2 * * *", "Europe/Berlin", "2024-10-26 21:30:00", 3),
      (Times{"2024-10-27 00:00:00 CEST", "2024-10-27 02:00:00 CEST", "2024-10-27 04:00:00 CET"}));
}

TEST(ClockChange, EverySecondOfAMinuteThatIsLeftOutMakesOneRun) {
  EXPECT_EQ(occurrences("* 30 2 * * *", "Europe/Berlin", "2024-03-30 12:00:00", 2),
            (Times{"2024-03-31 03:00:00 CEST", "2024-04-01 02:30:00 CEST"}));
}

// --- elsewhere

TEST(ClockChange, LordHoweChangesByHalfAnHour) {
  EXPECT_EQ(occurrences("15 2 * * *", "Australia/Lord_Howe", "2024-10-05 12:00:00", 2),
            (Times{"2024-10-06 02:30:00 +11", "2024-10-07 02:15:00 +11"}))
      << "2:00 is 2:30";
  EXPECT_EQ(occurrences("45 1 * * *", "Australia/Lord_Howe", "2024-04-06 12:00:00", 2),
            (Times{"2024-04-07 01:45:00 +11", "2024-04-08 01:45:00 +1030"}))
      << "2:00 is 1:30";
}

TEST(ClockChange, ApiaLeftOutADay) {
  // There was no 2011-12-30, a Friday.
  EXPECT_EQ(
      occurrences("0 9 * * *", "Pacific/Apia", "2011-12-29 12:00:00", 3),
      (Times{"2011-12-29 09:00:00 -10", "2011-12-31 00:00:00 +14", "2011-12-31 09:00:00 +14"}));
  EXPECT_EQ(occurrences("0 9 * * FRI", "Pacific/Apia", "2011-12-28 12:00:00", 2),
            (Times{"2011-12-31 00:00:00 +14", "2012-01-06 09:00:00 +14"}));
  EXPECT_EQ(occurrences("0 * * * *", "Pacific/Apia", "2011-12-30 09:30:00", 2),
            (Times{"2011-12-31 00:00:00 +14", "2011-12-31 01:00:00 +14"}));
}

TEST(ClockChange, HavanaLeavesOutMidnight) {
  EXPECT_EQ(occurrences("@daily", "America/Havana", "2024-03-09 12:00:00", 2),
            (Times{"2024-03-10 01:00:00 CDT", "2024-03-11 00:00:00 CDT"}));
}

TEST(ClockChange, TrollChangesByTwoHours) {
  EXPECT_EQ(occurrences("30 1,2 * * *", "Antarctica/Troll", "2024-03-30 12:00:00", 2),
            (Times{"2024-03-31 03:00:00 +02", "2024-04-01 01:30:00 +02"}));
}

TEST(ClockChange, AZoneWithoutClockChanges) {
  EXPECT_EQ(occurrences("30 2 * * *", "Asia/Kolkata", "2024-03-30 12:00:00", 2),
            (Times{"2024-03-31 02:30:00 IST", "2024-04-01 02:30:00 IST"}));
}

TEST(ClockChange, TellsWhichTimesStandForOthers) {
  using At = CronSchedule::AtChange;
  const CronSchedule daily("30 2 * * *", "Europe/Berlin");
  EXPECT_EQ(daily.at_change(utc("2024-03-30 01:30:00")), At::kNone);
  EXPECT_EQ(daily.at_change(utc("2024-03-31 01:00:00")), At::kAfterGap);
  EXPECT_EQ(daily.at_change(utc("2024-10-27 00:30:00")), At::kShownTwice);
  EXPECT_EQ(daily.at_change(utc("2024-10-28 01:30:00")), At::kNone);
  const CronSchedule at_three("0 2,3 * * *", "Europe/Berlin");
  EXPECT_EQ(at_three.at_change(utc("2024-03-31 01:00:00")), At::kNone) << "3:00 is a time, too";
  EXPECT_EQ(at_three.at_change(utc("2024-10-27 00:00:00")), At::kShownTwice) << "2:00 CEST";
  EXPECT_EQ(at_three.at_change(utc("2024-10-27 02:00:00")), At::kNone) << "3:00 CET";
  const CronSchedule hourly("0 * * * *", "Europe/Berlin");
  EXPECT_EQ(hourly.at_change(utc("2024-10-27 00:00:00")), At::kNone) << "it runs both times";
  EXPECT_EQ(hourly.ahead_of_utc(utc("2024-10-27 00:59:59")), std::chrono::hours(2));
  EXPECT_EQ(hourly.ahead_of_utc(utc("2024-10-27 01:00:00")), std::chrono::hours(1));
}

TEST(ClockChange, GoesOnAfterTheYearsThatTheTzDatabaseLists) {
  // 2050-03-27 and 2050-10-30 are the last Sundays of their months.
  const CronSchedule schedule("30 2 * * *", "Europe/Berlin");
  EXPECT_EQ(schedule.next(utc("2050-03-26 12:00:00")), utc("2050-03-27 01:00:00"));
  EXPECT_EQ(schedule.next(utc("2050-07-01 12:00:00")), utc("2050-07-02 00:30:00"));
  EXPECT_EQ(schedule.next(utc("2050-10-29 12:00:00")), utc("2050-10-30 00:30:00"));
  EXPECT_EQ(schedule.next(utc("2050-10-30 00:30:00")), utc("2050-10-31 01:30:00"));
}

}  // namespace
}  // namespace carillon::testing
