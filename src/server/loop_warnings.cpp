// What the event loop logs (loop_warnings.h).
#include "server/loop_warnings.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

#include "server/text/timestamp.h"

namespace carillon::server {

namespace {

constexpr std::uint64_t kSlowNs = 1'000'000'000;

}  // namespace

std::optional<std::uint64_t> SlowSyncs::observe(std::uint64_t mono_ns, queue::Sequence requested,
                                                queue::Sequence durable) {
  std::optional<std::uint64_t> took;
  if (pending_ && durable >= pending_->sequence) {
    took = mono_ns - pending_->since_ns;
    if (*took >= kSlowNs && throttle_.pass(mono_ns)) {
      spdlog::warn("{} is slow: replies waited {:.1f} s for a sync", what_,
                   static_cast<double>(*took) / 1e9);
    }
    pending_.reset();
  }
  if (!pending_ && requested > durable) pending_ = {requested, mono_ns};
  return took;
}

// --- ClockSteps.

namespace {

constexpr std::int64_t kLoggedMs = 1'000;

}  // namespace

void ClockSteps::observe(const queue::Engine& engine) {
  const std::int64_t step = engine.clock_moved() - logged_;
  if (std::abs(step) < kLoggedMs) return;
  logged_ += step;
  const double seconds = static_cast<double>(std::abs(step)) / 1e3;
  if (step > 0) {
    return spdlog::warn(
        "the wall clock was set forward by {:g} s: jobs that are due by the new time are ready; a "
        "delay still lasts as long as was asked for",
        seconds);
  }
  spdlog::warn(
      "the wall clock was set back by {:g} s: jobs that are due later by the new time wait for it; "
      "a delay still lasts as long as was asked for",
      seconds);
}

// --- MemoryWarnings.

void MemoryWarnings::observe(std::uint64_t mono_ns, const queue::Engine& engine) {
  constexpr std::uint64_t kPeriodNs = 1'000'000'000;
  if (mono_ns - looked_ns_ < kPeriodNs) return;
  looked_ns_ = mono_ns;
  const queue::EngineStats stats = engine.stats();
  const std::size_t loaded = stats.jobs.loaded - stats.jobs.reserved;
  look(loaded_is_full_, stats.tubes_without_room > 0, loaded, limits_.max_loaded,
       "ready and delayed jobs are in memory, of {} at most (see carillon serve --memory): tubes "
       "that have more "
       "keep them on disk until there is room");
  // A client may reserve as many jobs as are free, so one client alone can have half of them. So
  // half counts as full.
  const std::size_t reserved = stats.jobs.reserved;
  const std::size_t most = limits_.max_reserved;
  look(reserved_is_full_, reserved >= most / 2 - most / 20, reserved, most,
       "jobs are reserved, of {} at most (see carillon serve --memory): clients that have many "
       "wait for more");
}

// Logs again only after three quarters were free meanwhile.
void MemoryWarnings::look(bool& full, bool now_full, std::size_t used, std::size_t most,
                          std::string_view line) {
  if (full) {
    full = now_full || used > most / 4;
  } else if (now_full) {
    full = true;
    spdlog::warn(fmt::runtime("{} " + std::string(line)), used, most);
  }
}

// --- The line of each event.

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
