// Tests of RFC 3339 timestamps as users write them on the command line.

#include "server/text/timestamp.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace carillon::server {
namespace {

// Returns the message of the exception that parse_timestamp(text) throws.
std::string timestamp_error(const std::string& text) {
  try {
    parse_timestamp(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Timestamp, UtcIsMillisecondsSince1970) {
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00Z"), 0U);
  EXPECT_EQ(parse_timestamp("2001-09-09T01:46:40Z"), 1'000'000'000'000U);
  EXPECT_EQ(parse_timestamp("2030-01-01T09:00:00Z"), 1'893'488'400'000U);
  EXPECT_EQ(parse_timestamp("9999-12-31T23:59:59.999Z"), 253'402'300'799'999U);
}

TEST(Timestamp, OffsetsAreSubtracted) {
  EXPECT_EQ(parse_timestamp("2030-01-01T11:00:00+02:00"), 1'893'488'400'000U);
  EXPECT_EQ(parse_timestamp("2030-01-01T00:30:00-08:30"), 1'893'488'400'000U);
  EXPECT_EQ(parse_timestamp("2030-01-01T09:00:00-00:00"), 1'893'488'400'000U);
  EXPECT_EQ(parse_timestamp("1970-01-01T01:00:00+01:00"), 0U);
}

// RFC 3339, section 5.8.
TEST(Timestamp, ExamplesOfTheRfc) {
  EXPECT_EQ(parse_timestamp("1985-04-12T23:20:50.52Z"), 482'196'050'520U);
  EXPECT_EQ(parse_timestamp("1996-12-19T16:39:57-08:00"), 851'042'397'000U);
  EXPECT_EQ(parse_timestamp("1990-12-31T23:59:60Z"), 662'688'000'000U);  // a leap second
}

TEST(Timestamp, LowerCaseAndSpaceAsTheRfcAllows) {
  EXPECT_EQ(parse_timestamp("2030-01-01t09:00:00z"), 1'893'488'400'000U);
  EXPECT_EQ(parse_timestamp("2030-01-01 09:00:00Z"), 1'893'488'400'000U);
}

TEST(Timestamp, FinerFractionsRoundUpSoThatNothingIsEarly) {
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00.5Z"), 500U);
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00.25Z"), 250U);
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00.001000000Z"), 1U);
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00.0010000001Z"), 2U);
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00.9999Z"), 1000U);
}

TEST(Timestamp, LeapDays) {
  EXPECT_EQ(parse_timestamp("2028-02-29T00:00:00Z"), 1'835'395'200'000U);
  EXPECT_EQ(parse_timestamp("2000-02-29T00:00:00Z"), 951'782'400'000U);
  EXPECT_EQ(timestamp_error("2030-02-29T00:00:00Z"),
            "\"2030-02-29T00:00:00Z\": there is no day 2030-02-29");
  EXPECT_EQ(timestamp_error("2100-02-29T00:00:00Z"),
            "\"2100-02-29T00:00:00Z\": there is no day 2100-02-29");
}

TEST(Timestamp, ImpossibleDaysAndTimesAreRefused) {
  EXPECT_EQ(timestamp_error("2030-13-01T00:00:00Z"),
            "\"2030-13-01T00:00:00Z\": there is no day 2030-13-01");
  EXPECT_EQ(timestamp_error("2030-00-01T00:00:00Z"),
            "\"2030-00-01T00:00:00Z\": there is no day 2030-00-01");
  EXPECT_EQ(timestamp_error("2030-04-31T00:00:00Z"),
            "\"2030-04-31T00:00:00Z\": there is no day 2030-04-31");
  EXPECT_EQ(timestamp_error("2030-01-01T24:00:00Z"),
            "\"2030-01-01T24:00:00Z\": there is no time 24:00:00; the last of a day is 23:59:59");
  EXPECT_EQ(timestamp_error("2030-01-01T00:60:00Z"),
            "\"2030-01-01T00:60:00Z\": there is no time 00:60:00; the last of a day is 23:59:59");
  EXPECT_EQ(timestamp_error("2030-01-01T00:00:61Z"),
            "\"2030-01-01T00:00:61Z\": there is no time 00:00:61; the last of a day is 23:59:59");
  EXPECT_EQ(timestamp_error("2030-01-01T00:00:00+24:00"),
            "\"2030-01-01T00:00:00+24:00\": the offset from UTC is at most 23:59");
}

TEST(Timestamp, ATimeWithoutItsOffsetIsRefused) {
  EXPECT_EQ(timestamp_error("2030-01-01T09:00:00"),
            "\"2030-01-01T09:00:00\": lacks its offset from UTC; append Z for UTC, or e.g. +02:00");
  EXPECT_EQ(
      timestamp_error("2030-01-01T09:00:00.5"),
      "\"2030-01-01T09:00:00.5\": lacks its offset from UTC; append Z for UTC, or e.g. +02:00");
  EXPECT_EQ(timestamp_error("2030-01-01"),
            "\"2030-01-01\": a day without a time; use e.g. 2030-01-01T09:00:00Z");
}

// Before, those before 1970 were read as 1970-01-01, and those after 9999 as they were written.
TEST(Timestamp, TimesBefore1970AndAfter9999AreRefused) {
  for (const std::string text :
       {"1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00+00:01", "1970-01-01T00:00:00+14:00",
        "0001-01-01T00:00:00Z", "0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59.9999Z",
        "9999-12-31T23:59:59-01:00", "9999-12-31T23:59:60Z"}) {
    EXPECT_EQ(timestamp_error(text),
              "\"" + text + "\": a time is from 1970-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z");
  }
  EXPECT_EQ(parse_timestamp("1969-12-31T23:00:00-01:00"), 0U);
  EXPECT_EQ(parse_timestamp("9999-12-31T23:59:59.999+00:00"), 253'402'300'799'999U);
  EXPECT_EQ(parse_timestamp("9999-12-31T23:59:59.9981Z"), 253'402'300'799'999U);
}

TEST(Timestamp, ALeapSecondEndsAMonthInUtc) {
  EXPECT_EQ(parse_timestamp("2016-12-31T23:59:60Z"), 1'483'228'800'000U);
  EXPECT_EQ(parse_timestamp("2016-12-31T23:59:60.25Z"), 1'483'228'800'250U);
  EXPECT_EQ(parse_timestamp("2016-12-31T23:59:60.9999Z"), 1'483'228'801'000U);
  EXPECT_EQ(parse_timestamp("1990-12-31T15:59:60-08:00"), 662'688'000'000U);
  EXPECT_EQ(parse_timestamp("2017-01-01T05:29:60+05:30"), 1'483'228'800'000U);
  for (const std::string text :
       {"2030-06-30T12:30:60Z", "2030-06-30T23:58:60Z", "2030-06-29T23:59:60Z",
        "2030-06-30T23:59:60+01:00", "2030-07-01T00:00:60Z"}) {
    EXPECT_EQ(
        timestamp_error(text),
        "\"" + text + "\": second 60 is a leap second, which ends the last day of a month in UTC");
  }
}

TEST(Timestamp, OtherShapesAreRefused) {
  for (const std::string text :
       {"", "tomorrow", "1893488400", "2030-1-1T09:00:00Z", "30-01-01T09:00:00Z",
        "2030-01-01T9:00:00Z", "2030-01-01T09:00Z", "2030-01-01T09:00:00.Z",
        "2030-01-01T09:00:00Z ", "2030-01-01T09:00:00+0200", "2030-01-01T09:00:00+02",
        "2030-01-01T09:00:00 Z", "+2030-01-01T09:00:00Z", "2030/01/01T09:00:00Z",
        "2030-01-01T09:00:00ZZ", "20300101T090000Z", "2030-01-01T09:00:00,5Z",
        "2030-01-01T09:00:-1Z"}) {
    EXPECT_EQ(timestamp_error(text),
              "\"" + text +
                  "\": not an RFC 3339 time; use e.g. 2030-01-01T09:00:00Z or "
                  "2030-01-01T09:00:00.25+02:00");
  }
}

TEST(Timestamp, FormatIsUtcWithMilliseconds) {
  EXPECT_EQ(format_timestamp(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_timestamp(1'893'488'400'250), "2030-01-01T09:00:00.250Z");
  EXPECT_EQ(format_timestamp(253'402'300'799'999), "9999-12-31T23:59:59.999Z");
}

TEST(Timestamp, FormatAndParseAreInverse) {
  for (const std::uint64_t ms :
       {std::uint64_t{1}, std::uint64_t{951'782'400'001}, std::uint64_t{253'402'300'799'998}}) {
    EXPECT_EQ(parse_timestamp(format_timestamp(ms)), ms);
  }
}

}  // namespace
}  // namespace carillon::server
