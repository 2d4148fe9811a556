// Tests of durations as users write them on the command line.

#include "server/text/duration.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace carillon::server {
namespace {

using namespace std::chrono_literals;

// Returns the message of the exception that parse_duration(text) throws.
std::string error_of(const std::string& text) {
  try {
    parse_duration(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Duration, EachUnit) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("3s"), 3000ms);
  EXPECT_EQ(parse_duration("5m"), 300'000ms);
  EXPECT_EQ(parse_duration("2h"), 7'200'000ms);
  EXPECT_EQ(parse_duration("40d"), 3'456'000'000ms);
}

TEST(Duration, PartsAddUp) {
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1d2h3m4s5ms"), 93'784'005ms);
  EXPECT_EQ(parse_duration("1m500ms"), 60'500ms);
}

TEST(Duration, FractionsAreExact) {
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("0.25s"), 250ms);
  EXPECT_EQ(parse_duration("0.001s"), 1ms);
  EXPECT_EQ(parse_duration("0.3s"), 300ms);  // 0.3 has no exact double
  EXPECT_EQ(parse_duration("1.000s"), 1s);
  // 2^-10 of a day: the most digits that give a whole number of milliseconds.
  EXPECT_EQ(parse_duration("0.0009765625d"), 84'375ms);
  EXPECT_EQ(parse_duration("0.50000000000000000000000d"), 12h);
}

TEST(Duration, ZeroNeedsNoUnit) {
  EXPECT_EQ(parse_duration("0"), 0ms);
  EXPECT_EQ(parse_duration("0s"), 0ms);
}

TEST(Duration, LeadingZerosDoNotMeanOctal) {
  EXPECT_EQ(parse_duration("010s"), 10s);
  EXPECT_EQ(parse_duration("00000000000000000000000000007s"), 7s);
}

TEST(Duration, NumberWithoutUnitIsRefused) {
  EXPECT_EQ(error_of("3"), "\"3\": a number without a unit; write 3ms, 3s, 3m, 3h or 3d");
  EXPECT_EQ(error_of("1.5"),
            "\"1.5\": a number without a unit; write 1.5ms, 1.5s, 1.5m, 1.5h or 1.5d");
  EXPECT_EQ(error_of("1h30"),
            "\"1h30\": a number without a unit; write 30ms, 30s, 30m, 30h or 30d");
}

TEST(Duration, OtherTextsAreRefused) {
  for (const std::string text :
       {"", "3 parsecs", "s", "-3s", "+3s", " 3s", "3s ", "3 s", ".5s", "3.s", "3sec", "1e3s",
        "0x10s", "3S", "\xEF\xBC\x93s", "3s\n", "soon"}) {
    EXPECT_EQ(error_of(text), "\"" + text + "\": not a duration; use e.g. 250ms, 3s, 2h, 40d");
  }
}

TEST(Duration, EachUnitAtMostOnceAndTheLargerFirst) {
  EXPECT_EQ(error_of("30m1h"), "\"30m1h\": write each unit once, the larger one first: 1h30m");
  EXPECT_EQ(error_of("1h1h"), "\"1h1h\": write each unit once, the larger one first: 1h30m");
  EXPECT_EQ(error_of("5ms1s"), "\"5ms1s\": write each unit once, the larger one first: 1h30m");
}

TEST(Duration, NothingIsRounded) {
  EXPECT_EQ(error_of("0.5ms"),
            "\"0.5ms\": not a whole number of milliseconds, the finest that there is");
  EXPECT_EQ(error_of("0.0001s"),
            "\"0.0001s\": not a whole number of milliseconds, the finest that there is");
  EXPECT_EQ(error_of("0.33333333333d"),
            "\"0.33333333333d\": not a whole number of milliseconds, the finest that there is");
}

TEST(Duration, TheLargestIsExactAndLargerOnesAreRefused) {
  EXPECT_EQ(parse_duration("9223372036854775807ms").count(), 9'223'372'036'854'775'807);
  EXPECT_EQ(parse_duration("106751991167d").count(), 9'223'372'036'828'800'000);
  for (const std::string text :
       {"9223372036854775808ms", "106751991168d", "106751991167d8h", "18446744073709551616ms",
        "99999999999999999999999999d", "106751991167.5d", "9223372036854775.808s"}) {
    EXPECT_EQ(error_of(text), "\"" + text + "\": too long, more than 292 million years");
  }
  EXPECT_EQ(parse_duration("9223372036854775.807s").count(), 9'223'372'036'854'775'807);
}

TEST(Duration, ShortFormIsCutToTwoUnits) {
  EXPECT_EQ(short_duration(0ms), "0.00s");
  EXPECT_EQ(short_duration(-5ms), "0.00s");
  EXPECT_EQ(short_duration(59ms), "0.05s");
  EXPECT_EQ(short_duration(2'350ms), "2.35s");
  EXPECT_EQ(short_duration(59'999ms), "59.99s");
  EXPECT_EQ(short_duration(60'000ms), "1m00s");
  EXPECT_EQ(short_duration(3'599'999ms), "59m59s");
  EXPECT_EQ(short_duration(12'000'000ms), "3h20m");
  EXPECT_EQ(short_duration(40 * 24h + 90min), "40d01h");
}

}  // namespace
}  // namespace carillon::server
