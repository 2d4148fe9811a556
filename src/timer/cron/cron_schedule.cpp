#include "carillon/timer/cron_schedule.h"

#include <algorithm>

#include "timer/cron/cron_fields.h"
#include "timer/cron/cron_parser.h"
#include "timer/cron/time_zone.h"

namespace carillon {
namespace detail {

using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

struct CronRule {
  std::string expression;
  CronFields fields;
  TimeZone zone;

  std::optional<sys_seconds> next(sys_seconds after) const;
  CronSchedule::AtChange at_change(sys_seconds time) const;
};

namespace {

local_seconds local(sys_seconds time, seconds ahead) noexcept {
  return local_seconds(time.time_since_epoch() + ahead);
}

// Finds the first matching local time at or after a given one. It keeps the last answer, and
// searches again only if that does not fit the next question: the given times mostly grow.
class Search {
 public:
  explicit Search(const CronFields& fields) noexcept : fields_(fields) {}

  std::optional<local_seconds> first_at_or_after(local_seconds from) noexcept {
    const bool known = asked_ <= from && (!found_.has_value() || from <= *found_);
    if (!known) {
      asked_ = from;
      found_ = fields_.first_at_or_after(from);
    }
    return found_;
  }

 private:
  const CronFields& fields_;
  local_seconds asked_ = local_seconds::max();  // max(): nothing was asked yet
  std::optional<local_seconds> found_;
};

}  // namespace

// Goes from one EvenTime to the next. Within one, local time and UTC differ by a constant.
std::optional<sys_seconds> CronRule::next(sys_seconds after) const {
  Search search(fields);
  sys_seconds from = std::clamp(after, kFirstTime, kEndOfTime) + seconds(1);
  while (from < kEndOfTime) {
    const EvenTime now = zone.at(from);
    local_seconds begin = local(from, now.ahead);
    if (!fields.every_hour && now.begin > kFirstTime) {
      const EvenTime before = zone.at(now.begin - seconds(1));
      const local_seconds before_change = local(now.begin, before.ahead);
      if (from == now.begin && before_change < begin) {
        const auto skipped = search.first_at_or_after(before_change);
        if (skipped.has_value() && *skipped < begin) return from;
      }
      begin = std::max(begin, before_change);  // the clocks have shown the earlier times already
    }
    const auto found = search.first_at_or_after(begin);
    if (!found.has_value()) return std::nullopt;
    if (*found < local(now.end, now.ahead))
      return sys_seconds(found->time_since_epoch() - now.ahead);
    from = now.end;
  }
  return std::nullopt;
}

CronSchedule::AtChange CronRule::at_change(sys_seconds time) const {
  if (fields.every_hour) return CronSchedule::AtChange::kNone;
  const EvenTime now = zone.at(time);
  const local_seconds shown = local(time, now.ahead);
  if (fields.first_at_or_after(shown) != shown) return CronSchedule::AtChange::kAfterGap;
  const bool again = now.end < kEndOfTime && shown >= local(now.end, zone.at(now.end).ahead);
  return again ? CronSchedule::AtChange::kShownTwice : CronSchedule::AtChange::kNone;
}

}  // namespace detail

CronSchedule::CronSchedule(std::string_view expression, std::string_view zone)
    : rule_(new detail::CronRule{std::string(expression), detail::parse_cron(expression),
                                 detail::TimeZone(zone)}) {}

std::optional<std::chrono::sys_seconds> CronSchedule::next_after(
    std::chrono::sys_seconds after) const {
  return rule_->next(after);
}

CronSchedule::AtChange CronSchedule::at_change(std::chrono::sys_seconds time) const {
  return rule_->at_change(time);
}

std::chrono::seconds CronSchedule::ahead_of_utc(std::chrono::sys_seconds time) const {
  return rule_->zone.at(time).ahead;
}

const std::string& CronSchedule::expression() const noexcept {
  return rule_->expression;
}

const std::string& CronSchedule::zone() const noexcept {
  return rule_->zone.name();
}

}  // namespace carillon
