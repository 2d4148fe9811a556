// Here the commands for anyone are handled: remove, peek and kick.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// Returns the record of a buried or delayed job after a kick.
JobRecord kicked(const JobRecord& before, const JobHistory& history, const EngineClock& clock) {
  JobRecord after = before;
  after.history = history;
  ++after.history.kicks;
  if (after.buried()) after.revive(clock.has_expired(after));
  after.due = clock.utc();
  clock.counts_from_now(after);
  return after;
}

// One call visits at most this many lanes of a tube (groups.h).
constexpr std::size_t kLanesAtOnce = 16;

// Searches for the first delayed job of a lane. Returns false if the search must go on.
bool first_delayed(EngineState& s, Tube& lane, DelayedPeek& peek) {
  const auto found = [&](UtcMs due, JobId id) {
    if (peek.best == DueKey() || DueKey{due, id} < peek.best) peek.best = {due, id};
    return true;
  };
  if (!lane.delayed.empty()) {
    const LoadedJob& first = *lane.delayed.begin();
    return found(first.due_at, first.record.id);
  }
  const auto far = s.far.scan(lane, peek.next, 1);
  peek.next = far.next;
  if (!far.jobs.empty()) return found(s.placing.due_of(far.jobs.front()), far.jobs.front().id);
  return !far.more;
}

void begin_lane(Kick& kick) {
  kick.next_burial = 0;
  kick.next_due = {};
}

// Returns the records of the buried or delayed jobs of the kick's next step in a lane, and whether
// more can follow.
FarJobs::Found next_in_lane(EngineState& s, Tube& lane, Kick& kick) {
  const auto limit = static_cast<std::size_t>(
      std::min<std::uint64_t>(kick.bound - kick.kicked, EngineJobs::kKickStep));
  FarJobs::Found found{.jobs = {}, .next = {}, .more = true};
  if (kick.buried) {
    if (lane.record.buried > 0)
      found.jobs = s.store.scan_buried(lane.record.number, kick.next_burial, limit);
    // A job that expires as it is kicked is buried again. Without this it would be kicked once
    // more, and another job would not.
    std::erase_if(found.jobs,
                  [&kick](const JobRecord& job) { return job.burial >= kick.burials_before; });
    if (!found.jobs.empty()) kick.next_burial = found.jobs.back().burial + 1;
    found.more = !found.jobs.empty();
    return found;
  }
  for (const LoadedJob& job : lane.delayed) {
    if (found.jobs.size() == limit) break;
    found.jobs.push_back(job.record);
  }
  if (!found.jobs.empty()) return found;
  found = s.far.scan(lane, kick.next_due, limit);
  kick.next_due = found.next;
  return found;
}

// The same in a tube, in the order of the peeks: first the jobs without a group, then the groups
// one after the other. Sets `done` of the kick if no more can follow.
std::vector<JobRecord> next_to_kick(EngineState& s, Tube& tube, Kick& kick) {
  Tube* lane = tube.lane_from(kick.lane);
  for (std::size_t looks = 0; lane != nullptr && looks < kLanesAtOnce; ++looks) {
    if (lane->is_lane() && lane->record.number != kick.lane)
      begin_lane(kick);  // the lane before is gone
    kick.lane = lane->is_lane() ? lane->record.number : 0;
    auto found = next_in_lane(s, *lane, kick);
    if (!found.more) {
      lane = tube.lane_after(*lane);
      kick.lane = lane == nullptr ? UINT32_MAX : lane->record.number;
      begin_lane(kick);
      kick.done = lane == nullptr;
    }
    if (!found.jobs.empty() || found.more) return std::move(found.jobs);
  }
  kick.done = lane == nullptr;
  return {};
}

}  // namespace

Outcome EngineJobs::remove(ClientId id, Now now, JobId job_id) {
  EngineState& s = state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.removals.record_for(s.clients.client(id), job_id);
  if (!record) return {.done = false, .durable_at = s.appender.last_sequence()};
  return {.done = true, .durable_at = s.removals.remove(*record, s.removals.work_of(*record))};
}

std::optional<JobView> EngineJobs::peek(Now now, JobId id) {
  EngineState& s = state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.jobs.record_of(id);
  if (!record) return std::nullopt;
  return s.jobs.view(*record);
}

std::optional<JobView> EngineJobs::peek_ready(ClientId id, Now now) {
  EngineState& s = state_;
  s.advance(now);
  const LoadedJob* const first = s.clients.client(id).tube_in_use->first();
  if (first == nullptr) return std::nullopt;
  return s.jobs.view(first->record);
}

