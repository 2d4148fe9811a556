// Here jobs follow a wall clock that was set.
//
// A job's place in its tube's order, on disk and in memory, is its due time. When the wall clock is
// set, the end of a delay moves away from that (EngineClock::delay_end):
//
// - Set forward: the delay ends after the due time. The job is found in time by its place, and
//   waits in memory for the end. If that is far, the job gets a later place instead.
// - Set back: the delay ends before the due time. In memory the job follows at once (due_of). Its
//   record is looked for in the store, in steps, and stored with the new due time. The store
//   remembers the highest lead that is in a record, so that a start knows of jobs that were not
//   looked for to the end.

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "queue/engine/schedules/schedules.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// A job is not stored anew for being late by less than this, in ms: some hosts set the clocks of
// their guests by a few milliseconds again and again.
constexpr std::int64_t kLateness = 100;

// Returns the record of a job with the due time at which its delay ends; by steady time, that is
// where it ended before.
JobRecord counted_anew(const JobRecord& record, const EngineClock& clock) {
  JobRecord after = record;
  after.due = clock.delay_end(record);
  after.lead += static_cast<std::int64_t>(after.due - record.due);
  return after;
}

// Returns the end of the job's delay until the next step. If steady time gave something back in the
// last step, and the delay was counted since the boot, the delay does not end later by that.
UtcMs end_after_step(const JobRecord& record, const EngineClock& clock) {
  const UtcMs end = clock.delay_end(record);
  if (!clock.is_before_giving_back(record)) return end;
  constexpr UtcMs kRounding = 3;
  return end + kRounding > clock.given_back() ? end + kRounding - clock.given_back() : 0;
}

// Returns the record with that end as its due time.
JobRecord counted_after_step(const JobRecord& record, const EngineClock& clock) {
  if (!clock.is_before_giving_back(record)) return counted_anew(record, clock);
  JobRecord after = record;
  after.due = end_after_step(record, clock);
  clock.counts_from_now(after);
  return after;
}

}  // namespace

void EngineState::on_clock_step(bool back) {
  job_lead = std::max(job_lead, clock.lead());
  clock_is_stored = false;
  keys_end = 0;
  to_decide = doubted.held.size();
  try {
    append();  // so that the next start knows of this step, and of what it finds itself
  } catch (const StoreError& error) {
    load_failure = error.what();  // the next append stores the step
  }
  begin_placing();
  for_each_tube([this, back](Tube& tube) { follow_the_clock(tube, back); });
  schedules->follow_the_clock(back);
}

void EngineState::follow_the_clock(Tube& tube, bool back) {
  count_after_step(tube);
  tube.cursor = std::min(tube.cursor, horizon());  // after a step back: what is far leaves memory
  std::vector<LoadedJob*> moving;
  Tube::JobSet<ByDue> staying;
  while (!tube.delayed.empty()) {
    LoadedJob& job = *tube.delayed.begin();
    tube.delayed.erase(tube.delayed.begin());
    job.due_at = due_of(job.record);
    if (std::min(job.due_key(), {job.due_at, job.record.id}) < tube.cursor) {
      staying.insert(staying.end(), job);  // O(1), because most jobs stay in their order
    } else {
      moving.push_back(&job);
    }
  }
  tube.delayed.swap(staying);
  Tube& head = tube.head();
  tube.ripe_until = std::min(tube.ripe_until, clock.utc());
  if (tube.turn) head.groups->follow_due(tube);
  if (!tube.is_lane()) due.cancel(tube.due_time);
  await_due(head);
  for (auto job = tube.ready.begin(); back && job != tube.ready.end(); ++job) {
    if (due_of(job->record) > clock.utc()) moving.push_back(&*job);
  }
  for (LoadedJob* job : moving) {
    detach(*job);
    enqueue(*job);
  }
  if (!expiries.empty()) {
    for (LoadedJob& job : tube.ready) {
      if (job.armed()) await_expiry(job);
    }
  }
  // Jobs may have become ready that clients wait for: `advance` serves them then.
  if (can_serve(head)) due.reschedule(head.due_time, Moment{clock.tick()});
  if (tube.retained && tube.retained->time.armed())
    loading.reschedule(tube.retained->time, Moment{clock.tick()});
  if (tube.far > 0 && !tube.starved)
    loading.reschedule(tube.load_time, Moment{time_to_load(tube.next_far)});
}

