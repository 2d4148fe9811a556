// saturated(): the ends of the ranges, and rounding.
#include "carillon/wheel/saturated.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::duration;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

template <class To, class From>
std::int64_t count(From from) {
  return saturated<To>(from).count();
}

TEST(Saturated, KeepsWhatFits) {
  EXPECT_EQ(saturated<nanoseconds>(30s), 30s);
  EXPECT_EQ(saturated<nanoseconds>(-30h), -30h);
  EXPECT_EQ(saturated<milliseconds>(0ns), 0ms);
  EXPECT_EQ(saturated<nanoseconds>(nanoseconds::min()), nanoseconds::min()) << "the same type";
  EXPECT_EQ(count<nanoseconds>(seconds(9'223'372'036)), 9'223'372'036'000'000'000);
}

TEST(Saturated, BecomesTheEndOfTheRangeBeyondIt) {
  EXPECT_EQ(count<nanoseconds>(hours::max()), kMost);
  EXPECT_EQ(count<nanoseconds>(hours::min()), -kMost);
  EXPECT_EQ(count<nanoseconds>(milliseconds::max()), kMost);
  EXPECT_EQ(count<nanoseconds>(seconds(9'223'372'037)), kMost);
  EXPECT_EQ(count<nanoseconds>(seconds(-9'223'372'037)), -kMost);
  using Unsigned = duration<std::uint64_t>;
  EXPECT_EQ(count<nanoseconds>(Unsigned::max()), kMost);
  EXPECT_EQ(count<seconds>(Unsigned::max()), kMost);
  EXPECT_EQ((saturated<duration<std::int16_t, std::milli>>(1min).count()), 32767);
  EXPECT_EQ((saturated<duration<std::uint32_t, std::milli>>(-1s).count()), 0U);
  using Frames = duration<std::int64_t, std::ratio<1, 60>>;  // a rest that is beyond it alone
  EXPECT_EQ((saturated<duration<std::int16_t, std::nano>>(Frames(1)).count()), 32767);
  EXPECT_EQ((saturated<duration<std::int16_t, std::nano>>(Frames(-1)).count()), -32767);
  EXPECT_EQ((saturated<duration<std::uint32_t, std::milli>>(Frames(-1)).count()), 0U);
}

TEST(Saturated, RoundsUp) {
  EXPECT_EQ(count<milliseconds>(1ns), 1);
  EXPECT_EQ(count<milliseconds>(1'000'001ns), 2);
  EXPECT_EQ(count<milliseconds>(-1ns), 0);
  EXPECT_EQ(count<milliseconds>(nanoseconds::max()), 9'223'372'036'855);
  using Frames = duration<std::int64_t, std::ratio<1, 60>>;
  EXPECT_EQ(count<nanoseconds>(Frames(1)), 16'666'667);
  EXPECT_EQ(count<nanoseconds>(Frames(3)), 50'000'000);
  EXPECT_EQ(count<nanoseconds>(Frames(-1)), -16'666'666);
  EXPECT_EQ(count<nanoseconds>(Frames::max()), kMost);
  EXPECT_EQ(count<nanoseconds>(Frames::min()), -kMost);
}

TEST(Saturated, TakesFloatingPointNumbers) {
  using Seconds = duration<double>;
  EXPECT_EQ(count<nanoseconds>(Seconds(0.5)), 500'000'000);
  EXPECT_EQ(count<nanoseconds>(Seconds(1e-10)), 1);
  EXPECT_EQ(count<nanoseconds>(Seconds(1e300)), kMost);
  EXPECT_EQ(count<nanoseconds>(Seconds(-1e300)), -kMost);
  EXPECT_EQ(count<nanoseconds>(Seconds(std::numeric_limits<double>::infinity())), kMost);
  EXPECT_EQ(count<nanoseconds>(Seconds(std::numeric_limits<double>::quiet_NaN())), kMost);
}

TEST(Saturated, ADurationIsNoTimeAndATimeIsNoDuration) {
  using Time = std::chrono::steady_clock::time_point;
  EXPECT_TRUE((std::is_convertible_v<hours, Saturating<nanoseconds>>));
  EXPECT_FALSE((std::is_convertible_v<Time, Saturating<nanoseconds>>));
  EXPECT_FALSE((std::is_convertible_v<hours, Saturating<Time>>));
  EXPECT_FALSE((std::is_convertible_v<std::chrono::sys_days, Saturating<Time>>));
  EXPECT_TRUE((std::is_convertible_v<Time, Saturating<Time>>));
}

// In a config of the user's, that is: the fields of options are of this type.
TEST(Saturated, AFieldCanBeUsedAsTheDurationThatItIs) {
  Saturating<nanoseconds> field = 2ms;
  EXPECT_EQ(field * 2, 4ms);
  EXPECT_TRUE(field > 0ns);
  EXPECT_EQ(std::chrono::duration_cast<milliseconds>(field), 2ms);
  EXPECT_EQ(saturated<std::chrono::microseconds>(field), 2000us);
  field += 1ms;
  EXPECT_EQ(field.count(), 3'000'000);
  EXPECT_EQ(Saturating<nanoseconds>().count(), 0);
  Saturating<std::chrono::sys_time<nanoseconds>> time = std::chrono::sys_days(std::chrono::days(1));
  EXPECT_EQ(time + 1s, std::chrono::sys_seconds(86'401s));
}

struct Setting {
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator nanoseconds() const { return 5ns; }
};

TEST(Saturated, TakesWhatConvertsToTheDuration) {
  const Saturating<nanoseconds> field = Setting();
  EXPECT_EQ(field, 5ns);
  EXPECT_FALSE((std::is_convertible_v<int, Saturating<nanoseconds>>));
}

TEST(Saturated, TimesAndSumsDoNotWrap) {
  using Time = std::chrono::sys_time<nanoseconds>;
  EXPECT_EQ(saturated<Time>(std::chrono::sys_days::max()), Time::max());
  EXPECT_EQ(saturated<Time>(std::chrono::sys_seconds(1s)), Time(1s));
  EXPECT_EQ(saturated_sum(Time(1h), nanoseconds::max()), Time::max());
  EXPECT_EQ(saturated_sum(Time(-1h), nanoseconds::min()), Time(-nanoseconds::max()));
  EXPECT_EQ(saturated_sum(Time::max(), nanoseconds(-1)), Time::max() - 1ns);
  EXPECT_EQ(saturated_sum(Time(1h), nanoseconds(1)), Time(1h + 1ns));
}

}  // namespace
}  // namespace carillon::testing
