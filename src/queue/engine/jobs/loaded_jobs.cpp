#include "queue/engine/jobs/loaded_jobs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

LoadedJob* LoadedJobs::loaded(JobId id) const {
  const auto* found = jobs_.find(id);
  return found == nullptr ? nullptr : found->get();
}

LoadedJob* LoadedJobs::held_by(const Client& client, JobId id) const {
  LoadedJob* const job = loaded(id);
  return job != nullptr && job->holder == &client ? job : nullptr;
}

std::optional<JobRecord> LoadedJobs::record_of(JobId id) const {
  if (const LoadedJob* job = loaded(id)) return job->record;
  if (id >= appender_.next_id()) return std::nullopt;
  return store_.find(id);
}

Sequence LoadedJobs::durable_at(JobId id) const {
  const LoadedJob* job = loaded(id);
  return job != nullptr ? job->sequence : appender_.last_sequence();
}

JobState LoadedJobs::state_of(const JobRecord& record) const {
  if (const LoadedJob* job = loaded(record.id)) return job->state;
  if (record.buried()) return JobState::kBuried;
  return clock_.due_of(record) <= clock_.utc() ? JobState::kReady : JobState::kDelayed;
}

JobView LoadedJobs::view(const JobRecord& record) const {
  return {.id = record.id,
          .body_id = record.body_id(),
          .priority = record.priority,
          .body_bytes = record.body_bytes,
          .durable_at = durable_at(record.id)};
}

void LoadedJobs::show_expiry(JobRecord& job) const {
  if (!job.extras) return;
  const UtcMs end = clock_.expiry_of(job);
  if (end == job.extras->expires) return;
  JobExtras extras = *job.extras;
  extras.expires = end;
  job.extras = detail::Rare(std::move(extras));
}

LoadedJob& LoadedJobs::add_to_memory(const JobRecord& record) noexcept {
  CARILLON_REQUIRE(!record.buried(), record.id);
  Tube& tube = tubes_.numbered(record.tube);
  auto made = std::make_unique<LoadedJob>(record, tube, appender_.last_sequence());
  LoadedJob& job = *made;
  jobs_.try_emplace(record.id, std::move(made));
  ++tube.loaded;
  if (tube.turn) ++tube.sums()->loaded;
  return job;
}

void LoadedJobs::detach(LoadedJob& job) noexcept {
  if (!job.order_hook.is_linked()) return;
  Tube& tube = *job.tube;
  switch (job.state) {
    case JobState::kReady:
      if (job.armed()) endings_.await_no_expiry(job);
      tube.ready.erase(tube.ready.iterator_to(job));
      if (job.record.priority < kUrgentBelow) --tube.urgent;
      counts_.count_ready(tube, -1, job.record.priority < kUrgentBelow ? -1 : 0);
      if (tube.turn) tube.head().groups->follow(tube);
      break;
    case JobState::kDelayed:
      tube.delayed.erase(tube.delayed.iterator_to(job));
      break;
    case JobState::kReserved:
      clients_.end_reservation(job);
      if (tube.is_lane()) throttle_.may_start(tube);
      break;
    case JobState::kBuried:
      break;  // buried jobs are not in memory
  }
}

void LoadedJobs::enqueue(LoadedJob& job) noexcept {
  const UtcMs when = placing_.due_of(job.record);
  if (when <= clock_.utc()) return make_ready(job);

  Tube& tube = *job.tube;
  far_.extend_cursor(tube);
  if (std::min(job.due_key(), {when, job.record.id}) < tube.cursor) {
    job.state = JobState::kDelayed;
    job.due_at = when;
    tube.delayed.insert(job);
    ripening_.await_first_delayed(tube);
    return;
  }
  const JobRecord stored = job.record;
  drop_from_memory(job);
  far_.leave_far(tube, stored);
}

void LoadedJobs::take_in(const JobRecord& record) noexcept {
  Tube& tube = tubes_.numbered(record.tube);
  if (record.due > clock_.utc() && DueKey{record.due, record.id} >= tube.cursor)
    return far_.leave_far(tube, record);
  enqueue(add_to_memory(record));
  clients_.serve(tube);
  if (LoadedJob* const still = loaded(record.id)) far_.make_room(tube, *still);
}

void LoadedJobs::drop_from_memory(LoadedJob& job) noexcept {
  CARILLON_REQUIRE(!job.order_hook.is_linked(), job.record.id, job.state);
  Tube& tube = *job.tube;
  --tube.loaded;
  if (tube.turn) --tube.sums()->loaded;
  jobs_.erase(job.record.id);
  far_.room_appeared(tube);
}

