// EvenTime: a stretch of time during which a zone's clocks run evenly; and the years that are
// looked at.
#pragma once

#include <chrono>

namespace carillon::detail {

inline constexpr std::chrono::sys_seconds kFirstTime =
    std::chrono::sys_days(std::chrono::year(1) / 1 / 1);
inline constexpr std::chrono::sys_seconds kEndOfTime =
    std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1);

struct EvenTime {
  std::chrono::sys_seconds begin;  // kFirstTime: there is none
  std::chrono::sys_seconds end;    // kEndOfTime: there is none
  std::chrono::seconds ahead;      // of UTC
};

}  // namespace carillon::detail
