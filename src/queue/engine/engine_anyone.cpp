// Here the commands for anyone are handled: remove, peek, kick and pause.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/engine/engine_state.h"

namespace carillon::queue {

namespace {

// Returns the record of a buried or delayed job after a kick.
JobRecord kicked(const JobRecord& before, const JobHistory& history, const EngineClock& clock) {
  JobRecord after = before;
  after.history = history;
  ++after.history.kicks;
  if (after.buried()) after.revive();
  after.due = clock.utc();
  clock.counts_from_now(after);
  return after;
}

}  // namespace

std::optional<JobRecord> Engine::State::record_to_remove(const Client& client, JobId id) {
  const LoadedJob* job = loaded(id);
  const bool others = job != nullptr && job->state == JobState::kReserved && job->holder != &client;
  return others ? std::nullopt : record_of(id);
}

void Engine::State::add_removal(const JobRecord& record) {
  add_change(record, std::nullopt);
  if (!record.extras) return;
  end_key(record);
  if (record.extras->has_story) changes.stories.push_back({record.id, {}});
}

Tube& Engine::State::finish_removal(const JobRecord& record) {
  Tube& tube = tube_numbered(record.tube);
  ++tube.deletes;
  if (LoadedJob* job = loaded(record.id)) {
    detach(*job);
    drop_from_memory(*job);
  } else {
    count_far(tube, record, -1);
  }
  return tube;
}

// The record may be that of the job in memory, which is gone then.
Sequence Engine::State::remove(const JobRecord& record) {
  add_removal(record);
  const Sequence sequence = append();
  Tube& tube = finish_removal(record);
  if (tube.limits) serve(tube);
  forget_if_unreferenced(tube);
  return sequence;
}

Outcome Engine::remove(ClientId id, Now now, JobId job_id) {
  State& s = *state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.record_to_remove(s.client(id), job_id);
  if (!record) return {.done = false, .durable_at = s.last_sequence};
  return {.done = true, .durable_at = s.remove(*record)};
}

std::optional<JobView> Engine::peek(Now now, JobId id) {
  State& s = *state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.record_of(id);
  if (!record) return std::nullopt;
  return s.view(*record);
}

std::optional<JobView> Engine::peek_ready(ClientId id, Now now) {
  State& s = *state_;
  s.advance(now);
  const Tube& tube = *s.client(id).tube_in_use;
  if (tube.ready.empty()) return std::nullopt;
  return s.view(tube.ready.begin()->record);
}

void Engine::peek_delayed(ClientId id, Now now, DelayedPeek& peek) {
  State& s = *state_;
  s.advance(now);
  Tube& tube = *s.client(id).tube_in_use;
  if (!tube.delayed.empty()) {
    peek.found = s.view(tube.delayed.begin()->record);
  } else {
    const State::FarJobs far = s.scan_far(tube, peek.next, 1);
    if (!far.jobs.empty()) peek.found = s.view(far.jobs.front());
    peek.next = far.next;
    peek.done = !far.more;
  }
  peek.done = peek.done || peek.found;
}

std::optional<JobView> Engine::peek_buried(ClientId id, Now now) {
  State& s = *state_;
  s.advance(now);
  const Tube& tube = *s.client(id).tube_in_use;
  if (tube.record.buried == 0) return std::nullopt;
  const std::vector<JobRecord> first = s.store.scan_buried(tube.record.number, 0, 1);
  if (first.empty())
    throw StoreDamage("the tube " + tube.record.name + " has buried jobs, but none is stored");
  return s.view(first.front());
}

Sequence Engine::State::kick(const std::vector<JobRecord>& records) {
  for (const JobRecord& before : records) {
    const LoadedJob* job = loaded(before.id);
    add_change(before, kicked(before, job != nullptr ? job->history : before.history, clock));
  }
  std::vector<JobRecord> after;
  for (const JobChange& change : changes.jobs) after.push_back(*change.after);
  const Sequence sequence = append();

  for (std::size_t i = 0; i < after.size(); ++i) {
    const JobRecord& record = after[i];
    LoadedJob* job = loaded(record.id);
    if (job == nullptr) {
      count_far(tube_numbered(record.tube), records[i], -1);
      job = &add_to_memory(record);
    }
    detach(*job);
    job->record = record;
    job->history = record.history;
    job->sequence = sequence;
    make_ready(*job);
    Tube& tube = *job->tube;
    // Serve after each job, as beanstalkd does: a waiting client gets the first job kicked, not the
    // most urgent one.
    serve(tube);
    if (LoadedJob* still = loaded(record.id)) make_room(tube, *still);
  }
  return sequence;
}

std::vector<JobRecord> Engine::State::next_to_kick(Tube& tube, Kick& kick) {
  const auto limit =
      static_cast<std::size_t>(std::min<std::uint64_t>(kick.bound - kick.kicked, kKickStep));
  std::vector<JobRecord> records;
  if (kick.buried) {
    records = store.scan_buried(tube.record.number, kick.next_burial, limit);
    if (!records.empty()) kick.next_burial = records.back().burial + 1;
    kick.done = records.empty();
    return records;
  }
  for (const LoadedJob& job : tube.delayed) {
    if (records.size() == limit) break;
    records.push_back(job.record);
  }
  if (!records.empty()) return records;
  const FarJobs far = scan_far(tube, kick.next_due, limit);
  kick.next_due = far.next;
  kick.done = !far.more;
  return far.jobs;
}

void Engine::kick(ClientId id, Now now, Kick& kick) {
  State& s = *state_;
  s.advance(now);
  Tube& tube = *s.client(id).tube_in_use;
  if (!std::exchange(kick.begun, true)) {
    // A worker may release the jobs that are kicked, delayed, as fast as they are kicked. So this
    // kicks no more jobs than there are now.
    kick.buried = tube.record.buried > 0;
    kick.bound = std::min(kick.bound, kick.buried ? tube.record.buried : tube.delayed_jobs());
  }
  try {
    const std::vector<JobRecord> records = s.next_to_kick(tube, kick);
    if (!records.empty()) kick.durable_at = s.kick(records);
    kick.kicked += records.size();
    kick.done = kick.done || kick.kicked == kick.bound;
  } catch (const StoreError&) {
    kick.done = true;
    if (kick.kicked == 0) throw;
  }
}

Outcome Engine::kick_job(Now now, JobId id) {
  State& s = *state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.record_of(id);
  if (!record) return {.done = false, .durable_at = s.last_sequence};
  const JobState state = s.state_of(*record);
  if (state != JobState::kBuried && state != JobState::kDelayed)
    return {.done = false, .durable_at = s.last_sequence};
  return {.done = true, .durable_at = s.kick({*record})};
}

bool Engine::pause(Now now, std::string_view name, Millis duration) {
  State& s = *state_;
  s.advance(now);
  Tube* tube = s.tubes.find(name);
  if (tube == nullptr) return false;
  ++tube->pauses;
  tube->pause = duration;
  s.pauses.cancel(tube->pause_end);
  const std::uint64_t from = s.clock.mono_from();
  if (duration > 0)
    s.pauses.schedule(tube->pause_end, duration < UINT64_MAX - from ? from + duration : UINT64_MAX);
  s.serve(*tube);
  return true;
}

}  // namespace carillon::queue
