// Compares random expressions in many zones with a model, which tries every minute of a stretch of
// time, with the C library's local time.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "carillon/timer/cron_schedule.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

using Random = std::mt19937_64;
using std::chrono::sys_seconds;

int between(Random& random, int least, int most) {
  return std::uniform_int_distribution(least, most)(random);
}

// One minute, as the clocks of a zone show it.
struct Minute {
  int year, month, day, hour, minute, weekday;
  std::int64_t local;  // minutes since 1970-01-01 00:00 in local time
};

// All minutes of `days` days from `begin`.
class Calendar {
 public:
  Calendar(const std::string& zone, sys_seconds begin, int days) : begin_(begin) {
    ::setenv("TZ", zone.c_str(), 1);
    ::tzset();
    for (int i = 0; i < days * 24 * 60; ++i) {
      const time_t time = at(static_cast<std::size_t>(i)).time_since_epoch().count();
      tm local{};
      ::localtime_r(&time, &local);
      minutes_.push_back({local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
                          local.tm_min, local.tm_wday, (time + local.tm_gmtoff) / 60});
    }
    ::unsetenv("TZ");
  }

  const std::vector<Minute>& minutes() const { return minutes_; }
  sys_seconds at(std::size_t index) const { return begin_ + std::chrono::minutes(index); }

 private:
  sys_seconds begin_;
  std::vector<Minute> minutes_;
};

using Matches = std::function<bool(const Minute&)>;

// A part of a field: its text, and the minutes that it matches.
struct Item {
  std::string text;
  Matches matches;
};

// A random item of a field whose numbers are `least` to `most`. The item names numbers from `least`
// to `highest`.
template <class Value>
Item random_numbers(Random& random, int least, int most, int highest, Value value) {
  const int first = between(random, least, highest);
  const int last = between(random, least, highest);
  const int step = between(random, 1, std::min(7, most - least));
  const int count = most - least + 1;
  switch (between(random, 0, 3)) {
    case 0:
      return {std::to_string(first) + "-" + std::to_string(last), [=](const Minute& minute) {
                const int v = value(minute);
                return first <= last ? v >= first && v <= last : v >= first || v <= last;
              }};
    case 1:
      return {std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(step),
              [=](const Minute& minute) {
                const int from_first = (value(minute) - first + count) % count;
                return from_first <= (last - first + count) % count && from_first % step == 0;
              }};
    case 2:
      return {std::to_string(first) + "/" + std::to_string(step), [=](const Minute& minute) {
                return value(minute) >= first && (value(minute) - first) % step == 0;
              }};
    default:
      return {std::to_string(first), [=](const Minute& minute) { return value(minute) == first; }};
  }
}

int last_day_of(const Minute& minute) {
  const auto last = std::chrono::year(minute.year) / minute.month / std::chrono::last;
  return static_cast<int>(static_cast<unsigned>(last.day()));
}
int weekday_of(const Minute& minute, int day) {
  return ((minute.weekday + day - minute.day) % 7 + 7) % 7;
}
bool works(const Minute& minute, int day) {
  const int weekday = weekday_of(minute, day);
  return day >= 1 && day <= last_day_of(minute) && weekday != 0 && weekday != 6;
}
int working_day_nearest_to(const Minute& minute, int day) {
  for (const int nearby : {day, day - 1, day + 1, day - 2, day + 2}) {
    if (works(minute, nearby)) return nearby;
  }
  return 0;
}

Item random_day(Random& random) {
  const int n = between(random, 1, 31);
  switch (between(random, 0, 7)) {
    case 0:
      return {"L", [](const Minute& minute) { return minute.day == last_day_of(minute); }};
    case 1:
      return {"L-" + std::to_string(n - 1),
              [=](const Minute& minute) { return minute.day == last_day_of(minute) - (n - 1); }};
    case 2:
      return {std::to_string(n) + "W", [=](const Minute& minute) {
                return n <= last_day_of(minute) && minute.day == working_day_nearest_to(minute, n);
              }};
    case 3:
      return {"LW", [](const Minute& minute) {
                return minute.day == working_day_nearest_to(minute, last_day_of(minute));
              }};
    default:
      return random_numbers(random, 1, 31, 31, [](const Minute& minute) { return minute.day; });
  }
}

