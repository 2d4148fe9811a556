// PosixRule: the clock changes of every year, as POSIX writes them in TZ:
// "CET-1CEST,M3.5.0,M10.5.0/3".
//
// The last line of a zone's file in the tz database is such a rule (RFC 8536, 3.3). It applies to
// all time after the changes that the file lists. The library that reads these files (date 3.0)
// reads the list only. It has a class for such rules, but that does not compile as C++20, and does
// not know the negative hours of RFC 8536.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "timer/cron/even_time.h"

namespace carillon::detail {

class PosixRule {
 public:
  // Returns nothing if the text is not a rule.
  static std::optional<PosixRule> parse(std::string_view text);

  // Returns the stretch that contains `time`.
  EvenTime at(std::chrono::sys_seconds time) const noexcept;

 private:
  friend class PosixRuleReader;

  struct YearlyChange {
    enum Kind { kWeekday, kJulianDay, kDay };  // Mm.w.d, Jn, n

    std::chrono::local_seconds in(std::chrono::year year) const noexcept;

    Kind kind = kWeekday;
    unsigned month = 1;
    unsigned week = 1;  // 5 means the last
    unsigned day = 0;   // of the week (Sunday is 0), or of the year
    std::chrono::seconds time = std::chrono::hours(2);
  };

  std::chrono::seconds standard_{0};  // how far standard time is ahead of UTC
  std::chrono::seconds summer_{0};    // the same for summer time
  bool changes_ = false;              // the zone has summer time
  YearlyChange start_;                // of summer time, as clocks on standard time show it
  YearlyChange end_;                  // of summer time, as clocks on summer time show it
};

}  // namespace carillon::detail
