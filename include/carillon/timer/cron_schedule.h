// CronSchedule: the times that a cron expression means in a time zone.
//
//   const carillon::CronSchedule schedule("30 8 * * MON-FRI", "Europe/Berlin");
//   schedule.next(std::chrono::system_clock::now());  // the next working day's 8:30 in Berlin
//
// Five fields, or six with seconds in front; between them spaces or tabs:
//
//   [second]       0-59
//   minute         0-59
//   hour           0-23
//   day of month   1-31
//   month          1-12 or JAN-DEC
//   day of week    0-7 or SUN-SAT
//
//   *            every value                     ?         every value, as Quartz writes it; in
//                                                          the day fields only
//   8            that value                      8,12,20   a list of anything in this table
//   8-18         8 to 18, both included          FRI-MON   a range may wrap: FRI,SAT,SUN,MON
//   */15         every 15th value, from the      10-40/5   every 5th from 10 to 40
//                lowest                          10/5      every 5th from 10 to the highest
// in the day of month                            in the day of week
//   L            the month's last day            FRIL, 5L  the month's last Friday
//   L-3          3 days before that              MON#2     the month's second Monday
//   15W          Monday to Friday nearest to
//                the 15th, in the same month
//   LW           the month's last Monday to Friday
// instead of all fields
//   @yearly or @annually, @monthly, @weekly (Sunday), @daily or @midnight, @hourly
//
// Names may be in upper or lower case. Sunday is 0 and 7. As in Vixie's cron, if neither day field
// begins with `*` or `?`, a day that matches one of the two is enough: "0 0 13 * FRI" is each 13th
// and each Friday. Otherwise the day must match both.
//
// When the zone's clocks change
// -----------------------------
// For changes of any size:
//  - An expression that does not allow every hour means certain times of day: "30 2 * * *",
//    "*/15 1-3 * * *". Each comes exactly once. All the times that the clocks skip become one time:
//    the moment at which the clocks go forward (3:00, if they skip the hour from 2:00). If the
//    clocks show a time twice, the first one counts.
//  - An expression that allows every hour goes by elapsed time: "30 * * * *", "*/15 * * * *". Its
//    times are all moments at which the zone's clocks show a matching time. So the hour that the
//    clocks skip has no times, and an hour that they show twice has its times twice: what runs
//    every 15 minutes is never silent for an hour.
//
// Each time follows the zone's rules for its own day, from the machine's tz database as it was when
// the process first used it. Beyond the last change listed there, mostly in the year 2037, the
// zone's last rule goes on.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "carillon/wheel/saturated.h"

namespace carillon {
namespace detail {
struct CronRule;
}

// The expression is not valid. what() says which field and value are wrong, what is allowed there,
// and the column.
class CronError : public std::invalid_argument {
 public:
  CronError(const std::string& what, std::size_t column)
      : std::invalid_argument(what), column_(column) {}

  // The expression's first character is column 1.
  std::size_t column() const noexcept { return column_; }

 private:
  std::size_t column_;
};

// A value, cheap to copy. Thread-safe.
class CronSchedule {
 public:
  // `zone` is a name of the tz database: "Europe/Berlin", "UTC". Throws CronError if the expression
  // is not valid, or has no time at all ("0 0 30 2 *"), and std::invalid_argument if there is no
  // such zone.
#if defined(CARILLON_CRON)
  CronSchedule(std::string_view expression, std::string_view zone);
#else
  template <class Text>
  CronSchedule(const Text&, std::string_view) {
    static_assert(sizeof(Text) == 0,
                  "cron expressions are a component of their own: find_package(carillon COMPONENTS "
                  "cron), and link carillon::cron");
  }
#endif

  // Returns the first time after `after`, or nothing if that is after the year 9999. O(fields),
  // about 0.2 us; 10 us for a time that is decades away.
  template <class Duration>
  std::optional<std::chrono::sys_seconds> next(std::chrono::sys_time<Duration> after) const {
    using std::chrono::seconds;
    const Duration since = after.time_since_epoch();
    if constexpr (std::is_floating_point_v<typename Duration::rep>) {
      using Seconds = std::chrono::duration<long double>;
      return next_after(std::chrono::sys_seconds(
          saturated<seconds>(Seconds(std::floor(Seconds(since).count())))));
    } else if constexpr (std::is_convertible_v<Duration, seconds>) {
      return next_after(std::chrono::sys_seconds(saturated<seconds>(since)));
    } else {
      return next_after(std::chrono::floor<seconds>(after));
    }
  }

  // What the zone's clocks do at a time that next() has returned.
  enum class AtChange { kNone, kAfterGap, kShownTwice };
  // Returns kAfterGap if the time stands only for times of day that the clocks skip as they go
  // forward then; kShownTwice if the clocks will go back and show the same time of day once more,
  // which does not count; kNone in all other cases, and for an expression that allows every hour.
  // O(fields).
  AtChange at_change(std::chrono::sys_seconds time) const;
  // Returns how far the zone's clocks are ahead of UTC then; negative if they are behind. REQUIRES:
  // the time is between the years 1 and 9999.
  std::chrono::seconds ahead_of_utc(std::chrono::sys_seconds time) const;

  const std::string& expression() const noexcept;
  const std::string& zone() const noexcept;

 private:
  std::optional<std::chrono::sys_seconds> next_after(std::chrono::sys_seconds after) const;

  std::shared_ptr<const detail::CronRule> rule_;
};

}  // namespace carillon