Item random_weekday(Random& random) {
  static const char* const kNames[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
  const int weekday = between(random, 0, 6);
  const int n = between(random, 1, 5);
  switch (between(random, 0, 5)) {
    case 0:
      return {std::string(kNames[weekday]) + "L", [=](const Minute& minute) {
                return minute.weekday == weekday && minute.day > last_day_of(minute) - 7;
              }};
    case 1:
      return {std::to_string(weekday) + "#" + std::to_string(n), [=](const Minute& minute) {
                return minute.weekday == weekday && (minute.day - 1) / 7 == n - 1;
              }};
    case 2:
      return {"7", [](const Minute& minute) { return minute.weekday == 0; }};
    default:
      return random_numbers(random, 0, 6, 6, [](const Minute& minute) { return minute.weekday; });
  }
}

struct Field {
  std::string text;
  std::vector<Item> items;

  bool star() const { return text.front() == '*'; }
  bool matches(const Minute& minute) const {
    return std::any_of(items.begin(), items.end(),
                       [&](const Item& item) { return item.matches(minute); });
  }
};

// A random field. In `star` of 10 cases it is `any`, which begins with a star.
Field random_field(Random& random, int star, const std::function<Item()>& item, const Item& any) {
  Field field;
  if (between(random, 1, 10) <= star) {
    field.items.push_back(any);
  } else {
    for (int count = between(random, 1, 3); count > 0; --count) field.items.push_back(item());
  }
  for (const Item& one : field.items) field.text += (field.text.empty() ? "" : ",") + one.text;
  return field;
}

template <class Value>
Item any_number(Random& random, int least, int most, Value value) {
  const int step = between(random, 0, 1) == 0 ? 1 : between(random, 2, std::min(10, most - least));
  return {step == 1 ? "*" : "*/" + std::to_string(step),
          [=](const Minute& minute) { return (value(minute) - least) % step == 0; }};
}

struct Expression {
  explicit Expression(Random& random) {
    const auto minute_of = [](const Minute& m) { return m.minute; };
    const auto hour_of = [](const Minute& m) { return m.hour; };
    const auto day_of = [](const Minute& m) { return m.day; };
    const auto month_of = [](const Minute& m) { return m.month; };
    const auto weekday_of_minute = [](const Minute& m) { return m.weekday; };
    const bool at_night = between(random, 0, 1) == 0;  // clocks change at night
    minute = random_field(
        random, 2, [&] { return random_numbers(random, 0, 59, 59, minute_of); },
        any_number(random, 0, 59, minute_of));
    hour = random_field(
        random, 2, [&] { return random_numbers(random, 0, 23, at_night ? 3 : 23, hour_of); },
        any_number(random, 0, 23, hour_of));
    day = random_field(
        random, 6, [&] { return random_day(random); }, any_number(random, 1, 31, day_of));
    month = random_field(
        random, 7, [&] { return random_numbers(random, 1, 12, 12, month_of); },
        any_number(random, 1, 12, month_of));
    weekday = random_field(
        random, 6, [&] { return random_weekday(random); },
        any_number(random, 0, 6, weekday_of_minute));
    if (between(random, 0, 2) == 0) seconds = {between(random, 0, 29), between(random, 30, 59)};
  }

  std::string text() const {
    std::string result =
        minute.text + " " + hour.text + " " + day.text + " " + month.text + " " + weekday.text;
    if (seconds.empty()) return result;
    return std::to_string(seconds[0]) + "," + std::to_string(seconds[1]) + " " + result;
  }

  bool matches(const Minute& m) const {
    return minute.matches(m) && hour.matches(m) && month.matches(m) && on_day(m);
  }

  bool on_day(const Minute& m) const {
    if (day.star() || weekday.star()) return day.matches(m) && weekday.matches(m);
    return day.matches(m) || weekday.matches(m);
  }

  bool every_hour() const {
    bool all = true;
    for (int i = 0; i < 24; ++i) all &= hour.matches({0, 0, 0, i, 0, 0, 0});
    return all;
  }

  Field minute, hour, day, month, weekday;
  std::vector<int> seconds;
};

// The minute that the clocks would show `ahead` minutes later if they were not changed meanwhile.
Minute shifted(const Minute& minute, std::int64_t ahead) {
  const std::chrono::sys_days day = std::chrono::year(minute.year) / minute.month / minute.day;
  const auto time =
      day + std::chrono::hours(minute.hour) + std::chrono::minutes(minute.minute + ahead);
  const auto then = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(then);
  const auto of_day = std::chrono::minutes(time - then).count();
  return {static_cast<int>(date.year()),
          static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())),
          static_cast<int>(of_day / 60),
          static_cast<int>(of_day % 60),
          static_cast<int>(std::chrono::weekday(then).c_encoding()),
          minute.local + ahead};
}

constexpr std::size_t kLookBack = 2880;  // minutes

