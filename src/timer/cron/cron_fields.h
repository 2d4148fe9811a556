// CronFields: the fields of a cron expression as sets of numbers, and the local times that match
// it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace carillon::detail {

// Bit n of a set stands for n.
using NumberSet = std::uint64_t;

struct CronFields {
  NumberSet seconds = 1;  // 0 only
  NumberSet minutes = 0;
  NumberSet hours = 0;
  NumberSet days = 0;  // from 1
  NumberSet months = 0;
  NumberSet weekdays = 0;  // from Sunday, 0

  // Days that depend on the month.
  NumberSet days_before_last = 0;               // bit n: n days before the last
  NumberSet nearest_to = 0;                     // bit d: the day, Monday to Friday, nearest to d
  bool last_working_day = false;                // the last day that is Monday to Friday
  NumberSet last_weekdays = 0;                  // bit w: the last weekday w
  std::array<NumberSet, 6> weekdays_of_week{};  // [n], bit w: the n-th weekday w

  bool any_day = false;      // the field begins with * or ?
  bool any_weekday = false;  // the same
  bool every_hour = false;   // see cron_schedule.h, "When the zone's clocks change"

  // Returns the matching days of a month, bit d for day d.
  NumberSet days_of(std::chrono::year_month month) const noexcept;

  // Returns the first matching local time at or after `from`; nothing if there is never one.
  std::optional<std::chrono::local_seconds> first_at_or_after(
      std::chrono::local_seconds from) const noexcept;

 private:
  std::optional<std::chrono::local_days> first_day_at_or_after(
      std::chrono::local_days from) const noexcept;
  std::optional<std::chrono::seconds> first_time_of_day(std::chrono::seconds from) const noexcept;
};

}  // namespace carillon::detail
