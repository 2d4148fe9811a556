#include "queue/engine/jobs/removals.h"

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

std::optional<JobRecord> Removals::record_for(const Client& client, JobId id) const {
  const LoadedJob* job = jobs_.loaded(id);
  const bool others = job != nullptr && job->state == JobState::kReserved && job->holder != &client;
  return others ? std::nullopt : jobs_.record_of(id);
}

// A ready job may have been done by a worker that exceeded its ttr.
Work Removals::work_of(const JobRecord& record) const {
  if (record.extras->cancel_asked) return Work::kNotDone;
  const JobState state = jobs_.state_of(record);
  const bool may_be_done = state == JobState::kReserved || state == JobState::kReady;
  return may_be_done ? Work::kDone : Work::kNotDone;
}

void Removals::add(const JobRecord& record, Work work) {
  appender_.add_change(record, std::nullopt);
  if (const LoadedJob* const job = jobs_.loaded(record.id)) appender_.end_lease(*job);
  if (!record.extras) return;
  keys_.end(record, work);
  if (record.extras->has_story) appender_.changes.stories.push_back({record.id, {}});
}

Tube& Removals::finish(const JobRecord& record) noexcept {
  Tube& tube = tubes_.numbered(record.tube);
  ++tube.head().deletes;
  ++counts_.totals.deleted;
  if (LoadedJob* job = jobs_.loaded(record.id)) {
    jobs_.detach(*job);
    jobs_.drop_from_memory(*job);
  } else {
    far_.note(tube, record, -1);
  }
  return tube;
}

// `record` may be that of the job in memory, and dangles then.
Sequence Removals::remove(const JobRecord& record, Work work) {
  add(record, work);
  const Sequence sequence = appender_.append();
  Tube& tube = finish(record);
  if (tube.limited()) clients_.serve(tube);
  tubes_.forget_if_unreferenced(tube);
  return sequence;
}

}  // namespace carillon::queue