// All occurrences by the rule of cron_schedule.h, found minute by minute. The first kLookBack
// minutes are left out, because the rule needs the time before them.
std::vector<sys_seconds> model(const Expression& expression, const Calendar& calendar) {
  std::vector<sys_seconds> times;
  const bool every_hour = expression.every_hour();
  const std::vector<Minute>& all = calendar.minutes();
  std::int64_t shown = all[0].local;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Minute& now = all[i];
    const Minute& before = all[i - 1];
    std::vector<sys_seconds> here;
    if (!every_hour && now.local > before.local + 1) {
      for (std::int64_t ahead = 1; before.local + ahead < now.local && here.empty(); ++ahead) {
        if (expression.matches(shifted(before, ahead))) here.push_back(calendar.at(i));
      }
    }
    if ((every_hour || now.local > shown) && expression.matches(now)) {
      if (expression.seconds.empty()) here.push_back(calendar.at(i));
      for (const int second : expression.seconds)
        here.push_back(calendar.at(i) + std::chrono::seconds(second));
    }
    shown = std::max(shown, now.local);
    here.erase(std::unique(here.begin(), here.end()), here.end());
    if (i >= kLookBack) times.insert(times.end(), here.begin(), here.end());
  }
  return times;
}

std::string name(sys_seconds time) {
  const time_t seconds = time.time_since_epoch().count();
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  ::strftime(text, sizeof text, "%F %T UTC", &utc);
  return text;
}

void compare(const Expression& expression, const std::string& zone, const Calendar& calendar,
             Random& random) {
  SCOPED_TRACE("\"" + expression.text() + "\" in " + zone);
  const std::vector<sys_seconds> expected = model(expression, calendar);
  const CronSchedule schedule = [&] {
    try {
      return CronSchedule(expression.text(), zone);
    } catch (const CronError&) {  // no minute ever matches
      EXPECT_TRUE(expected.empty());
      return CronSchedule("0 0 1 1 *", zone);
    }
  }();
  if (schedule.expression() != expression.text()) return;

  const sys_seconds begin = calendar.at(kLookBack);
  const sys_seconds end = calendar.at(calendar.minutes().size());
  sys_seconds after = begin - std::chrono::seconds(1);
  for (const sys_seconds time : expected) {
    const auto next = schedule.next(after);
    ASSERT_TRUE(next.has_value());
    ASSERT_EQ(*next, time) << name(*next) << " instead of " << name(time) << ", after "
                           << name(after);
    after = time;
  }
  const auto beyond = schedule.next(after);
  if (beyond.has_value()) {
    ASSERT_GE(*beyond, end) << name(*beyond) << " after " << name(after);
  }

  for (int i = 0; i < 50; ++i) {
    const sys_seconds somewhere =
        begin +
        std::chrono::seconds(between(random, 0, static_cast<int>((end - begin).count()) - 1));
    const auto first = std::upper_bound(expected.begin(), expected.end(), somewhere);
    if (first != expected.end()) {
      ASSERT_EQ(schedule.next(somewhere), *first) << "after " << name(somewhere);
    }
  }
}

constexpr const char* kZones[] = {"UTC",
                                  "Europe/Berlin",
                                  "America/New_York",
                                  "Australia/Lord_Howe",
                                  "Asia/Kolkata",
                                  "Pacific/Apia",
                                  "America/St_Johns",
                                  "Europe/Dublin",
                                  "Africa/Casablanca",
                                  "America/Nuuk",
                                  "Antarctica/Troll",
                                  "Asia/Gaza",
                                  "America/Havana",
                                  "America/Sao_Paulo"};

TEST(CronReference, NextAgreesWithAModelThatTriesEveryMinute) {
  for (const std::uint64_t seed : seeds(8)) {
    SCOPED_TRACE(replay_with(seed));
    Random random(seed);
    const std::string zone = kZones[between(random, 0, std::size(kZones) - 1)];
    const int year = zone == "Pacific/Apia" ? 2011 : between(random, 1975, 2090);
    const sys_seconds begin =
        std::chrono::sys_days(std::chrono::year(year) / between(random, 1, 12) / 1);
    const Calendar calendar(zone, begin, 400);
    for (int i = 0; i < 12 && !HasFatalFailure(); ++i)
      compare(Expression(random), zone, calendar, random);
    if (HasFatalFailure()) return;
  }
}

TEST(CronReference, TheDayThatApiaLeftOut) {
  for (const std::uint64_t seed : seeds(4)) {
    SCOPED_TRACE(replay_with(seed));
    Random random(seed);
    const Calendar calendar("Pacific/Apia", std::chrono::sys_days(std::chrono::year(2011) / 12 / 1),
                            60);
    for (int i = 0; i < 40 && !HasFatalFailure(); ++i)
      compare(Expression(random), "Pacific/Apia", calendar, random);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace carillon::testing
