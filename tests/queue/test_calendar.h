// A calendar for tests: expressions are "daily HH:MM", and the zones are UTC, Summer (as Berlin's
// clocks go from October 2023 until March 2025) and Later (three hours behind UTC).
#pragma once

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/queue/schedule.h"

namespace carillon::queue {

class TestCalendar {
 public:
  static Calendar calendar() {
    return [](const std::string& cron, const std::string& zone) -> Timetable {
      unsigned hour = 0;
      unsigned minute = 0;
      if (std::sscanf(cron.c_str(), "daily %u:%u", &hour, &minute) != 2)
        throw std::invalid_argument("cron: \"" + cron + "\" is not daily HH:MM");
      if (zone != "UTC" && zone != "Later" && zone != "Summer")
        throw std::invalid_argument("zone: \"" + zone + "\" is not known");
      const UtcMs wanted = (hour * 60 + minute) * UtcMs{60'000};
      return [wanted, zone](UtcMs after) -> std::optional<Occurrence> {
        for (UtcMs day = after / kDay * kDay - kDay;; day += kDay) {
          const Occurrence found = when(day + wanted, zone);
          if (found.at > after) return found;
        }
      };
    };
  }

 private:
  static constexpr UtcMs kHour = 3'600'000;
  static constexpr UtcMs kDay = 24 * kHour;
  static constexpr UtcMs kFirstDay = 1'698'624'000'000;      // 2023-10-30
  static constexpr UtcMs kLastDay = 1'743'206'400'000;       // 2025-03-29
  static constexpr UtcMs kSummerBegins = 1'711'846'800'000;  // 2024-03-31T01:00:00Z
  static constexpr UtcMs kSummerEnds = 1'729'990'800'000;    // 2024-10-27T01:00:00Z

  static bool is_summer(UtcMs utc) { return utc >= kSummerBegins && utc < kSummerEnds; }

  // When the clocks of a zone show this time of theirs, or go over it.
  static Occurrence when(UtcMs shown, const std::string& zone) {
    using Clocks = Occurrence::Clocks;
    if (zone == "UTC") return {shown, Clocks::kEven};
    if (zone == "Later") return {shown + 3 * kHour, Clocks::kEven};
    if (shown < kFirstDay || shown >= kLastDay)
      throw std::invalid_argument("Summer is not known at " + std::to_string(shown));
    const bool in_summer = is_summer(shown - 2 * kHour);
    const bool in_winter = !is_summer(shown - kHour);
    if (in_summer) return {shown - 2 * kHour, in_winter ? Clocks::kShownTwice : Clocks::kEven};
    if (in_winter) return {shown - kHour, Clocks::kEven};
    return {kSummerBegins, Clocks::kAfterGap};
  }
};

}  // namespace carillon::queue
