// PosixRule: the clock changes of every year, as POSIX writes them in TZ:
// "CET-1CEST,M3.5.0,M10.5.0/3".
//
// That is the last line of a zone's file in the tz database (RFC 8536, 3.3), and holds for all time
// after the changes that the file lists. The library that reads those files (date 3.0) reads the
// list alone, and its own class for such rules neither compiles as C++20 nor knows the negative
// hours of RFC 8536.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "timer/cron/even_time.h"

namespace carillon::detail {

class PosixRule {
 public:
  // Nothing: that is no rule.
  static std::optional<PosixRule> parse(std::string_view text);

  // The stretch in which `time` lies.
  EvenTime at(std::chrono::sys_seconds time) const noexcept;

 private:
  friend class PosixRuleReader;

  struct YearlyChange {
    enum Kind { kWeekday, kJulianDay, kDay };  // Mm.w.d, Jn, n

    std::chrono::local_seconds in(std::chrono::year year) const noexcept;

    Kind kind = kWeekday;
    unsigned month = 1;
    unsigned week = 1;  // 5: the last
    unsigned day = 0;   // of the week from Sunday, 0; or of the year
    std::chrono::seconds time = std::chrono::hours(2);
  };

  std::chrono::seconds standard_{0};  // ahead of UTC
  std::chrono::seconds summer_{0};
  bool changes_ = false;
  YearlyChange start_;  // of summer time, on the clocks of standard time
  YearlyChange end_;    // on those of summer time
};

}  // namespace carillon::detail
