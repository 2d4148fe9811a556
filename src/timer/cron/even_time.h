// EvenTime: a stretch of time between two changes of a zone's clocks. Also the first and the last
// year of schedules.
#pragma once

#include <chrono>

namespace carillon::detail {

inline constexpr std::chrono::sys_seconds kFirstTime =
    std::chrono::sys_days(std::chrono::year(1) / 1 / 1);
inline constexpr std::chrono::sys_seconds kEndOfTime =
    std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1);

struct EvenTime {
  std::chrono::sys_seconds begin;  // kFirstTime if there is no change before
  std::chrono::sys_seconds end;    // kEndOfTime if there is no change after
  std::chrono::seconds ahead;      // how far the clocks are ahead of UTC
};

}  // namespace carillon::detail
