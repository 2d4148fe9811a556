// Here the engine reports: statistics, lists, and the check of its invariants.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "queue/engine/jobs/retention.h"
#include "queue/engine/schedules/schedules.h"

namespace carillon::queue {

namespace {

// The tube's alone, without those of its groups.
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

void check(bool holds, const char* invariant, const std::string& of) {
  if (holds) return;
  std::fprintf(stderr, "queue engine: invariant broken: %s (%s)\n", invariant, of.c_str());
  std::abort();
}

void check_jobs_in_memory(const Tube& tube) {
  const std::string& name = tube.record.name;
  std::uint64_t urgent = 0;
  for (const LoadedJob& job : tube.ready) {
    check(job.state == JobState::kReady && job.tube == &tube, "a ready job is in its tube", name);
    check(job.armed() == (job.record.extras->expires != 0), "a ready job expires in time", name);
    urgent += job.record.priority < kUrgentBelow ? 1U : 0U;
  }
  check(urgent == tube.urgent, "urgent jobs are counted", name);
  for (const LoadedJob& job : tube.delayed) {
    check(job.state == JobState::kDelayed && job.tube == &tube && !job.armed(),
          "a delayed job is in its tube, without a timer", name);
  }
  const Tube& head = tube.head();
  if (tube.delayed.empty() || head.ripening()) return;
  check(head.due_time.armed(), "the first delayed job becomes ready in time", name);
}

// All jobs before the cursor are in memory. No job that is in the store alone is due before
// next_far. Those before FarCount::counted are counted.
void check_far_jobs(const Tube& tube, const std::vector<JobRecord>& far) {
  const std::string& name = tube.record.name;
  check(far.size() == tube.far, "far jobs are counted", name);
  std::uint64_t ready = 0;
  std::uint64_t urgent = 0;
  for (const JobRecord& record : far) {
    const DueKey key{record.due, record.id};
    check(key >= tube.cursor, "a job before the cursor is in memory", name);
    check(record.due >= tube.next_far, "no far job is due before next_far", name);
    if (!tube.far_count) continue;
    const bool counted = key < tube.far_count->counted;
    check(counted || tube.far_count->time.armed(), "the far job will be counted", name);
    check(counted || record.due >= tube.far_count->next, "no other far job is due before", name);
    ready += counted ? 1U : 0U;
    urgent += counted && record.priority < kUrgentBelow ? 1U : 0U;
  }
  if (!tube.far_count) return check(!tube.starved, "a starved tube counts its far jobs", name);
  check(ready == tube.far_count->ready, "far jobs that are ready are counted", name);
  check(urgent == tube.far_count->urgent, "far jobs that are ready and urgent are counted", name);
}

void check_line(Tube& tube, const EngineClock& clock) {
  const auto waits = [](const Watch& watch) { return watch.client->waiting; };
  if (std::none_of(tube.waiting.begin(), tube.waiting.end(), waits)) return;
  if (!tube.open()) return;
  const LoadedJob* const first = tube.first();
  if (first == nullptr || clock.has_expired(first->record)) return;
  const std::string& name = tube.record.name;
  check(tube.limits != nullptr, "nobody waits while a job is ready and readable", name);
  const std::uint64_t most = tube.record.settings->limits.max_running;
  if (most > 0 && tube.running() >= most) return;
  const TubeLimits& limits = *tube.limits;
  check(limits.wake.armed(), "who waits for a token is served", name);
  const bool is_due = limits.wake.expiry() <= clock.mono();
  check(is_due || !limits.limiter.may_start(tube.running(), clock.mono()),
        "nobody waits while the limits let a job go out", name);
}

void check_groups(const Tube& tube) {
  const std::string& name = tube.record.name;
  check(!tube.is_lane() || tube.turn, "a lane has its turn", name);
  if (tube.turn && tube.turn->rests) {
    check(tube.limits != nullptr, "a group rests for its limits", name);
    const std::uint64_t most = tube.record.settings->limits.max_running;
    check((most > 0 && tube.running() >= most) || tube.limits->wake.armed(),
          "a group does not rest for ever", name);
  }
  check(tube.is_lane() || (tube.turn != nullptr) == (tube.groups != nullptr),
        "a tube has its turn while it has groups", name);
  check(tube.groups || tube.record.lanes == 0, "the lanes that are stored are there", name);
  if (!tube.groups) return;
  check(tube.groups->check_invariants(), "each lane has its place in line", name);
  check(tube.groups->counted() == tube.groups->sums, "the sums are those of all groups", name);
  check(tube.groups->stored() == tube.record.lanes, "lanes that are stored are counted", name);
}

void check_client(const Client& client, ClientId id) {
  check(client.held.size() == client.deadlines.size(), "held jobs have deadlines",
        std::to_string(id));
  check(!client.watches.empty(), "a client watches something", std::to_string(id));
  check(client.by_tube.size() == client.watches.size(), "all watches are found by their tubes",
        std::to_string(id));
  for (const auto& watch : client.watches) {
    const bool may_be_in_line = watch->position < client.in_lines;
    check(client.watches[watch->position] == watch, "a watch knows its position",
          std::to_string(id));
    check(watch->waiting_hook.is_linked() ? may_be_in_line : !client.waiting || client.over_share,
          "a client is in lines as far as it knows", std::to_string(id));
  }
  check(client.leaving_hook.is_linked() == (client.in_lines > 0 && !client.waiting),
        "who waits no more leaves the lines", std::to_string(id));
  for (const LoadedJob& job : client.held) {
    check(job.state == JobState::kReserved && job.holder == &client && job.armed(),
          "a held job is reserved", std::to_string(id));
  }
}

void check_queued_endings(const EngineState& s, std::size_t ending) {
  const std::size_t held = s.pending_endings.held.size() + s.doubted.held.size();
  check(held == s.queued_endings.size(), "each job that ends has its ending",
        std::to_string(s.queued_endings.size()));
  std::size_t others = 0;
  s.queued_endings.for_each([&others](JobId, const auto& end) {
    if (end.ending) ++others;
  });
  check(ending + others == s.queued_endings.size(), "jobs that end without a worker are counted",
        std::to_string(ending));
}

// What the tubes have, counted one by one.
struct Found {
  JobCounts jobs;
  std::uint64_t scheduled = 0;
  std::size_t loaded = 0;
  std::size_t ending = 0;
  std::size_t waiting = 0;  // entries in waiting lines

