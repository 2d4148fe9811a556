// The occurrences of a cron expression as text, which tests compare.
#pragma once

#include <date/tz.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/timer/cron_schedule.h"

namespace carillon::testing {

using Times = std::vector<std::string>;

// Parses a time in UTC such as "2024-03-31 02:30:00". Throws std::invalid_argument.
inline std::chrono::sys_seconds utc(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%d-%u-%u %d:%d:%d%c", &year, &month, &day, &hour, &minute, &second,
                  &rest) != 6) {
    throw std::invalid_argument("not a time: " + text);
  }
  return std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) /
                               static_cast<int>(day)) +
         std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
}

// The time as the clocks of the zone show it, such as "2024-03-31 03:00:00 CEST".
inline std::string show(std::chrono::sys_seconds time, const std::string& zone) {
  return date::format("%F %T %Z", date::make_zoned(zone, time));
}

// The first `count` occurrences after a time in UTC. Fewer if there are no more.
inline Times occurrences(std::string_view expression, const std::string& zone,
                         const std::string& after_utc, std::size_t count) {
  const CronSchedule schedule(expression, zone);
  Times times;
  std::chrono::sys_seconds after = utc(after_utc);
  while (times.size() < count) {
    const auto next = schedule.next(after);
    if (!next.has_value()) break;
    times.push_back(show(*next, zone));
    after = *next;
  }
  return times;
}

}  // namespace carillon::testing
