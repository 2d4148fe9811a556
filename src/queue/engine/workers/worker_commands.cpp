// Here the commands for workers are handled: watch, ignore, reserve, release, bury and touch.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// So many tubes that exist may be watched by each client, whatever the others do.
constexpr std::size_t kOwnWatches = 16;

}  // namespace

std::size_t EngineWorkers::watch(ClientId id, std::string_view name) {
  EngineState& s = state_;
  Client& client = s.client(id);
  Tube* const tube = s.tubes.find(name);
  if (tube != nullptr && client.watches_tube(*tube)) return client.watches.size();
  if (client.watches.size() == kMaxWatched)
    throw OverLimit("a client watches at most " + std::to_string(kMaxWatched) + " tubes");
  if (client.watches.size() >= kOwnWatches) s.refuse_more_tubes();
  s.watch(client, tube != nullptr ? *tube : s.tube_named(name));
  return client.watches.size();
}

std::optional<std::size_t> EngineWorkers::ignore(ClientId id, std::string_view name) {
  EngineState& s = state_;
  Client& client = s.client(id);
  const auto found = client.by_tube.find(s.tubes.find(name));
  if (found == client.by_tube.end()) return client.watches.size();
  if (client.watches.size() == 1) return std::nullopt;
  s.unwatch(*found);
  return client.watches.size();
}

std::vector<std::string> EngineWorkers::watched(ClientId id) const {
  std::vector<std::string> names;
  for (const auto& watch : state_.client(id).watches) names.push_back(watch->tube->record.name);
  return names;
}

bool EngineWorkers::holds_jobs(ClientId id) const {
  return !state_.client(id).held.empty();
}

std::optional<Delivery> EngineWorkers::reserve(ClientId id, Now now,
                                               std::optional<Millis> timeout) {
  EngineState& s = state_;
  s.advance(now);
  Client& client = s.client(id);
  const bool may_hold = s.may_hold_more(client);
  if (may_hold) {
    if (LoadedJob* job = s.best_ready(client)) return s.hand_over(client, *job);
  }

  const auto end = [id](Delivery::Kind kind) {
    return Delivery{.client = id, .kind = kind, .job = {}};
  };
  if (client.deadline_soon(s.clock.mono_from())) return end(Delivery::Kind::kDeadlineSoon);
  const bool is_hidden = may_hold && s.is_hidden(client);
  if (timeout && *timeout == 0 && !is_hidden) return end(Delivery::Kind::kTimedOut);
  s.start_waiting(client, timeout);
  return std::nullopt;
}

std::optional<JobView> EngineWorkers::reserve_next(ClientId id, Now now, std::uint64_t most) {
  EngineState& s = state_;
  s.advance(now);
  Client& client = s.client(id);
  if (!s.may_hold_more(client)) return std::nullopt;
  LoadedJob* const job = s.best_ready(client);
  if (job == nullptr || job->record.body_bytes > most) return std::nullopt;
  return s.hand_over(client, *job).job;
}

std::optional<Delivery> EngineWorkers::reserve_job(ClientId id, Now now, JobId job_id) {
  EngineState& s = state_;
  s.advance(now);
  Client& client = s.client(id);
  std::optional<JobRecord> record = s.record_of(job_id);
  if (!record || s.state_of(*record) == JobState::kReserved) return std::nullopt;
  if (!record->buried() && s.clock.has_expired(*record)) return std::nullopt;
  if (!s.may_hold_more(client)) throw OverLimit("the client has too many jobs reserved");

  Delivery delivery{.client = id, .kind = Delivery::Kind::kReserved, .job = {}};
  delivery.job = s.view(*record);
  LoadedJob* job = s.loaded(job_id);
  const bool was_buried = record->buried();
  if (was_buried) {
    // The store has to know that the job is not buried any more: a crash must not bury it again.
    const JobRecord before = *record;
    record->revive(s.clock.has_expired(*record));
    record->due = s.clock.utc();
    s.clock.counts_from_now(*record);
    s.add_change(before, record);
    delivery.job.durable_at = s.append();
  }
  if (job == nullptr) {
    if (!was_buried) s.note_far(s.tube_numbered(record->tube), *record, -1);
    job = &s.add_to_memory(*record);
  }
  s.hold(client, *job);
  return delivery;
}

