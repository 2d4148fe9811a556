#include "timer/cron/posix_rule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <utility>

namespace carillon::detail {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::seconds;
using std::chrono::sys_seconds;

// Each `read` removes what it reads from the front of the text. It returns false if that is not
// there.
class PosixRuleReader {
 public:
  explicit PosixRuleReader(std::string_view text) noexcept : rest_(text) {}

  bool read(PosixRule& rule) {
    seconds behind{0};
    if (!read_name() || !read_time(behind)) return false;
    rule.standard_ = -behind;
    if (rest_.empty()) return true;
    if (!read_name()) return false;
    rule.summer_ = rule.standard_ + std::chrono::hours(1);
    if (!rest_.empty() && rest_.front() != ',') {
      if (!read_time(behind)) return false;
      rule.summer_ = -behind;
    }
    rule.changes_ = true;
    return read(rule.start_) && read(rule.end_) && rest_.empty();
  }

 private:
  bool take(char c) noexcept {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool read_name() {
    const bool quoted = take('<');
    const auto is_of_name = [quoted](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             (quoted && ((c >= '0' && c <= '9') || c == '+' || c == '-'));
    };
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_of_name);
    const auto length = static_cast<std::size_t>(end - rest_.begin());
    rest_.remove_prefix(length);
    return length >= 3 && (!quoted || take('>'));
  }

  bool read(unsigned& number, unsigned most) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc() || number > most) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

  // [+-]h[:m[:s]]
  bool read_time(seconds& time) {
    const bool negative = take('-');
    if (!negative) static_cast<void>(take('+'));
    unsigned hours = 0;
    unsigned minutes = 0;
    unsigned secs = 0;
    if (!read(hours, 167)) return false;
    if (take(':') && (!read(minutes, 59) || (take(':') && !read(secs, 59)))) return false;
    time = std::chrono::hours(hours) + std::chrono::minutes(minutes) + seconds(secs);
    if (negative) time = -time;
    return true;
  }

  bool read(PosixRule::YearlyChange& change) {
    if (!take(',')) return false;
    if (take('M')) {
      if (!read(change.month, 12) || change.month < 1 || !take('.')) return false;
      if (!read(change.week, 5) || change.week < 1 || !take('.') || !read(change.day, 6))
        return false;
    } else {
      change.kind = take('J') ? PosixRule::YearlyChange::kJulianDay : PosixRule::YearlyChange::kDay;
      if (!read(change.day, 365)) return false;
    }
    return !take('/') || read_time(change.time);
  }

  std::string_view rest_;
};

std::optional<PosixRule> PosixRule::parse(std::string_view text) {
  PosixRule rule;
  if (!PosixRuleReader(text).read(rule)) return std::nullopt;
  return rule;
}

std::chrono::local_seconds PosixRule::YearlyChange::in(std::chrono::year year) const noexcept {
  const std::chrono::weekday weekday(day);
  switch (kind) {
    case kWeekday:
      if (week == 5)
        return local_days(year / std::chrono::month(month) / weekday[std::chrono::last]) + time;
      return local_days(year / std::chrono::month(month) / weekday[week]) + time;
    case kJulianDay:  // 1 to 365; February 29 is never counted
      return local_days(year / 1 / 1) + days(day - 1 + (year.is_leap() && day >= 60 ? 1U : 0U)) +
             time;
    case kDay:  // 0 to 365
      break;
  }
  return local_days(year / 1 / 1) + days(day) + time;
}

EvenTime PosixRule::at(sys_seconds time) const noexcept {
  if (!changes_) return {kFirstTime, kEndOfTime, standard_};
  using Change = std::pair<sys_seconds, bool>;  // true: summer time begins; false: it ends
  std::array<Change, 6> changes;
  const std::chrono::year year = std::chrono::year_month_day(std::chrono::floor<days>(time)).year();
  auto change = changes.begin();
  for (int i = -1; i <= 1; ++i) {
    const std::chrono::year near = year + std::chrono::years(i);
    *change++ = {sys_seconds(start_.in(near).time_since_epoch() - standard_), true};
    *change++ = {sys_seconds(end_.in(near).time_since_epoch() - summer_), false};
  }
  // If summer time ends and begins at the same moment, the sort puts the end first: it goes on.
  std::sort(changes.begin(), changes.end());
  const auto next = std::find_if(changes.begin(), changes.end(),
                                 [time](const Change& c) { return c.first > time; });
  // In these two cases the rule makes no sense.
  if (next == changes.begin() || next == changes.end()) return {kFirstTime, kEndOfTime, standard_};
  const Change& last = *std::prev(next);
  return {last.first, next->first, last.second ? summer_ : standard_};
}

}  // namespace carillon::detail