// --- Delays that end before their due times.

bool EngineState::is_late(const JobRecord& record, UtcMs end) const {
  return record.due > clock.utc() && end + static_cast<Millis>(kLateness) <= record.due;
}

UtcMs EngineState::due_of(const JobRecord& record) const {
  if (!to_place.empty()) {
    const UtcMs end = end_after_step(record, clock);
    if (is_late(record, end)) return end;
  }
  return clock.due_of(record);
}

void EngineState::begin_placing() {
  to_place.clear();
  const bool gave_back = clock.given_back() >= static_cast<Millis>(kLateness);
  if (job_lead < clock.lead() + kLateness && !gave_back) return;
  for_each_tube([this](const Tube& tube) {
    if (tube.record.scheduled > 0) to_place.push_back(tube.record.number);
  });
  place_from = {clock.utc() + 1, 0};
  place_at = clock.tick();
}

void EngineState::place_more(std::vector<Tube*>& served, std::size_t budget) {
  constexpr Millis kRetry = 1'000;
  if (clock.tick() < place_at) return;
  if (memory_is_short()) {
    place_at = clock.tick() + kRetry;
    return;
  }
  try {
    while (budget > 0 && !to_place.empty()) {
      Tube* tube = tubes.find(to_place.back());
      if (tube == nullptr) {
        to_place.pop_back();
        continue;
      }
      served.push_back(tube);
      budget -= std::min(budget, 1 + place_more_of(*tube, budget));
    }
    if (to_place.empty()) {
      job_lead = clock.lead();
      clock_is_stored = false;
    }
  } catch (const StoreError& error) {
    load_failure = error.what();
    place_at = clock.tick() + kRetry;
  }
}

std::size_t EngineState::place_more_of(Tube& tube, std::size_t budget) {
  const std::vector<JobRecord> records = store.scan_due(tube.record.number, place_from, budget);
  std::vector<JobChange> moves;
  for (const JobRecord& record : records) {
    if (is_late(record, end_after_step(record, clock)))
      moves.push_back({.before = record, .after = counted_after_step(record, clock), .body = {}});
  }
  place(moves);
  if (records.size() == budget) {
    place_from = {records.back().due, records.back().id + 1};
  } else {
    place_from = {clock.utc() + 1, 0};
    to_place.pop_back();
  }
  return records.size();
}

void EngineState::place(const std::vector<JobChange>& moves) {
  if (moves.empty()) return;
  for (const JobChange& move : moves) add_change(move.before, move.after);
  const Sequence sequence = append();
  for (const JobChange& move : moves) {
    const JobId id = move.after->id;
    LoadedJob* job = loaded(id);
    if (job == nullptr) {
      note_far(tube_numbered(move.before->tube), *move.before, -1);
      job = &add_to_memory(*move.before);
    }
    const bool reserved = job->state == JobState::kReserved;
    if (!reserved) detach(*job);
    job->record = *move.after;
    job->sequence = sequence;
    Tube& tube = *job->tube;
    if (reserved) {
      tube.reserved_until = std::max(tube.reserved_until, job->record.due);
      continue;
    }
    enqueue(*job);
    if (LoadedJob* still = loaded(id)) make_room(tube, *still);
  }
}

// --- Delays that end after their due times.

bool EngineState::is_too_early(const JobRecord& record) const {
  const DueKey end = horizon();
  return DueKey{record.due, record.id} < end && DueKey{clock.delay_end(record), record.id} >= end;
}

std::vector<JobRecord> EngineState::place_later(std::span<const JobRecord> records) {
  std::vector<JobRecord> later;
  for (const JobRecord& record : records) {
    if (loaded(record.id) != nullptr || !is_too_early(record)) continue;
    later.push_back(counted_anew(record, clock));
    add_change(record, later.back());
  }
  if (later.empty()) return later;
  const std::vector<JobChange> moves = changes.jobs;
  append();
  for (const JobChange& move : moves) {
    Tube& tube = tube_numbered(move.before->tube);
    note_far(tube, *move.before, -1);
    note_far(tube, *move.after, +1);
  }
  return later;
}

}  // namespace carillon::queue
