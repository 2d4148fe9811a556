// The line of each event (schedule_log.h).
#include "server/schedule_log.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "server/timestamp.h"

namespace carillon::server {
namespace {

using What = queue::ScheduleEvent::What;

std::string count_of(const queue::ScheduleEvent& event) {
  const bool is_bound = event.count == queue::ScheduleEvent::kMostCounted;
  return (is_bound ? "at least " : "") + std::to_string(event.count) +
         (event.count == 1 ? " occurrence" : " occurrences");
}

void log(const queue::ScheduleEvent& event) {
  const std::string at = format_timestamp(event.occurrence);
  switch (event.what) {
    case What::kMissed:
      return spdlog::warn(
          "schedule {}: skipped {} from {} on, as their time was over when the server came to them",
          event.name, count_of(event), at);
    case What::kOverlap:
      return spdlog::warn("schedule {}: skipped {}, as the job before is still there", event.name,
                          at);
    case What::kPaused:
      return spdlog::info("schedule {}: skipped {} from {} on, as it was paused", event.name,
                          count_of(event), at);
    case What::kInGap:
      return spdlog::info(
          "schedule {}: skipped a time of day that the clocks of its zone skip at {}", event.name,
          at);
    case What::kShownTwice:
      return spdlog::info(
          "schedule {}: fired at {}; the clocks of its zone show this time of day twice, and it "
          "fires once",
          event.name, at);
    case What::kBroken:
      return spdlog::error("schedule {}: does not fire any more, as it cannot be read: {}",
                           event.name, event.why);
  }
}

}  // namespace

void ScheduleLog::observe(queue::Engine& engine, std::uint64_t mono_ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr unsigned kMost = 20;
  for (const queue::ScheduleEvent& event : engine.take_schedule_events()) {
    if (mono_ns / kSecond != second_) {
      second_ = mono_ns / kSecond;
      lines_ = 0;
      if (const auto more = std::exchange(held_back_, 0))
        spdlog::warn("schedules: {} more lines like the ones before", more);
    }
    if (lines_++ < kMost) {
      log(event);
    } else {
      ++held_back_;
    }
  }
}

}  // namespace carillon::server
