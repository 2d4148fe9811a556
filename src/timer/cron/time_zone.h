// TimeZone: how far a zone's clocks are ahead of UTC, and when that changes.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "timer/cron/even_time.h"

namespace carillon::detail {

// Thread-safe.
class TimeZone {
 public:
  // `name` is a name of the tz database. Throws std::invalid_argument if there is no such zone.
  explicit TimeZone(std::string_view name);
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;
  ~TimeZone();

  const std::string& name() const noexcept { return name_; }

  // Returns the stretch that contains `time`. REQUIRES: kFirstTime <= time <= kEndOfTime.
  EvenTime at(std::chrono::sys_seconds time) const;

 private:
  struct Rules;

  std::string name_;
  std::unique_ptr<const Rules> rules_;
};

}  // namespace carillon::detail