void LoadedJobs::make_ready(LoadedJob& job) noexcept {
  CARILLON_REQUIRE(!job.order_hook.is_linked(), job.record.id, job.state);
  if (job.record.extras) {
    if (job.record.extras->cancel_asked || clock_.has_expired(job.record))
      return endings_.queue(job, std::nullopt);
    if (job.record.extras->expires != 0) endings_.await_expiry(job);
  }
  job.state = JobState::kReady;
  Tube& tube = *job.tube;
  const bool is_urgent = job.record.priority < kUrgentBelow;
  tube.ready.insert(job);
  if (is_urgent) ++tube.urgent;
  counts_.count_ready(tube, +1, is_urgent ? +1 : 0);
  if (tube.turn) tube.head().groups->follow(tube);
}

void LoadedJobs::replaced(const JobRecord& before, const JobRecord& after) noexcept {
  Tube& tube = tubes_.numbered(after.tube);
  LoadedJob* job = loaded(after.id);
  if (job == nullptr) {
    far_.note(tubes_.numbered(before.tube), before, -1);
  } else if (before.tube != after.tube) {
    detach(*job);
    drop_from_memory(*job);
    job = nullptr;
  }
  if (job == nullptr) {
    if (after.buried()) return;
    job = &add_to_memory(after);
  }
  detach(*job);
  if (after.buried()) return drop_from_memory(*job);
  job->record = after;
  job->history = after.history;
  job->sequence = appender_.last_sequence();
  enqueue(*job);
  clients_.serve(tube);
  if (LoadedJob* still = loaded(after.id)) far_.make_room(tube, *still);
}

void LoadedJobs::follow_the_clock(Tube& tube, bool back) {
  tube.cursor =
      std::min(tube.cursor, far_.horizon());  // after a step back: what is far leaves memory
  std::vector<LoadedJob*> moving;
  Tube::JobSet<ByDue> staying;
  while (!tube.delayed.empty()) {
    LoadedJob& job = *tube.delayed.begin();
    tube.delayed.erase(tube.delayed.begin());
    job.due_at = placing_.due_of(job.record);
    if (std::min(job.due_key(), {job.due_at, job.record.id}) < tube.cursor) {
      staying.insert(staying.end(), job);  // O(1), because most jobs stay in their order
    } else {
      moving.push_back(&job);
    }
  }
  tube.delayed.swap(staying);
  Tube& head = tube.head();
  tube.ripe_until = std::min(tube.ripe_until, clock_.utc());
  if (tube.turn) head.groups->follow_due(tube);
  if (!tube.is_lane()) ripening_.look_no_more(tube);
  ripening_.await_due(head);
  for (auto job = tube.ready.begin(); back && job != tube.ready.end(); ++job) {
    if (placing_.due_of(job->record) > clock_.utc()) moving.push_back(&*job);
  }
  for (LoadedJob* job : moving) {
    detach(*job);
    enqueue(*job);
  }
  if (!endings_.awaits_none()) {
    for (LoadedJob& job : tube.ready) {
      if (job.armed()) endings_.await_expiry(job);
    }
  }
  // Jobs may have become ready for which clients wait: `advance` serves them then.
  if (clients_.can_serve(head)) ripening_.look_now(head);
}

void LoadedJobs::check_invariants() const {
  for_each([this](const LoadedJob& job) {
    check_invariant(store_.find(job.record.id) == job.record,
                    "a record in memory is the stored one", std::to_string(job.record.id));
  });
}

void LoadedJobs::check_invariants(const Tube& tube) const {
  const std::string& name = tube.record.name;
  std::uint64_t urgent = 0;
  for (const LoadedJob& job : tube.ready) {
    check_invariant(job.state == JobState::kReady && job.tube == &tube,
                    "a ready job is in its tube", name);
    check_invariant(job.armed() == (job.record.extras->expires != 0), "a ready job expires in time",
                    name);
    urgent += job.record.priority < kUrgentBelow ? 1U : 0U;
  }
  check_invariant(urgent == tube.urgent, "urgent jobs are counted", name);
  for (const LoadedJob& job : tube.delayed) {
    check_invariant(job.state == JobState::kDelayed && job.tube == &tube && !job.armed(),
                    "a delayed job is in its tube, without a timer", name);
  }
  const Tube& head = tube.head();
  if (tube.delayed.empty() || head.ripening()) return;
  check_invariant(head.due_time.armed(), "the first delayed job becomes ready in time", name);
}

}  // namespace carillon::queue
