// PosixRule: the rule of the tz database for the years after those that it lists.
#include "timer/cron/posix_rule.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "cron/occurrences.h"

namespace carillon::testing {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

std::chrono::seconds ahead(const char* rule, const std::string& time) {
  const auto parsed = detail::PosixRule::parse(rule);
  return parsed.has_value() ? parsed->at(utc(time)).ahead : std::chrono::seconds(-1);
}

TEST(PosixRule, NoChange) {
  EXPECT_EQ(ahead("UTC0", "2050-07-01 00:00:00"), hours(0));
  EXPECT_EQ(ahead("IST-5:30", "2050-07-01 00:00:00"), hours(5) + minutes(30));
  EXPECT_EQ(ahead("<-03>3", "2050-07-01 00:00:00"), hours(-3));
}

TEST(PosixRule, NorthernSummer) {
  const char* const berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
  EXPECT_EQ(ahead(berlin, "2050-01-01 00:00:00"), hours(1));
  EXPECT_EQ(ahead(berlin, "2050-03-27 00:59:59"), hours(1));
  EXPECT_EQ(ahead(berlin, "2050-03-27 01:00:00"), hours(2));
  EXPECT_EQ(ahead(berlin, "2050-10-30 00:59:59"), hours(2));
  EXPECT_EQ(ahead(berlin, "2050-10-30 01:00:00"), hours(1));
  EXPECT_EQ(ahead(berlin, "2050-12-31 23:59:59"), hours(1));

  const auto summer = detail::PosixRule::parse(berlin)->at(utc("2050-07-01 00:00:00"));
  EXPECT_EQ(summer.begin, utc("2050-03-27 01:00:00"));
  EXPECT_EQ(summer.end, utc("2050-10-30 01:00:00"));
}

TEST(PosixRule, SouthernSummer) {
  const char* const sydney = "AEST-10AEDT,M10.1.0,M4.1.0/3";
  EXPECT_EQ(ahead(sydney, "2050-01-01 00:00:00"), hours(11));
  EXPECT_EQ(ahead(sydney, "2050-04-02 15:59:59"), hours(11));
  EXPECT_EQ(ahead(sydney, "2050-04-02 16:00:00"), hours(10));
  EXPECT_EQ(ahead(sydney, "2050-10-01 15:59:59"), hours(10));
  EXPECT_EQ(ahead(sydney, "2050-10-01 16:00:00"), hours(11));
}

TEST(PosixRule, AChangeAtANegativeHourOrOnALaterDay) {
  EXPECT_EQ(ahead("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2050-03-27 00:59:59"), hours(-2));
  EXPECT_EQ(ahead("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2050-03-27 01:00:00"), hours(-1));
  EXPECT_EQ(ahead("EET-2EEST,M3.4.4/50,M10.4.4/50", "2050-03-25 23:59:59"), hours(2))
      << "Thursday the 24th, 50:00";
  EXPECT_EQ(ahead("EET-2EEST,M3.4.4/50,M10.4.4/50", "2050-03-26 00:00:00"), hours(3));
}

TEST(PosixRule, WinterTimeIsTheExceptionInDublin) {
  EXPECT_EQ(ahead("IST-1GMT0,M10.5.0,M3.5.0/1", "2050-01-01 00:00:00"), hours(0));
  EXPECT_EQ(ahead("IST-1GMT0,M10.5.0,M3.5.0/1", "2050-07-01 00:00:00"), hours(1));
}

TEST(PosixRule, DaysOfTheYear) {
  EXPECT_EQ(ahead("AAA0BBB,J60/0,J300/0", "2048-02-29 12:00:00"), hours(0))
      << "with J, day 60 is March 1 in every year";
  EXPECT_EQ(ahead("AAA0BBB,J60/0,J300/0", "2048-03-01 00:00:00"), hours(1));
  EXPECT_EQ(ahead("AAA0BBB,59/0,300/0", "2048-02-29 00:00:00"), hours(1))
      << "without J, days count from 0 and include February 29";
}

TEST(PosixRule, SummerTimeAllYear) {
  for (const char* time : {"2050-01-01 05:00:00", "2050-07-01 00:00:00", "2050-12-31 23:59:59"}) {
    EXPECT_EQ(ahead("XXX3EDT4,0/0,J365/23", time), hours(-4)) << time;
  }
}

TEST(PosixRule, ATextThatIsNoRuleIsRefused) {
  for (const char* text :
       {"", "CET", "C-1", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,M10.5.0/3x",
        "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST", "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0", "<+01-1", "CET-1:", "CET-168", "\n", "CET-1CEST,,"}) {
    EXPECT_FALSE(detail::PosixRule::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace carillon::testing
