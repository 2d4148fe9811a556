// CronSchedule: the times that a cron expression means in a time zone.
//
//   const carillon::CronSchedule schedule("30 8 * * MON-FRI", "Europe/Berlin");
//   schedule.next(std::chrono::system_clock::now());      // the next working day's 8:30 in Berlin, as sys_seconds
//
// Five fields, or six with seconds in front; between them spaces or tabs:
//
//   [second 0-59]  minute 0-59  hour 0-23  day of month 1-31  month 1-12 or JAN-DEC  day of week 0-7 or SUN-SAT
//
//   *            every value                     ?         the same; in the day fields only (as
//                Quartz writes it)
//   8            that value                      8,12,20   each of a list, of whatever stands in this table
//   8-18         from, to and with               FRI-MON   may go round the end: FRI,SAT,SUN,MON
//   */15         every 15th value, from the      10-40/5   every 5th from 10 to 40
//                lowest                          10/5      every 5th from 10 to the highest
// in the day of month                            in the day of week
//   L            the month's last day            FRIL, 5L  the month's last Friday
//   L-3          3 days before that              MON#2     the month's second Monday
//   15W          Monday to Friday nearest to
//                the 15th, in the same month
//   LW           the month's last Monday to Friday
// in place of all fields
//   @yearly or @annually, @monthly, @weekly (Sunday), @daily or @midnight, @hourly
//
// Names in any case. Sunday is 0 and 7. As in Vixie's cron: if both day fields say something, a day
// that either of them means will do: "0 0 13 * FRI" is each 13th and each Friday. If one of them
// begins with `*` or `?`, both must hold.
//
// When the zone's clocks change
// -----------------------------
// The rule is that of Vixie's cron, for changes of any size:
//  - An expression is periodic if minute or hour begins with `*`, or admits all values: "*/15 * * *
//    *", "30 * * * *". It goes by elapsed time: at each moment at which the zone's clocks show a
//    time that it means. Nothing happens for the hour that is left out, and things happen in both
//    of the hours that look alike.
//  - Any other means certain times of day: "30 2 * * *". Each comes exactly once. Those that are
//    left out make one run together, at the moment at which the clocks go forward (at 3:00, of an
//    hour from 2:00). Of those that come twice, the first counts.
//
// Times are those of the zone at their own day, by the tz database of the machine, as it was when
// the process first used it. Beyond what is listed there, mostly the year 2037, the zone's last
// rule goes on.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace carillon {
namespace detail {
struct CronRule;
}

// An expression that means nothing. what() says which field and value, what is allowed there, and
// the column.
class CronError : public std::invalid_argument {
 public:
  CronError(const std::string& what, std::size_t column)
      : std::invalid_argument(what), column_(column) {}

  std::size_t column() const noexcept { return column_; }  // 1: the expression's first character

 private:
  std::size_t column_;
};

// A value, cheap to copy. Thread-safe.
class CronSchedule {
 public:
  // `zone` is a name of the tz database: "Europe/Berlin", "UTC". Throws CronError, also if the
  // expression can never happen ("0 0 30 2 *"), and std::invalid_argument if there is no such zone.
  CronSchedule(std::string_view expression, std::string_view zone);

  // The first time later than `after`. Nothing if that is later than the year 9999. O(fields), some
  // 0.2 us; 10 us for a time that is decades away.
  template <class Duration>
  std::optional<std::chrono::sys_seconds> next(std::chrono::sys_time<Duration> after) const {
    return next_after(std::chrono::floor<std::chrono::seconds>(after));
  }

  const std::string& expression() const noexcept;
  const std::string& zone() const noexcept;

 private:
  std::optional<std::chrono::sys_seconds> next_after(std::chrono::sys_seconds after) const;

  std::shared_ptr<const detail::CronRule> rule_;
};

}  // namespace carillon
