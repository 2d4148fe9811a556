#include "timer/cron/cron_fields.h"

#include <algorithm>
#include <bit>

namespace carillon::detail {
namespace {

using std::chrono::local_days;
using std::chrono::local_seconds;
using Seconds = std::chrono::seconds;

// After 400 years dates fall on the same weekdays again.
constexpr int kMonthsOfTheCalendar = 400 * 12;

constexpr NumberSet bit(unsigned number) noexcept {
  return NumberSet{1} << number;
}
constexpr NumberSet from(unsigned number) noexcept {
  return ~NumberSet{0} << number;
}

// Returns the lowest number in the set that is not below `least`; -1 if all are below it.
constexpr int first_of(NumberSet set, int least) noexcept {
  const NumberSet rest = set & from(static_cast<unsigned>(least));
  return rest == 0 ? -1 : std::countr_zero(rest);
}

// One month, with the weekdays of its days.
struct Month {
  explicit Month(std::chrono::year_month month) noexcept
      : last(static_cast<unsigned>((month / std::chrono::last).day())),
        first_weekday(std::chrono::weekday(local_days(month / 1)).c_encoding()) {}

  unsigned weekday(unsigned day) const noexcept { return (first_weekday + day - 1) % 7; }

  // Returns the day of the n-th such weekday; more than `last` if the month has fewer of them.
  unsigned nth(unsigned n, unsigned weekday) const noexcept {
    return 1 + (weekday + 7 - first_weekday) % 7 + 7 * (n - 1);
  }
  unsigned last_such(unsigned weekday) const noexcept {
    return last - (this->weekday(last) + 7 - weekday) % 7;
  }

  unsigned working_day_nearest_to(unsigned day) const noexcept {
    if (weekday(day) == 6) return day > 1 ? day - 1 : day + 2;
    if (weekday(day) == 0) return day < last ? day + 1 : day - 2;
    return day;
  }

  unsigned last;
  unsigned first_weekday;
};

template <class Use>
void for_each_number(NumberSet set, Use&& use) {
  for (; set != 0; set &= set - 1) use(static_cast<unsigned>(std::countr_zero(set)));
}

}  // namespace

NumberSet CronFields::days_of(std::chrono::year_month year_month) const noexcept {
  const Month month(year_month);
  NumberSet by_day = days;
  for_each_number(days_before_last,
                  [&](unsigned n) { by_day |= n < month.last ? bit(month.last - n) : 0; });
  for_each_number(nearest_to, [&](unsigned day) {
    if (day <= month.last) by_day |= bit(month.working_day_nearest_to(day));
  });
  if (last_working_day) by_day |= bit(month.working_day_nearest_to(month.last));

  NumberSet by_weekday = 0;
  for_each_number(weekdays, [&](unsigned weekday) {
    for (unsigned day = month.nth(1, weekday); day <= month.last; day += 7) by_weekday |= bit(day);
  });
  for_each_number(last_weekdays,
                  [&](unsigned weekday) { by_weekday |= bit(month.last_such(weekday)); });
  for (unsigned n = 1; n < weekdays_of_week.size(); ++n) {
    for_each_number(weekdays_of_week[n],
                    [&](unsigned weekday) { by_weekday |= bit(month.nth(n, weekday)); });
  }

  const NumberSet exist = from(1) & ~from(month.last + 1);
  return (any_day || any_weekday ? by_day & by_weekday : by_day | by_weekday) & exist;
}

std::optional<local_seconds> CronFields::first_at_or_after(local_seconds from) const noexcept {
  const local_days today = std::chrono::floor<std::chrono::days>(from);
  const auto day = first_day_at_or_after(today);
  if (!day.has_value()) return std::nullopt;
  if (*day == today) {
    if (const auto time = first_time_of_day(from - today)) return today + *time;
    const auto later_day = first_day_at_or_after(today + std::chrono::days(1));
    if (!later_day.has_value()) return std::nullopt;
    return *later_day + *first_time_of_day(Seconds(0));
  }
  return *day + *first_time_of_day(Seconds(0));
}

std::optional<local_days> CronFields::first_day_at_or_after(local_days day) const noexcept {
  const std::chrono::year_month_day date(day);
  std::chrono::year_month month = date.year() / date.month();
  unsigned least = static_cast<unsigned>(date.day());
  for (int i = 0; i <= kMonthsOfTheCalendar; ++i, month += std::chrono::months(1), least = 1) {
    if ((months & bit(static_cast<unsigned>(month.month()))) == 0) continue;
    const NumberSet rest = days_of(month) & from(least);
    if (rest != 0) return local_days(month / std::countr_zero(rest));
  }
  return std::nullopt;
}

std::optional<Seconds> CronFields::first_time_of_day(Seconds from) const noexcept {
  const std::chrono::hh_mm_ss time(from);
  auto hour = static_cast<int>(time.hours().count());
  auto minute = static_cast<int>(time.minutes().count());
  int second = first_of(seconds, static_cast<int>(time.seconds().count()));
  if (second < 0) ++minute;
  // If a unit of the result is later than that of `from`, the smaller units start from their lowest
  // values.
  const int later_minute = first_of(minutes, minute);
  if (later_minute < 0) ++hour;
  const int later_hour = first_of(hours, hour);
  if (later_hour < 0) return std::nullopt;
  if (later_hour != hour || later_minute < 0) {
    return std::chrono::hours(later_hour) + std::chrono::minutes(first_of(minutes, 0)) +
           Seconds(first_of(seconds, 0));
  }
  if (later_minute != minute || second < 0) second = first_of(seconds, 0);
  return std::chrono::hours(later_hour) + std::chrono::minutes(later_minute) + Seconds(second);
}

}  // namespace carillon::detail