void EngineJobs::peek_delayed(ClientId id, Now now, DelayedPeek& peek) {
  EngineState& s = state_;
  s.advance(now);
  Tube& tube = *s.clients.client(id).tube_in_use;
  Tube* lane = tube.lane_from(peek.lane);
  if (lane != nullptr && lane->is_lane() && lane->record.number != peek.lane) peek.next = {};
  for (std::size_t looks = 0; lane != nullptr && looks < kLanesAtOnce; ++looks) {
    if (!first_delayed(s, *lane, peek)) return;
    lane = peek.any && peek.best != DueKey() ? nullptr : tube.lane_after(*lane);
    peek.lane = lane == nullptr ? UINT32_MAX : lane->record.number;
    peek.next = {};
  }
  if (lane != nullptr) return;
  peek.done = true;
  if (peek.best == DueKey()) return;
  const std::optional<JobRecord> best = s.jobs.record_of(peek.best.id);
  if (best && s.jobs.state_of(*best) == JobState::kDelayed) {
    peek.found = s.jobs.view(*best);
  } else {
    peek = {.found = {}, .any = true};  // the job has left meanwhile
  }
}

std::optional<JobView> EngineJobs::peek_buried(ClientId id, Now now) {
  EngineState& s = state_;
  s.advance(now);
  Tube& tube = *s.clients.client(id).tube_in_use;
  const Tube* const lane = tube.groups ? tube.groups->with_buried() : &tube;
  if (lane == nullptr || lane->record.buried == 0) return std::nullopt;
  const std::vector<JobRecord> first = s.store.scan_buried(lane->record.number, 0, 1);
  if (first.empty())
    throw StoreDamage("the tube " + tube.record.name + " has buried jobs, but none is stored");
  return s.jobs.view(first.front());
}

Sequence EngineState::kick(const std::vector<JobRecord>& records, Anew anew) {
  for (const JobRecord& before : records) {
    const LoadedJob* job = jobs.loaded(before.id);
    CARILLON_REQUIRE(
        before.tube == records.front().tube && (job == nullptr || job->state == JobState::kDelayed),
        before.id, before.tube, records.front().tube);
    JobRecord after = kicked(before, job != nullptr ? job->history : before.history, clock);
    if (anew == Anew::kOfAll) after.begin_anew(clock.has_expired(after));
    appender.add_change(before, std::move(after));
  }
  std::vector<JobRecord> after;
  for (const JobChange& change : appender.changes.jobs) after.push_back(*change.after);
  const Sequence sequence = appender.append();

  counts.totals.kicked += after.size();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const JobRecord& record = after[i];
    LoadedJob* job = jobs.loaded(record.id);
    if (job == nullptr) {
      far.note(tubes.numbered(record.tube), records[i], -1);
      job = &jobs.add_to_memory(record);
    }
    jobs.detach(*job);
    job->record = record;
    job->history = record.history;
    job->sequence = sequence;
    jobs.make_ready(*job);
    Tube& tube = *job->tube;
    // Serve after each job, as beanstalkd does: a waiting client gets the first job kicked, not the
    // most urgent one.
    clients.serve(tube);
    if (LoadedJob* still = jobs.loaded(record.id)) far.make_room(tube, *still);
  }
  return sequence;
}

void EngineJobs::kick(ClientId id, Now now, Kick& kick) {
  EngineState& s = state_;
  s.advance(now);
  Tube& tube = *s.clients.client(id).tube_in_use;
  if (!std::exchange(kick.begun, true)) {
    // A worker may release the kicked jobs, delayed, as fast as they are kicked. So this kicks at
    // most as many jobs as there are now.
    kick.buried = tube.all_buried() > 0;
    if (kick.buried) kick.burials_before = s.appender.next_burial();
    kick.bound = std::min(kick.bound, kick.buried ? tube.all_buried() : tube.all_delayed());
  }
  try {
    const std::vector<JobRecord> records = next_to_kick(s, tube, kick);
    if (!records.empty()) kick.durable_at = s.kick(records);
    kick.kicked += records.size();
    kick.done = kick.done || kick.kicked == kick.bound;
  } catch (const StoreError& error) {
    kick.done = true;
    if (kick.kicked == 0) throw;
    kick.error = error.what();
  }
}

Outcome EngineJobs::kick_job(Now now, JobId id) {
  EngineState& s = state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.jobs.record_of(id);
  if (!record) return {.done = false, .durable_at = s.appender.last_sequence()};
  const JobState state = s.jobs.state_of(*record);
  if (state != JobState::kBuried && state != JobState::kDelayed)
    return {.done = false, .durable_at = s.appender.last_sequence()};
  return {.done = true, .durable_at = s.kick({*record})};
}

}  // namespace carillon::queue