  void add(const Tube& tube) {
    jobs.urgent += tube.urgent_jobs();
    jobs.ready += tube.ready_jobs();
    jobs.reserved += tube.reserved;
    jobs.buried += tube.record.buried;
    scheduled += tube.record.scheduled;
    loaded += tube.loaded;
    ending += tube.ending;
    waiting += tube.waiting.size();
  }
};

void check_tube(EngineState& s, Tube& tube) {
  const std::string& name = tube.record.name;
  check(&tube == s.default_tube || tube.referenced(), "a tube that nothing refers to is forgotten",
        name);
  check(tube.loaded == tube.ready.size() + tube.delayed.size() + tube.reserved,
        "loaded = ready + delayed + reserved", name);
  check(tube.loaded <= tube.record.scheduled, "a loaded job is a scheduled one", name);
  const bool waits_for_room = tube.starved && tube.queued() > 0;
  check(tube.far == 0 || waits_for_room || tube.load_time.armed(), "far jobs will be loaded", name);
  check_jobs_in_memory(tube);
  std::vector<JobRecord> far = s.store.scan_due(tube.record.number, {}, SIZE_MAX);
  std::erase_if(far, [&s](const JobRecord& record) { return s.loaded(record.id) != nullptr; });
  check_far_jobs(tube, far);
  check(tube.record.settings->limits == Limits() || tube.limits, "limits hold", name);
  check((*tube.record.settings).put_rate == Limits() || tube.puts, "a rate holds", name);
  check(Retention::check_invariants(s, tube), "a dead job will go in time", name);
  check_groups(tube);
  check_line(tube, s.clock);
}

void check_sums(const EngineState& s, const Found& found) {
  check(found.jobs.urgent == s.sums.urgent && found.jobs.ready == s.sums.ready &&
            found.jobs.reserved == s.sums.reserved && found.jobs.buried == s.sums.buried &&
            found.scheduled == s.scheduled,
        "the sums are those of all tubes", "ready, reserved, buried and urgent jobs");
  check(found.loaded == s.jobs.size(), "every job in memory is in a tube",
        std::to_string(found.loaded));
}

void check_clients(const EngineState& s, const Found& found) {
  std::size_t held = s.pending_endings.held.size() + s.doubted.held.size();
  std::size_t in_lines = 0;
  std::uint64_t waiting = 0;
  for (const auto& [id, client] : s.clients) {
    check_client(*client, id);
    held += client->held.size();
    in_lines += static_cast<std::size_t>(
        std::count_if(client->watches.begin(), client->watches.end(),
                      [](const auto& watch) { return watch->waiting_hook.is_linked(); }));
    waiting += client->waiting ? 1U : 0U;
  }
  for (const auto& client : s.gone) {
    check(!client->watches.empty(), "who has left nothing behind is forgotten",
          std::to_string(client->id));
    held += client->held.size();
  }
  check(waiting == s.waiting, "waiting clients are counted", std::to_string(s.waiting));
  check(held == found.jobs.reserved, "every reserved job has a holder", std::to_string(held));
  check(in_lines == found.waiting, "each entry in a waiting line is of a client",
        std::to_string(in_lines));
}

void check_ended_keys(const EngineState& s) {
  const std::vector<KeyRecord> keys = s.store.scan_ended_keys(0, SIZE_MAX);
  auto counted = static_cast<std::size_t>(std::count_if(
      keys.begin(), keys.end(), [](const KeyRecord& key) { return key.tube == kTokens; }));
  for (const Tube* tube : s.tube_order) counted += tube->record.ended_keys;
  check(counted == keys.size(), "keys whose jobs are gone are counted", std::to_string(counted));
  check(keys.empty() || (keys.front().until >= s.keys_from && s.keys_end != UINT64_MAX),
        "keys whose jobs are gone will be forgotten", std::to_string(s.keys_from));
}

}  // namespace

std::optional<JobStats> EngineReports::job_stats(Now now, JobId id) {
  EngineState& s = state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.record_of(id);
  if (!record) return std::nullopt;

  JobStats stats;
  stats.record = *record;
  const Tube& tube = s.tube_numbered(record->tube);
  stats.tube = tube.head().record.name;
  if (tube.is_lane()) stats.group = tube.record.name;
  stats.state = s.state_of(*record);
  stats.age = s.clock.utc() > record->created ? s.clock.utc() - record->created : 0;
  stats.durable_at = s.durable_at(id);
  const LoadedJob* job = s.loaded(id);
  if (job != nullptr) stats.record.history = job->history;
  s.show_expiry(stats.record);
  if (job != nullptr && job->holder != nullptr) stats.worker = job->holder->name;
  stats.due = std::min(s.due_of(*record), kLastDue);
  stats.retry = s.policy_of(*record);
  if (stats.state == JobState::kDelayed) stats.time_left = s.clock.left_until(s.due_of(*record));
  const bool is_over =
      job != nullptr && (job->holder == &s.pending_endings || job->holder == &s.doubted);
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
  stats.jobs = s.sums;
  stats.jobs.delayed = s.scheduled - s.sums.ready - s.sums.reserved;
  stats.jobs.loaded = s.jobs.size();
  stats.waiting = s.waiting;
  stats.timeouts = s.timeouts;
  stats.fired = s.fired;
  stats.lateness = s.lateness;
  stats.totals = s.totals;
  stats.tubes = s.tube_order.size();
  stats.tubes_without_room = s.far_counts;
  return stats;
}

bool EngineReports::count_timers(TimerCount& count) const {
  constexpr std::size_t kEntries = 1 << 18;
  const EngineState& s = state_;
  const std::array<const EngineMemory::Wheel*, TimerCount::kWheels.size()> wheels = {
      &s.due, &s.loading, &s.expiries, &s.ttrs, &s.pauses, &s.waits, &s.schedules->wheel};
  const auto next =
      wheels[count.wheel]->count_levels(count.timers[count.wheel], count.slot, kEntries);
  count.slot = next.value_or(0);
  if (!next) ++count.wheel;
  return count.wheel == wheels.size();
}

std::vector<std::string> EngineTubes::tubes() const {
  std::vector<std::string> names;
  for (const Tube* tube : state_.tube_order) names.push_back(tube->record.name);
  return names;
}

void Engine::check_invariants() const {
  EngineState& s = *state_;
  s.due.check_invariants();
  s.loading.check_invariants();
  s.expiries.check_invariants();
  s.ttrs.check_invariants();
  s.pauses.check_invariants();
  s.waits.check_invariants();

  Found found;
  s.for_each_tube([&](Tube& tube) {
    check_tube(s, tube);
    found.add(tube);
  });
  check_sums(s, found);
  s.jobs.for_each([&s](JobId id, const auto& job) {
    check(s.store.find(id) == job->record, "a record in memory is the stored one",
          std::to_string(id));
  });
  check_clients(s, found);
  check_queued_endings(s, found.ending);
  check_ended_keys(s);
  s.schedules->check_invariants();
}

}  // namespace carillon::queue
