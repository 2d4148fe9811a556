// CronSchedule as a Calendar (calendar.h).
#include "server/text/calendar.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

#include "carillon/timer/cron_schedule.h"
#include "server/text/timestamp.h"

namespace carillon::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;
using SysMillis = std::chrono::sys_time<milliseconds>;

queue::Occurrence::Clocks clocks_of(CronSchedule::AtChange change) {
  using Clocks = queue::Occurrence::Clocks;
  switch (change) {
    case CronSchedule::AtChange::kAfterGap:
      return Clocks::kAfterGap;
    case CronSchedule::AtChange::kShownTwice:
      return Clocks::kShownTwice;
    case CronSchedule::AtChange::kNone:
      break;
  }
  return Clocks::kEven;
}

SysMillis sys_millis(queue::UtcMs utc) {
  return SysMillis(milliseconds(static_cast<milliseconds::rep>(utc)));
}

}  // namespace

queue::Calendar cron_calendar() {
  return [](const std::string& cron, const std::string& zone) -> queue::Timetable {
    return
        [times = CronSchedule(cron, zone)](queue::UtcMs after) -> std::optional<queue::Occurrence> {
          if (after > queue::kLastDue) return std::nullopt;
          const std::optional<sys_seconds> next = times.next(sys_millis(after));
          if (!next) return std::nullopt;
          const milliseconds at = next->time_since_epoch();
          return queue::Occurrence{.at = static_cast<queue::UtcMs>(at.count()),
                                   .clocks = clocks_of(times.at_change(*next))};
        };
  };
}

std::string format_in_zone(queue::UtcMs utc, const std::string& zone) {
  constexpr std::string_view kWholeSecond = ".000Z";
  std::chrono::minutes ahead{0};
  try {
    const CronSchedule any("@daily", zone);
    ahead = std::chrono::floor<std::chrono::minutes>(
        any.ahead_of_utc(std::chrono::floor<seconds>(sys_millis(utc))));
  } catch (const std::invalid_argument&) {
  }
  std::string text = format_timestamp(utc + static_cast<queue::UtcMs>(milliseconds(ahead).count()));
  text.resize(text.size() - (text.ends_with(kWholeSecond) ? kWholeSecond.size() : 1));
  if (zone == "UTC") return text + "Z";
  const auto minutes = std::chrono::abs(ahead).count();
  return text +
         fmt::format("{}{:02}:{:02}", ahead.count() < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

}  // namespace carillon::server
