// Logs the occurrences of schedules that were skipped, those that a change of clocks moved, and
// schedules that cannot be read.
//
//   log.observe(engine, now_ns);     // once a turn
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/log_throttle.h"
#include "carillon/queue/engine.h"

namespace carillon::server {

class ScheduleLog {
 public:
  // Logs at most 20 lines a second, and how many more events there were. A schedule that skips
  // because the job before is still there has one line a minute, with the number of occurrences.
  void observe(queue::Engine& engine, std::uint64_t mono_ns);

 private:
  // Returns how many lines of this schedule were held back; nothing if this one must be held back,
  // too.
  std::optional<std::uint64_t> pass_overlap(const std::string& name, std::uint64_t mono_ns);

  static constexpr unsigned kMostLines = 20;  // a second

  std::map<std::string, base::LogThrottle> overlaps_;  // by the names of schedules
  std::uint64_t second_ = 0;
  unsigned lines_ = 0;
  std::uint64_t held_back_ = 0;
};

}  // namespace carillon::server
