// Here jobs in memory move: into memory, among the ready or the delayed ones, and out of memory.

#include <memory>
#include <optional>
#include <utility>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

LoadedJob* EngineState::loaded(JobId id) {
  const auto* found = jobs.find(id);
  return found == nullptr ? nullptr : found->get();
}

LoadedJob* EngineState::held_by(const Client& client, JobId id) {
  LoadedJob* const job = loaded(id);
  return job != nullptr && job->holder == &client ? job : nullptr;
}

std::optional<JobRecord> EngineState::record_of(JobId id) {
  if (const LoadedJob* job = loaded(id)) return job->record;
  if (id >= next_id) return std::nullopt;
  return store.find(id);
}

Sequence EngineState::durable_at(JobId id) {
  const LoadedJob* job = loaded(id);
  return job != nullptr ? job->sequence : last_sequence;
}

JobState EngineState::state_of(const JobRecord& record) {
  if (const LoadedJob* job = loaded(record.id)) return job->state;
  if (record.buried()) return JobState::kBuried;
  return clock.due_of(record) <= clock.utc() ? JobState::kReady : JobState::kDelayed;
}

JobView EngineState::view(const JobRecord& record) {
  return {.id = record.id,
          .body_id = record.body_id(),
          .priority = record.priority,
          .body_bytes = record.body_bytes,
          .durable_at = durable_at(record.id)};
}

void EngineState::show_expiry(JobRecord& job) const {
  if (!job.extras) return;
  const UtcMs end = clock.expiry_of(job);
  if (end == job.extras->expires) return;
  JobExtras extras = *job.extras;
  extras.expires = end;
  job.extras = detail::Rare(std::move(extras));
}

LoadedJob& EngineState::add_to_memory(const JobRecord& record) noexcept {
  Tube& tube = tube_numbered(record.tube);
  auto made = std::make_unique<LoadedJob>(record, tube, last_sequence);
  LoadedJob& job = *made;
  jobs.try_emplace(record.id, std::move(made));
  ++tube.loaded;
  if (tube.turn) ++tube.sums()->loaded;
  return job;
}

void EngineState::detach(LoadedJob& job) noexcept {
  if (!job.order_hook.is_linked()) return;
  Tube& tube = *job.tube;
  switch (job.state) {
    case JobState::kReady:
      if (job.armed()) expiries.cancel(job);
      tube.ready.erase(tube.ready.iterator_to(job));
      if (job.record.priority < kUrgentBelow) --tube.urgent;
      count_ready(tube, -1, job.record.priority < kUrgentBelow ? -1 : 0);
      if (tube.turn) tube.head().groups->follow(tube);
      break;
    case JobState::kDelayed:
      tube.delayed.erase(tube.delayed.iterator_to(job));
      break;
    case JobState::kReserved:
      ttrs.cancel(job);
      job.holder->held.erase(job.holder->held.iterator_to(job));
      job.holder->deadlines.erase(job.holder->deadlines.iterator_to(job));
      job.holder = nullptr;
      tube.end_reservation();
      --sums.reserved;
      if (tube.is_lane()) may_start(tube);
      break;
    case JobState::kBuried:
      break;  // buried jobs are not in memory
  }
}

void EngineState::enqueue(LoadedJob& job) noexcept {
  const UtcMs when = due_of(job.record);
  if (when <= clock.utc()) return make_ready(job);

  Tube& tube = *job.tube;
  extend_cursor(tube);
  if (std::min(job.due_key(), {when, job.record.id}) < tube.cursor) {
    job.state = JobState::kDelayed;
    job.due_at = when;
    tube.delayed.insert(job);
    await_first_delayed(tube);
    return;
  }
  const JobRecord stored = job.record;
  drop_from_memory(job);
  leave_far(tube, stored);
}

void EngineState::take_in(const JobRecord& record) noexcept {
  Tube& tube = tube_numbered(record.tube);
  if (record.due > clock.utc() && DueKey{record.due, record.id} >= tube.cursor)
    return leave_far(tube, record);
  enqueue(add_to_memory(record));
  serve(tube);
  if (LoadedJob* const still = loaded(record.id)) make_room(tube, *still);
}

void EngineState::drop_from_memory(LoadedJob& job) noexcept {
  Tube& tube = *job.tube;
  --tube.loaded;
  if (tube.turn) --tube.sums()->loaded;
  jobs.erase(job.record.id);
  room_appeared(tube);
}

void EngineState::make_ready(LoadedJob& job) noexcept {
  if (job.record.extras) {
    if (job.record.extras->cancel_asked || clock.has_expired(job.record))
      return queue_ending(job, std::nullopt);
    if (job.record.extras->expires != 0) await_expiry(job);
  }
  job.state = JobState::kReady;
  Tube& tube = *job.tube;
  const bool is_urgent = job.record.priority < kUrgentBelow;
  tube.ready.insert(job);
  if (is_urgent) ++tube.urgent;
  count_ready(tube, +1, is_urgent ? +1 : 0);
  if (tube.turn) tube.head().groups->follow(tube);
}

}  // namespace carillon::queue
