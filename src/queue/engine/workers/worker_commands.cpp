// Here the commands for workers are handled: watch, ignore, reserve, release, bury, touch and fail.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// Each client may watch this many tubes that exist, whatever the others do.
constexpr std::size_t kOwnWatches = 16;

}  // namespace

std::size_t EngineWorkers::watch(ClientId id, std::string_view name) {
  EngineState& s = state_;
  Client& client = s.clients.client(id);
  Tube* const tube = s.tubes.find(name);
  if (tube != nullptr && client.watches_tube(*tube)) return client.watches.size();
  if (client.watches.size() == kMaxWatched)
    throw OverLimit("a client watches at most " + std::to_string(kMaxWatched) + " tubes");
  if (client.watches.size() >= kOwnWatches) s.tubes.refuse_more();
  s.clients.watch(client, tube != nullptr ? *tube : s.tubes.named(name));
  return client.watches.size();
}

std::optional<std::size_t> EngineWorkers::ignore(ClientId id, std::string_view name) {
  EngineState& s = state_;
  Client& client = s.clients.client(id);
  const auto found = client.by_tube.find(s.tubes.find(name));
  if (found == client.by_tube.end()) return client.watches.size();
  if (client.watches.size() == 1) return std::nullopt;
  s.clients.unwatch(*found);
  return client.watches.size();
}

std::vector<std::string> EngineWorkers::watched(ClientId id) const {
  std::vector<std::string> names;
  for (const auto& watch : state_.clients.client(id).watches)
    names.push_back(watch->tube->record.name);
  return names;
}

bool EngineWorkers::holds_jobs(ClientId id) const {
  return !state_.clients.client(id).held.empty();
}

std::optional<Delivery> EngineWorkers::reserve(ClientId id, Now now,
                                               std::optional<Millis> timeout) {
  EngineState& s = state_;
  s.advance(now);
  Client& client = s.clients.client(id);
  const bool may_hold = s.clients.may_hold_more(client);
  if (may_hold) {
    if (LoadedJob* job = s.clients.best_ready(client)) return s.clients.hand_over(client, *job);
  }

  const auto end = [id](Delivery::Kind kind) {
    return Delivery{.client = id, .kind = kind, .job = {}};
  };
  if (client.deadline_soon(s.clock.mono_from())) return end(Delivery::Kind::kDeadlineSoon);
  const bool is_hidden = may_hold && s.clients.is_hidden(client);
  if (timeout && *timeout == 0 && !is_hidden) return end(Delivery::Kind::kTimedOut);
  s.clients.start_waiting(client, timeout);
  return std::nullopt;
}

std::optional<JobView> EngineWorkers::reserve_next(ClientId id, Now now, std::uint64_t most) {
  EngineState& s = state_;
  s.advance(now);
  Client& client = s.clients.client(id);
  if (!s.clients.may_hold_more(client)) return std::nullopt;
  LoadedJob* const job = s.clients.best_ready(client);
  if (job == nullptr || job->record.body_bytes > most) return std::nullopt;
  return s.clients.hand_over(client, *job).job;
}

std::optional<Delivery> EngineWorkers::reserve_job(ClientId id, Now now, JobId job_id) {
  EngineState& s = state_;
  s.advance(now);
  Client& client = s.clients.client(id);
  std::optional<JobRecord> record = s.jobs.record_of(job_id);
  if (!record || s.jobs.state_of(*record) == JobState::kReserved) return std::nullopt;
  if (!record->buried() && s.clock.has_expired(*record)) return std::nullopt;
  if (!s.clients.may_hold_more(client)) throw OverLimit("the client has too many jobs reserved");

  Delivery delivery{.client = id, .kind = Delivery::Kind::kReserved, .job = {}};
  delivery.job = s.jobs.view(*record);
  LoadedJob* job = s.jobs.loaded(job_id);
  const bool was_buried = record->buried();
  if (was_buried) {
    // The store must know that the job is not buried any more: a crash must not bury it again.
    const JobRecord before = *record;
    record->revive(s.clock.has_expired(*record));
    record->due = s.clock.utc();
    s.clock.counts_from_now(*record);
    s.appender.add_change(before, record);
    delivery.job.durable_at = s.appender.append();
  }
  if (job == nullptr) {
    if (!was_buried) s.far.note(s.tubes.numbered(record->tube), *record, -1);
    job = &s.jobs.add_to_memory(*record);
  }
  s.clients.hold(client, *job);
  return delivery;
}

