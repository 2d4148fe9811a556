// The line of each event (schedule_log.h).
#include "server/schedule_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <string>
#include <utility>

#include "server/text/timestamp.h"

namespace carillon::server {
namespace {

using What = queue::ScheduleEvent::What;

std::string count_of(const queue::ScheduleEvent& event) {
  const bool is_bound = event.count == queue::ScheduleEvent::kMostCounted;
  return (is_bound ? "at least " : "") + std::to_string(event.count) +
         (event.count == 1 ? " occurrence" : " occurrences");
}

// `held_back`: occurrences since the last line that were not logged.
void log(const queue::ScheduleEvent& event, std::uint64_t held_back) {
  const std::string at = format_timestamp(event.occurrence);
  switch (event.what) {
    case What::kMissed:
      return spdlog::warn(
          "schedule {}: skipped {} from {} on, as their time was over when the server came to them",
          event.name, count_of(event), at);
    case What::kOverlap:
      return spdlog::warn("schedule {}: skipped {}{}, as the job before is still there", event.name,
                          at, held_back > 0 ? fmt::format(" and {} before it", held_back) : "");
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

std::optional<std::uint64_t> ScheduleLog::pass_overlap(const std::string& name,
                                                       std::uint64_t mono_ns) {
  constexpr std::uint64_t kMinute = 60'000'000'000;
  // When the map has as many schedules as can have a line in a minute, those that may log again
  // leave it.
  if (overlaps_.size() >= std::size_t{kMostLines} * 60 && !overlaps_.contains(name)) {
    std::erase_if(overlaps_, [&](const auto& schedule) {
      base::LogThrottle asked = schedule.second;
      const auto held_back = asked.pass(mono_ns);
      held_back_ += held_back.value_or(0);
      return held_back.has_value();
    });
  }
  return overlaps_.try_emplace(name, kMinute).first->second.pass(mono_ns);
}

void ScheduleLog::observe(queue::Engine& engine, std::uint64_t mono_ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  for (const queue::ScheduleEvent& event : engine.take_schedule_events()) {
    if (mono_ns / kSecond != second_) {
      second_ = mono_ns / kSecond;
      lines_ = 0;
      if (const auto more = std::exchange(held_back_, 0))
        spdlog::warn("schedules: {} more events like the ones before", more);
    }
    // This comes first, because a line that is granted to a schedule takes its count along.
    if (lines_ == kMostLines) {
      ++held_back_;
      continue;
    }
    const auto held_back = event.what == What::kOverlap ? pass_overlap(event.name, mono_ns) : 0;
    if (!held_back) continue;
    ++lines_;
    log(event, *held_back);
  }
}

}  // namespace carillon::server
