// Here the engine reports: statistics of jobs, tubes, groups and itself.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// The counts of the tube without its groups.
JobCounts counts_of(const Tube& tube) {
  JobCounts counts;
  counts.urgent = tube.urgent_jobs();
  counts.ready = tube.ready_jobs();
  counts.reserved = tube.reserved;
  counts.delayed = tube.delayed_jobs();
  counts.buried = tube.record.buried;
  counts.total = tube.total;
  counts.loaded = tube.loaded;
  return counts;
}

JobCounts counts_with_groups(const Tube& tube) {
  JobCounts counts = counts_of(tube);
  if (!tube.groups) return counts;
  const Groups::Sums& sums = tube.groups->sums;
  counts.urgent = sums.urgent;
  counts.ready = sums.ready;
  counts.reserved = sums.reserved;
  counts.delayed = tube.all_delayed();
  counts.buried = sums.buried;
  counts.loaded = sums.loaded;
  return counts;
}

GroupStats stats_of_group(const Tube& lane) {
  const TubeSettings& settings = *lane.record.settings;
  return {.jobs = counts_of(lane),
          .settings = {.weight = settings.weight, .limits = settings.limits}};
}

}  // namespace

std::optional<std::vector<Attempt>> EngineReports::story(Now now, JobId id) {
  EngineState& s = state_;
  s.advance(now);
  std::vector<Attempt> story = s.store.story(id);
  if (story.empty() && !s.jobs.record_of(id)) return std::nullopt;  // a job takes its story with it
  return story;
}

std::optional<JobStats> EngineReports::job_stats(Now now, JobId id) {
  EngineState& s = state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.jobs.record_of(id);
  if (!record) return std::nullopt;

  JobStats stats;
  stats.record = *record;
  const Tube& tube = s.tubes.numbered(record->tube);
  stats.tube = tube.head().record.name;
  if (tube.is_lane()) stats.group = tube.record.name;
  stats.state = s.jobs.state_of(*record);
  stats.age = s.clock.utc() > record->created ? s.clock.utc() - record->created : 0;
  stats.durable_at = s.jobs.durable_at(id);
  const LoadedJob* job = s.jobs.loaded(id);
  if (job != nullptr) stats.record.history = job->history;
  s.jobs.show_expiry(stats.record);
  if (job != nullptr && job->holder != nullptr) stats.worker = job->holder->name;
  stats.due = std::min(s.placing.due_of(*record), kLastDue);
  stats.retry = s.endings.policy_of(*record);
  if (stats.state == JobState::kDelayed)
    stats.time_left = s.clock.left_until(s.placing.due_of(*record));
  const bool is_over = job != nullptr && s.endings.is_over(*job);
  if (stats.state == JobState::kReserved && !is_over)
    stats.time_left = s.clock.left_until_mono(job->expiry());
  return stats;
}

std::optional<TubeStats> EngineReports::tube_stats(Now now, std::string_view name) {
  EngineState& s = state_;
  s.advance(now);
  const Tube* tube = s.tubes.find(name);
  if (tube == nullptr) return std::nullopt;
  TubeStats stats;
  stats.name = tube->record.name;
  stats.jobs = counts_with_groups(*tube);
  stats.groups = tube->groups ? tube->groups->size() : 0;
  stats.using_ = tube->users;
  stats.watching = tube->watchers;
  stats.waiting = tube->waiting.size();
  stats.deletes = tube->deletes;
  stats.deaths = tube->deaths;
  stats.dead_deleted = tube->dead_deleted;
  stats.puts_too_fast = tube->puts_too_fast;
  stats.pauses = tube->pauses;
  stats.settings = *tube->record.settings;
  if (tube->paused()) {
    stats.pause = tube->pause;
    stats.pause_left = s.clock.left_until_mono(tube->pause_end.expiry());
  }
  return stats;
}

std::optional<GroupStats> EngineReports::group_stats(Now now, std::string_view name,
                                                     std::string_view group) {
  EngineState& s = state_;
  s.advance(now);
  const Tube* const tube = s.tubes.find(name);
  const Tube* const lane = tube == nullptr ? nullptr : s.tubes.find(*tube, group);
  if (lane == nullptr) return std::nullopt;
  return stats_of_group(*lane);
}

std::optional<GroupPage> EngineTubes::list_groups(Now now, std::string_view name,
                                                  std::uint32_t from, std::size_t limit) {
  EngineState& s = state_;
  s.advance(now);
  Tube* const tube = s.tubes.find(name);
  if (tube == nullptr) return std::nullopt;
  GroupPage page;
  for (Tube* lane = tube->lane_from(std::max(from, 1U)); lane != nullptr;
       lane = tube->lane_after(*lane)) {
    if (page.groups.size() == limit) {
      page.next = lane->record.number;
      break;
    }
    page.groups.push_back({.name = lane->record.name, .stats = stats_of_group(*lane)});
  }
  return page;
}

EngineStats EngineReports::stats(Now now) {
  state_.advance(now);
  return stats();
}

EngineStats EngineReports::stats() const {
  const EngineState& s = state_;
  EngineStats stats;
  stats.jobs = s.counts.sums;
  stats.jobs.delayed = s.counts.scheduled - s.counts.sums.ready - s.counts.sums.reserved;
  stats.jobs.loaded = s.jobs.size();
  stats.waiting = s.counts.waiting;
  stats.timeouts = s.counts.timeouts;
  stats.fired = s.counts.fired;
  stats.lateness = s.counts.lateness;
  stats.totals = s.counts.totals;
  stats.tubes = s.tubes.in_order().size();
  stats.tubes_without_room = s.counts.far_counts;
  return stats;
}

bool EngineReports::count_timers(TimerCount& count) const {
  CARILLON_REQUIRE(count.wheel < TimerCount::kWheels.size(), count.wheel);
  constexpr std::size_t kEntries = 1 << 18;
  const EngineState& s = state_;
  const std::array<const EngineWheel*, TimerCount::kWheels.size()> wheels = {
      &s.ripening.wheel(), &s.far.wheel(),     &s.endings.wheel(),  &s.clients.ttrs(),
      &s.throttle.wheel(), &s.clients.waits(), &s.schedules.wheel()};
  const auto next =
      wheels[count.wheel]->count_levels(count.timers[count.wheel], count.slot, kEntries);
  count.slot = next.value_or(0);
  if (!next) ++count.wheel;
  return count.wheel == wheels.size();
}

}  // namespace carillon::queue