void EngineWorkers::stop_waiting(ClientId id) {
  EngineState& s = state_;
  Client& client = s.clients.client(id);
  if (!client.waiting) return;
  s.clients.end_waiting(client, Delivery::Kind::kTimedOut);
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
  LoadedJob* job = s.jobs.held_by(s.clients.client(id), job_id);
  if (job == nullptr) return {.done = false, .durable_at = s.appender.last_sequence()};
  Tube& tube = *job->tube;
  const PlannedEnd end = s.endings.plan_release(*job, priority, delay);
  const Sequence sequence = s.appender.append();
  s.endings.finish_end(end);
  s.clients.serve(tube);
  s.tubes.forget_if_unreferenced(tube);
  return {.done = true, .durable_at = sequence};
}

Outcome EngineWorkers::bury(ClientId id, Now now, JobId job_id, Priority priority) {
  EngineState& s = state_;
  s.advance(now);
  LoadedJob* job = s.jobs.held_by(s.clients.client(id), job_id);
  if (job == nullptr) return {.done = false, .durable_at = s.appender.last_sequence()};
  if (job->record.extras && job->record.extras->cancel_asked)
    return {.done = true, .durable_at = s.removals.remove(job->record, Work::kNotDone)};

  JobRecord after = job->record;
  after.history = job->history;
  ++after.history.buries;
  after.priority = priority;
  after.burial = s.appender.give_burial();
  s.appender.add_change(job->record, after);
  s.appender.end_lease(*job);
  const Sequence sequence = s.appender.append();

  Tube& tube = *job->tube;
  s.jobs.detach(*job);
  s.jobs.drop_from_memory(*job);
  s.clients.serve(tube);
  return {.done = true, .durable_at = sequence};
}

Outcome EngineWorkers::touch(ClientId id, Now now, JobId job_id, std::optional<Millis> ttr) {
  EngineState& s = state_;
  s.advance(now);
  LoadedJob* job = s.jobs.held_by(s.clients.client(id), job_id);
  if (job == nullptr) return {.done = false, .durable_at = s.appender.last_sequence()};
  const Millis left = std::clamp(ttr.value_or(job->record.ttr), kMinTtr, kMaxTtr);
  s.clients.set_deadline(*job, s.clock.mono_from() + left);
  return {.done = true, .durable_at = job->sequence};
}

bool EngineWorkers::give_back(ClientId id, Now now, JobId job_id) {
  EngineState& s = state_;
  s.advance(now);
  LoadedJob* job = s.jobs.held_by(s.clients.client(id), job_id);
  if (job == nullptr) return false;
  Tube& tube = *job->tube;
  s.throttle.undo_start(*job);
  if (job->record.extras && job->record.extras->cancel_asked) {
    s.endings.queue(*job, Ending::kLost);
    s.clients.serve(tube);
    return true;
  }
  --job->history.reserves;
  s.appender.lease_is_over(*job);
  s.jobs.detach(*job);
  s.jobs.enqueue(*job);
  s.clients.serve(tube);
  return true;
}

FailOutcome EngineWorkers::fail(ClientId id, Now now, JobId job_id, const Failure& failure) {
  using Result = FailOutcome::Result;
  EngineState& s = state_;
  s.advance(now);
  if (failure.delay && !s.clock.fits(*failure.delay, std::nullopt))
    throw std::out_of_range("fail: a delay of " + std::to_string(*failure.delay) +
                            " ms ends after the year 9999");
  Client& client = s.clients.client(id);
  LoadedJob* const job = s.jobs.held_by(client, job_id);
  if (job == nullptr) return {.result = Result::kNone, .durable_at = s.appender.last_sequence()};
  Tube& tube = *job->tube;
  const PlannedEnd end =
      s.endings.plan_end(*job,
                         {.at = s.clock.utc(),
                          .ending = Ending::kFailed,
                          .worker = client.name,
                          .error = std::string(base::beginning(failure.error, kMaxError))},
                         failure);
  FailOutcome outcome{.result = Result::kCancelled, .durable_at = s.appender.append()};
  if (end.after) {
    outcome.result = end.after->buried() ? Result::kDead : Result::kAgain;
    outcome.attempts = end.after->extras->attempts;
    outcome.delay = end.after->buried() ? 0 : end.after->delay;
  }
  ++s.counts.totals.failed;
  s.endings.finish_end(end);
  s.clients.serve(tube);
  s.tubes.forget_if_unreferenced(tube);
  return outcome;
}

bool EngineWorkers::holds(ClientId id, JobId job_id) const {
  return state_.jobs.held_by(state_.clients.client(id), job_id) != nullptr;
}

bool EngineWorkers::cancel_asked(ClientId id, JobId job_id) const {
  const LoadedJob* const job = state_.jobs.held_by(state_.clients.client(id), job_id);
  return job != nullptr && job->record.extras->cancel_asked;
}

}  // namespace carillon::queue
