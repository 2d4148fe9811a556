// A calendar for tests: expressions are "daily HH:MM", and the zones are UTC, Summer (as Berlin's
// clocks go) and Later (three hours behind UTC). All occurrences from 2020 to 2040 are found by
// trying every minute.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/schedule.h"

namespace carillon::queue {

class TestCalendar {
 public:
  static constexpr UtcMs kMinute = 60'000;
  static constexpr UtcMs kHour = 60 * kMinute;
  static constexpr UtcMs kDay = 24 * kHour;
  static constexpr UtcMs kFirst = 1'577'836'800'000;  // 2020-01-01
  static constexpr UtcMs kEnd = kFirst + UtcMs{7'300} * kDay;

  // Returns all of them, in order. Throws std::invalid_argument.
  static const std::vector<Occurrence>& all(const std::string& cron, const std::string& zone) {
    static std::map<std::pair<std::string, std::string>, std::vector<Occurrence>> known;
    std::vector<Occurrence>& found = known[{cron, zone}];
    if (found.empty()) found = look(cron, zone);
    return found;
  }

  static Calendar calendar() {
    return [](const std::string& cron, const std::string& zone) -> Timetable {
      const std::vector<Occurrence>* times = &all(cron, zone);
      return [times](UtcMs after) -> std::optional<Occurrence> {
        const auto next = std::upper_bound(
            times->begin(), times->end(), after,
            [](UtcMs moment, const Occurrence& other) { return moment < other.at; });
        return next == times->end() ? std::nullopt : std::optional(*next);
      };
    };
  }

  // By how much the clocks of the zone Summer are ahead.
  static UtcMs summer(UtcMs utc) {
    static const std::vector<UtcMs> changes = summer_changes();
    const auto before = std::upper_bound(changes.begin(), changes.end(), utc) - changes.begin();
    return kHour * (before % 2 == 0 ? 1 : 2);
  }

 private:
  // The last Sundays of March and October at 1:00, by turns.
  static std::vector<UtcMs> summer_changes() {
    std::vector<UtcMs> changes;
    UtcMs last_sunday = 0;
    int month = 1;
    int day = 1;
    int year = 2020;
    for (UtcMs at = kFirst; at < kEnd; at += kDay) {
      const bool is_sunday = (at / kDay + 4) % 7 == 0;
      if (is_sunday) last_sunday = at;
      const bool leap = year % 4 == 0;
      const int lengths[] = {31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
      if (day == lengths[month - 1]) {
        if (month == 3 || month == 10) changes.push_back(last_sunday + kHour);
        day = 0;
        month = month % 12 + 1;
        if (month == 1) ++year;
      }
      ++day;
    }
    return changes;
  }

  static std::int64_t ahead(const std::string& zone, UtcMs utc) {
    if (zone == "UTC") return 0;
    if (zone == "Later") return -3 * static_cast<std::int64_t>(kHour);
    if (zone == "Summer") return static_cast<std::int64_t>(summer(utc));
    throw std::invalid_argument("zone: \"" + zone + "\" is not known");
  }

  static std::vector<Occurrence> look(const std::string& cron, const std::string& zone) {
    unsigned hour = 0;
    unsigned minute = 0;
    if (std::sscanf(cron.c_str(), "daily %u:%u", &hour, &minute) != 2)
      throw std::invalid_argument("cron: \"" + cron + "\" is not daily HH:MM");
    const UtcMs wanted = hour * kHour + minute * kMinute;
    const auto local = [&zone](UtcMs utc) {
      return static_cast<UtcMs>(static_cast<std::int64_t>(utc) + ahead(zone, utc));
    };
    std::vector<Occurrence> found;
    std::set<UtcMs> days;  // on which it has occurred
    for (UtcMs at = kFirst + kMinute; at < kEnd; at += kMinute) {
      const UtcMs now = local(at);
      const UtcMs shown_first = local(at - kMinute) + kMinute;  // if the clocks go on evenly
      for (UtcMs skipped = shown_first; skipped < now; skipped += kMinute) {
        if (skipped % kDay == wanted && days.insert(skipped / kDay).second)
          found.push_back({at, Occurrence::Clocks::kAfterGap});
      }
      if (now % kDay != wanted || !days.insert(now / kDay).second) continue;
      const bool again = local(at + kHour) == now;
      found.push_back({at, again ? Occurrence::Clocks::kShownTwice : Occurrence::Clocks::kEven});
    }
    return found;
  }
};

}  // namespace carillon::queue
