// The syntax of cron expressions, and the errors for wrong ones.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "cron/occurrences.h"

namespace carillon::testing {
namespace {

// The first occurrences after 2024-01-01 00:00:00 UTC, a Monday, in a leap year.
Times in_2024(std::string_view expression, std::size_t count) {
  Times times = occurrences(expression, "UTC", "2024-01-01 00:00:00", count);
  for (std::string& time : times) time.resize(time.size() - std::string(" UTC").size());
  return times;
}

// The same without the year and the time of day, as "01-31".
Times days_in_2024(std::string_view expression, std::size_t count) {
  Times times = in_2024(expression, count);
  for (std::string& time : times) time = time.substr(5, 5);
  return times;
}

TEST(CronExpression, FiveFieldsAreMinutesAndSixAreSeconds) {
  EXPECT_EQ(in_2024("30 9 * * *", 2), (Times{"2024-01-01 09:30:00", "2024-01-02 09:30:00"}));
  EXPECT_EQ(in_2024("15 30 9 * * *", 2), (Times{"2024-01-01 09:30:15", "2024-01-02 09:30:15"}));
  EXPECT_EQ(in_2024("*/20 * * * * *", 4), (Times{"2024-01-01 00:00:20", "2024-01-01 00:00:40",
                                                 "2024-01-01 00:01:00", "2024-01-01 00:01:20"}));
}

TEST(CronExpression, NextIsLaterThanTheTimeGiven) {
  const CronSchedule schedule("0 9 * * *", "UTC");
  using namespace std::chrono_literals;
  EXPECT_EQ(schedule.next(utc("2024-01-01 09:00:00") - 1ns), utc("2024-01-01 09:00:00"));
  EXPECT_EQ(schedule.next(utc("2024-01-01 09:00:00")), utc("2024-01-02 09:00:00"));
  EXPECT_EQ(schedule.next(utc("2024-01-01 09:00:00") + 1ns), utc("2024-01-02 09:00:00"));
}

// Bug: the seconds wrapped for a time beyond their range.
TEST(CronExpression, NextOfATimeBeyondTheYear9999IsNothing) {
  const CronSchedule schedule("0 9 * * *", "UTC");
  EXPECT_EQ(schedule.next(std::chrono::sys_time<std::chrono::years>::max()), std::nullopt);
  EXPECT_EQ(schedule.next(std::chrono::sys_seconds::max()), std::nullopt);
  using Seconds = std::chrono::sys_time<std::chrono::duration<double>>;
  EXPECT_EQ(schedule.next(Seconds(std::chrono::duration<double>(1e300))), std::nullopt);
  EXPECT_EQ(schedule.next(Seconds(std::chrono::duration<double>(32'399.5))),
            utc("1970-01-01 09:00:00"));
  EXPECT_TRUE(schedule.next(std::chrono::sys_time<std::chrono::days>::min()).has_value());
}

TEST(CronExpression, ListsRangesAndSteps) {
  EXPECT_EQ(in_2024("0 8,12,20 * * *", 4), (Times{"2024-01-01 08:00:00", "2024-01-01 12:00:00",
                                                  "2024-01-01 20:00:00", "2024-01-02 08:00:00"}));
  EXPECT_EQ(in_2024("0 22-23,1 * * *", 3),
            (Times{"2024-01-01 01:00:00", "2024-01-01 22:00:00", "2024-01-01 23:00:00"}));
  EXPECT_EQ(in_2024("10-40/15 0 * * *", 4), (Times{"2024-01-01 00:10:00", "2024-01-01 00:25:00",
                                                   "2024-01-01 00:40:00", "2024-01-02 00:10:00"}));
  EXPECT_EQ(in_2024("50/5 0 * * *", 3),
            (Times{"2024-01-01 00:50:00", "2024-01-01 00:55:00", "2024-01-02 00:50:00"}));
  EXPECT_EQ(days_in_2024("0 9 */10 * *", 5), (Times{"01-01", "01-11", "01-21", "01-31", "02-01"}));
}

TEST(CronExpression, ARangeMayWrapAround) {
  EXPECT_EQ(days_in_2024("0 9 * * FRI-MON", 5),
            (Times{"01-01", "01-05", "01-06", "01-07", "01-08"}));
  EXPECT_EQ(days_in_2024("0 9 1 NOV-FEB *", 5),
            (Times{"01-01", "02-01", "11-01", "12-01", "01-01"}));
  EXPECT_EQ(days_in_2024("0 9 30-2 * *", 6),
            (Times{"01-01", "01-02", "01-30", "01-31", "02-01", "02-02"}));
  EXPECT_EQ(in_2024("0 22-3/2 * * *", 4), (Times{"2024-01-01 02:00:00", "2024-01-01 22:00:00",
                                                 "2024-01-02 00:00:00", "2024-01-02 02:00:00"}));
}

TEST(CronExpression, NamesInAnyCase) {
  EXPECT_EQ(days_in_2024("0 9 * * Mon,wed,FRI", 3), (Times{"01-01", "01-03", "01-05"}));
  EXPECT_EQ(days_in_2024("0 9 1 mar-May *", 3), (Times{"03-01", "04-01", "05-01"}));
}

TEST(CronExpression, SundayIsZeroAndSeven) {
  const Times sundays{"01-07", "01-14"};
  EXPECT_EQ(days_in_2024("0 9 * * 0", 2), sundays);
  EXPECT_EQ(days_in_2024("0 9 * * 7", 2), sundays);
  EXPECT_EQ(days_in_2024("0 9 * * SUN", 2), sundays);
  EXPECT_EQ(days_in_2024("0 9 * * 7-7", 2), sundays);
  EXPECT_EQ(days_in_2024("0 9 * * 5-7", 4), (Times{"01-05", "01-06", "01-07", "01-12"}));
  EXPECT_EQ(days_in_2024("0 9 * * 7-1", 3), (Times{"01-01", "01-07", "01-08"}));
  EXPECT_EQ(days_in_2024("0 9 * * SAT-SUN", 3), (Times{"01-06", "01-07", "01-13"}));
  EXPECT_EQ(days_in_2024("0 9 * * 0-7", 3), (Times{"01-01", "01-02", "01-03"}));
  EXPECT_EQ(days_in_2024("0 9 * * */2", 4), (Times{"01-02", "01-04", "01-06", "01-07"}))
      << "0, 2, 4 and 6";
}

TEST(CronExpression, ADayMatchesIfEitherDayFieldDoesWhenBothAreRestricted) {
  EXPECT_EQ(days_in_2024("0 9 13 * FRI", 5), (Times{"01-05", "01-12", "01-13", "01-19", "01-26"}));
}

TEST(CronExpression, ADayMatchesIfBothDayFieldsDoWhenOneBeginsWithAStar) {
  EXPECT_EQ(days_in_2024("0 9 */2 * MON", 3), (Times{"01-01", "01-15", "01-29"}))
      << "Mondays of odd date";
  EXPECT_EQ(days_in_2024("0 9 ? * MON", 2), (Times{"01-01", "01-08"}));
  EXPECT_EQ(days_in_2024("0 9 15 * ?", 2), (Times{"01-15", "02-15"}));
}

TEST(CronExpression, TheLastDayOfTheMonth) {
  EXPECT_EQ(days_in_2024("0 9 L * *", 4), (Times{"01-31", "02-29", "03-31", "04-30"}));
  EXPECT_EQ(days_in_2024("0 9 L-3 * *", 3), (Times{"01-28", "02-26", "03-28"}));
  EXPECT_EQ(days_in_2024("0 9 l-30 * *", 3), (Times{"01-01", "03-01", "05-01"}))
      << "where there are 31 days";
  EXPECT_EQ(days_in_2024("0 9 15,L * *", 3), (Times{"01-15", "01-31", "02-15"}));
}

TEST(CronExpression, TheLastWeekdayOfTheMonth) {
  EXPECT_EQ(days_in_2024("0 9 * * 5L", 3), (Times{"01-26", "02-23", "03-29"}));
  EXPECT_EQ(days_in_2024("0 9 * * fril", 3), (Times{"01-26", "02-23", "03-29"}));
  EXPECT_EQ(days_in_2024("0 9 * * 7L", 2), (Times{"01-28", "02-25"}));
  EXPECT_EQ(days_in_2024("0 9 * * MON,WEDL", 6),
            (Times{"01-01", "01-08", "01-15", "01-22", "01-29", "01-31"}));
}

TEST(CronExpression, TheNthWeekdayOfTheMonth) {
  EXPECT_EQ(days_in_2024("0 9 * * MON#2", 3), (Times{"01-08", "02-12", "03-11"}));
  EXPECT_EQ(days_in_2024("0 9 * * 7#1", 3), (Times{"01-07", "02-04", "03-03"}));
  EXPECT_EQ(days_in_2024("0 9 * * TUE#5", 3), (Times{"01-30", "04-30", "07-30"}))
      << "where there is one";
}

TEST(CronExpression, TheNearestWorkingDayInTheMonth) {
  // June 2024 begins on a Saturday, and ends on a Sunday.
  EXPECT_EQ(days_in_2024("0 9 1W JUN *", 1), (Times{"06-03"}));
  EXPECT_EQ(days_in_2024("0 9 15W JUN *", 1), (Times{"06-14"}));
  EXPECT_EQ(days_in_2024("0 9 16W JUN *", 1), (Times{"06-17"}));
  EXPECT_EQ(days_in_2024("0 9 30W JUN *", 1), (Times{"06-28"}));
  EXPECT_EQ(days_in_2024("0 9 18W JUN *", 1), (Times{"06-18"}));
  EXPECT_EQ(days_in_2024("0 9 LW * *", 6),
            (Times{"01-31", "02-29", "03-29", "04-30", "05-31", "06-28"}));
  EXPECT_EQ(days_in_2024("0 9 31W * *", 3), (Times{"01-31", "03-29", "05-31"}))
      << "not where there is no 31st";
}

TEST(CronExpression, Macros) {
  EXPECT_EQ(in_2024("@yearly", 1), (Times{"2025-01-01 00:00:00"}));
  EXPECT_EQ(in_2024("@Annually", 1), (Times{"2025-01-01 00:00:00"}));
  EXPECT_EQ(in_2024("@monthly", 2), (Times{"2024-02-01 00:00:00", "2024-03-01 00:00:00"}));
  EXPECT_EQ(in_2024("@weekly", 2), (Times{"2024-01-07 00:00:00", "2024-01-14 00:00:00"}));
  EXPECT_EQ(in_2024("@daily", 2), (Times{"2024-01-02 00:00:00", "2024-01-03 00:00:00"}));
  EXPECT_EQ(in_2024("@midnight", 1), (Times{"2024-01-02 00:00:00"}));
  EXPECT_EQ(in_2024(" @HOURLY ", 2), (Times{"2024-01-01 01:00:00", "2024-01-01 02:00:00"}));
}

TEST(CronExpression, AnyNumberOfSpacesAndTabs) {
  EXPECT_EQ(in_2024("  0\t9  *\t * *  ", 1), (Times{"2024-01-01 09:00:00"}));
}

TEST(CronExpression, DatesDecadesAheadAreFound) {
  EXPECT_EQ(in_2024("0 0 29 2 *", 3),
            (Times{"2024-02-29 00:00:00", "2028-02-29 00:00:00", "2032-02-29 00:00:00"}));
  // The fifth Monday of a February: the 29th.
  EXPECT_EQ(in_2024("0 0 * 2 MON#5", 3),
            (Times{"2044-02-29 00:00:00", "2072-02-29 00:00:00", "2112-02-29 00:00:00"}));
  EXPECT_EQ(occurrences("0 0 29 2 *", "UTC", "2096-03-01 00:00:00", 1),
            (Times{"2104-02-29 00:00:00 UTC"}));
}

TEST(CronExpression, NothingComesAfterTheYear9999) {
  EXPECT_EQ(occurrences("0 0 31 12 *", "Europe/Berlin", "9998-12-31 12:00:00", 3),
            (Times{"9999-12-31 00:00:00 CET"}));
  EXPECT_EQ(CronSchedule("* * * * *", "UTC").next(std::chrono::sys_seconds::max()), std::nullopt);
  EXPECT_TRUE(CronSchedule("* * * * *", "UTC").next(std::chrono::sys_seconds::min()).has_value());
}

TEST(CronExpression, RemembersItsExpressionAndZone) {
  const CronSchedule schedule("0 9 * * *", "Europe/Berlin");
  EXPECT_EQ(schedule.expression(), "0 9 * * *");
  EXPECT_EQ(schedule.zone(), "Europe/Berlin");
}

TEST(CronExpression, AnErrorNamesTheZoneThatDoesNotExist) {
  try {
    CronSchedule("0 9 * * *", "Europe/Berln");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("there is no time zone \"Europe/Berln\""),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(CronSchedule("0 9 * * *", ""), std::invalid_argument);
  EXPECT_THROW(CronSchedule("0 9 * * *", "../../etc/passwd"), std::invalid_argument);
}

struct Mistake {
  const char* expression;
  std::size_t column;
  const char* what;
};

class CronMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(CronMistake, IsReportedWithItsColumn) {
  const auto& [expression, column, what] = GetParam();
  try {
    const CronSchedule schedule(expression, "UTC");
    FAIL() << expression << " was accepted";
  } catch (const CronError& error) {
    EXPECT_EQ(error.column(), column) << error.what();
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, CronMistake,
    ::testing::Values(
        Mistake{"", 1, "there are 0 fields"}, Mistake{"* * * *", 8, "there are 4 fields"},
        Mistake{"* * * * * * *", 13, "there are 7 fields"},
        Mistake{"0 25 * * *", 3, "hour \"25\" is out of range: 25 is not 0 to 23"},
        Mistake{"60 * * * *", 1, "minute \"60\" is out of range: 60 is not 0 to 59"},
        Mistake{"61 0 * * * *", 1, "second \"61\" is out of range"},
        Mistake{"0 0 0 * *", 5, "day of month \"0\" is out of range: 0 is not 1 to 31"},
        Mistake{"0 0 1 13 *", 7, "month \"13\" is out of range: 13 is not 1 to 12"},
        Mistake{"0 0 * * 8", 9, "day of week \"8\" is out of range: 8 is not 0 to 7"},
        Mistake{"0 9,12,24 * * *", 8, "hour \"24\" is out of range"},
        Mistake{"0 9-24 * * *", 3, "hour \"9-24\" is out of range: 24 is not 0 to 23"},
        Mistake{"0 99999999999 * * *", 3, "hour \"99999999999\" is out of range"},
        Mistake{"0 0 1 foo *", 7,
                "month \"foo\" is not understood; allowed are 1 to 12 and JAN to DEC"},
        Mistake{"0 0 * * MONDAY", 9,
                "day of week \"MONDAY\" is not understood; allowed are 0 to 7"},
        Mistake{"0 0 JAN * *", 5, "day of month \"JAN\" is not understood"},
        Mistake{"0 -1 * * *", 3, "hour \"-1\" is not understood"},
        Mistake{"0 1- * * *", 3, "hour \"1-\" is not"},
        Mistake{"0 1-2-3 * * *", 3, "hour \"1-2-3\" is not"},
        Mistake{"** * * * *", 1, "minute \"**\" is not"},
        Mistake{"0 1.5 * * *", 3, "hour \"1.5\" is not"},
        Mistake{"0 H * * *", 3, "hour \"H\" is not"},
        Mistake{"*/0 * * * *", 1, "minute \"*/0\" has a step that is not 1 to 60"},
        Mistake{"*/90 * * * *", 1, "minute \"*/90\" has a step that is not 1 to 60"},
        Mistake{"0 */25 * * *", 3, "hour \"*/25\" has a step that is not 1 to 24"},
        Mistake{"*/ * * * *", 1, "minute \"*/\" is not"},
        Mistake{"*/x * * * *", 1, "minute \"*/x\" is not"}, Mistake{"0 1,,2 * * *", 5, "a comma"},
        Mistake{"0 ,2 * * *", 3, "a comma"}, Mistake{"0 2, * * *", 4, "the comma"},
        Mistake{"0 ? * * *", 3, "hour \"?\" is for the day of month and the day of week alone"},
        Mistake{"0 0 * * L", 9, "day of week \"L\" needs a day in front"},
        Mistake{"0 0 L-31 * *", 5, "day of month \"L-31\" is more than 30 days before the last"},
        Mistake{"0 0 32W * *", 5, "day of month \"32W\" is out of range"},
        Mistake{"0 0 * * MON#6", 9, "day of week \"MON#6\" names a week that is not 1 to 5"},
        Mistake{"0 0 * * MON#0", 9, "day of week \"MON#0\" names a week that is not 1 to 5"},
        Mistake{"0 0 30 2 *", 5, "no year has such a day"},
        Mistake{"0 0 31 4,6,9,11 *", 5, "no year has such a day"},
        Mistake{"1 0 0 30W feb ?", 7, "no year has such a day"},
        Mistake{"@fortnightly", 1, "is none of @yearly"},
        Mistake{"@every 5m", 1, "a period is for schedule_every()"},
        Mistake{"@reboot", 1, "is none of @yearly"}));

}  // namespace
}  // namespace carillon::testing