void EngineWorkers::stop_waiting(ClientId id) {
  EngineState& s = state_;
  Client& client = s.client(id);
  if (!client.waiting) return;
  s.end_waiting(client);
  s.deliveries.push_back({.client = id, .kind = Delivery::Kind::kTimedOut, .job = {}});
}

bool EngineWorkers::fits(Now now, Millis delay) const {
  EngineClock then = state_.clock;
  then.observe(now);
  return then.fits(delay, std::nullopt);
}

Outcome EngineWorkers::release(ClientId id, Now now, JobId job_id, Priority priority,
                               Millis delay) {
  EngineState& s = state_;
  s.advance(now);
  if (!s.clock.fits(delay, std::nullopt))
    throw std::out_of_range("release: a delay of " + std::to_string(delay) +
                            " ms ends after the year 9999");
  LoadedJob* job = s.held_by(s.client(id), job_id);
  if (job == nullptr) return {.done = false, .durable_at = s.last_sequence};
  Tube& tube = *job->tube;
  const PlannedEnd end = s.plan_release(*job, priority, delay);
  const Sequence sequence = s.append();
  s.finish_end(end);
  s.serve(tube);
  s.forget_if_unreferenced(tube);
  return {.done = true, .durable_at = sequence};
}

PlannedEnd EngineState::plan_release(LoadedJob& job, Priority priority, Millis delay) {
  PlannedEnd end{.job = &job, .after = {}};
  if (job.record.extras && job.record.extras->cancel_asked) {
    add_removal(job.record, Work::kNotDone);
    return end;
  }
  JobRecord after = job.record;
  after.history = job.history;
  ++after.history.releases;
  after.priority = priority;
  after.delay = delay;
  // Without a delay the job keeps its old due time, and so comes before those that became ready
  // later. A new due time would put it behind a backlog that is not loaded.
  if (delay > 0 || clock.due_of(after) > clock.utc()) {
    after.due = delay > 0 ? clock.utc_from() + delay : clock.utc();
    clock.counts_from_now(after);
  }
  add_change(job.record, after);
  end.after = std::move(after);
  return end;
}

Outcome EngineWorkers::bury(ClientId id, Now now, JobId job_id, Priority priority) {
  EngineState& s = state_;
  s.advance(now);
  LoadedJob* job = s.held_by(s.client(id), job_id);
  if (job == nullptr) return {.done = false, .durable_at = s.last_sequence};
  if (job->record.extras && job->record.extras->cancel_asked)
    return {.done = true, .durable_at = s.remove(job->record, Work::kNotDone)};

  JobRecord after = job->record;
  after.history = job->history;
  ++after.history.buries;
  after.priority = priority;
  after.burial = s.next_burial++;
  s.add_change(job->record, after);
  const Sequence sequence = s.append();

  Tube& tube = *job->tube;
  s.detach(*job);
  s.drop_from_memory(*job);
  s.serve(tube);
  return {.done = true, .durable_at = sequence};
}

Outcome EngineWorkers::touch(ClientId id, Now now, JobId job_id, std::optional<Millis> ttr) {
  EngineState& s = state_;
  s.advance(now);
  LoadedJob* job = s.held_by(s.client(id), job_id);
  if (job == nullptr) return {.done = false, .durable_at = s.last_sequence};
  const Millis left = std::clamp(ttr.value_or(job->record.ttr), kMinTtr, kMaxTtr);
  s.set_deadline(*job, s.clock.mono_from() + left);
  return {.done = true, .durable_at = job->sequence};
}

bool EngineWorkers::give_back(ClientId id, Now now, JobId job_id) {
  EngineState& s = state_;
  s.advance(now);
  LoadedJob* job = s.held_by(s.client(id), job_id);
  if (job == nullptr) return false;
  Tube& tube = *job->tube;
  if (job->took_token && tube.head().limits) tube.head().limits->limiter.undo_start(s.clock.mono());
  if (job->took_own_token && tube.limits) tube.limits->limiter.undo_start(s.clock.mono());
  if (job->record.extras && job->record.extras->cancel_asked) {
    s.queue_ending(*job, Ending::kLost);
    s.serve(tube);
    return true;
  }
  --job->history.reserves;
  s.detach(*job);
  s.enqueue(*job);
  s.serve(tube);
  return true;
}

}  // namespace carillon::queue
