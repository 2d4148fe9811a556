// The commands that change or delete jobs before they are worked on: cancel, patch and the look-up
// by key.

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "carillon/queue/never_runs.h"
#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// REQUIRES: the job is reserved.
void ask_to_cancel(EngineState& s, LoadedJob& job) {
  CARILLON_REQUIRE(job.holder != nullptr, job.record.id, job.state);
  JobRecord after = job.record;
  JobExtras extras = *after.extras;
  extras.cancel_asked = true;
  after.extras = detail::Rare(std::move(extras));
  s.appender.add_change(job.record, after);
  job.sequence = s.appender.append();
  job.record = std::move(after);
}

}  // namespace

std::optional<JobId> EngineJobs::job_with_key(ClientId id, std::string_view key) {
  EngineState& s = state_;
  const auto owner = s.store.find_key(s.clients.client(id).tube_in_use->record.number, key);
  if (!owner || owner->until != 0) return std::nullopt;
  return owner->id;
}

ChangeOutcome EngineJobs::cancel(Now now, JobId id, bool ask) {
  using Result = ChangeOutcome::Result;
  EngineState& s = state_;
  s.advance(now);
  const std::optional<JobRecord> record = s.jobs.record_of(id);
  if (!record) return {.result = Result::kNone, .durable_at = s.appender.last_sequence()};
  if (s.jobs.state_of(*record) != JobState::kReserved)
    return {.result = Result::kDone, .durable_at = s.removals.remove(*record, Work::kNotDone)};
  if (ask && !record->extras->cancel_asked) ask_to_cancel(s, *s.jobs.loaded(id));
  return {.result = ask ? Result::kAsked : Result::kReserved, .durable_at = s.jobs.durable_at(id)};
}

ChangeOutcome EngineJobs::patch(Now now, JobId id, const Patch& patch) {
  using Result = ChangeOutcome::Result;
  EngineState& s = state_;
  Puts::refuse_large(patch.body.value_or(std::string_view()));
  Puts::check_attributes(patch.attributes.value_or(std::string_view()));
  s.advance(now);
  const std::optional<JobRecord> before = s.jobs.record_of(id);
  if (!before) return {.result = Result::kNone, .durable_at = s.appender.last_sequence()};
  if (s.jobs.state_of(*before) == JobState::kReserved)
    return {.result = Result::kReserved, .durable_at = s.jobs.durable_at(id)};
  const auto expires = s.puts.expiry(patch.expires_in.value_or(0), patch.expires_at);
  if (!s.clock.fits(patch.due_in.value_or(0), patch.due_at) || !expires)
    return {.result = Result::kTooFar, .durable_at = s.jobs.durable_at(id)};
  if (patch.due_in || patch.due_at)
    s.puts.require_time_to_run(patch.due_in.value_or(0), patch.due_at, 0, *expires);

  JobRecord after = *before;
  if (const LoadedJob* job = s.jobs.loaded(id)) after.history = job->history;
  after.priority = patch.priority.value_or(after.priority);
  after.ttr = std::clamp(patch.ttr.value_or(after.ttr), kMinTtr, kMaxTtr);
  if (patch.due_at || patch.due_in) {
    if (after.buried()) after.revive(s.clock.has_expired(after));
    s.clock.set_due(after, patch.due_in.value_or(0), patch.due_at);
  }
  JobExtras extras = *after.extras;
  if (patch.body) {
    extras.body = s.appender.give_id();
    after.body_bytes = static_cast<std::uint32_t>(patch.body->size());
  }
  if (patch.expires_in || patch.expires_at) {
    extras.expires = *expires;
    extras.expires_lead = s.puts.lead_of_expiry(*expires, patch.expires_at.has_value());
  }
  extras.at_expiry = patch.at_expiry.value_or(extras.at_expiry);
  if (patch.attributes) extras.attributes = *patch.attributes;
  after.extras = detail::Rare(std::move(extras));
  s.appender.add_change(before, after, patch.body.value_or(std::string_view()));
  const Sequence sequence = s.appender.append();
  s.jobs.replaced(*before, after);
  return {.result = Result::kDone, .durable_at = sequence};
}

ChangeOutcome EngineJobs::bury_job(Now now, JobId id, std::optional<Priority> priority) {
  using Result = ChangeOutcome::Result;
  EngineState& s = state_;
  s.advance(now);
  const std::optional<JobRecord> before = s.jobs.record_of(id);
  if (!before) return {.result = Result::kNone, .durable_at = s.appender.last_sequence()};
  if (before->buried()) return {.result = Result::kDone, .durable_at = s.jobs.durable_at(id)};
  if (s.jobs.state_of(*before) == JobState::kReserved)
    return {.result = Result::kReserved, .durable_at = s.jobs.durable_at(id)};

  JobRecord after = *before;
  if (const LoadedJob* job = s.jobs.loaded(id)) after.history = job->history;
  ++after.history.buries;
  after.priority = priority.value_or(after.priority);
  after.burial = s.appender.give_burial();
  s.appender.add_change(*before, after);
  const Sequence sequence = s.appender.append();
  s.jobs.replaced(*before, after);
  return {.result = Result::kDone, .durable_at = sequence};
}

}  // namespace carillon::queue
