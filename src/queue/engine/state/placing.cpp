#include "queue/engine/state/placing.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

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
// last step, and the delay was counted since the boot, the delay does not end that much later.
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

// --- Delays that end before their due times.

bool Placing::is_late(const JobRecord& record, UtcMs end) const {
  return record.due > clock_.utc() && end + static_cast<Millis>(kLateness) <= record.due;
}

UtcMs Placing::due_of(const JobRecord& record) const {
  if (!tubes_left_.empty()) {
    const UtcMs end = end_after_step(record, clock_);
    if (is_late(record, end)) return end;
  }
  return clock_.due_of(record);
}

void Placing::begin() {
  tubes_left_.clear();
  const bool gave_back = clock_.given_back() >= static_cast<Millis>(kLateness);
  if (appender_.job_lead() < clock_.lead() + kLateness && !gave_back) return;
  tubes_.for_each([this](const Tube& tube) {
    if (tube.record.scheduled > 0) tubes_left_.push_back(tube.record.number);
  });
  from_ = {clock_.utc() + 1, 0};
  at_ = clock_.tick();
}

void Placing::go_on(std::vector<Tube*>& served, std::size_t budget) {
  constexpr Millis kRetry = 1'000;
  if (clock_.tick() < at_) return;
  if (far_.memory_is_short()) {
    at_ = clock_.tick() + kRetry;
    return;
  }
  try {
    while (budget > 0 && !tubes_left_.empty()) {
      Tube* tube = tubes_.find(tubes_left_.back());
      if (tube == nullptr) {
        tubes_left_.pop_back();
        continue;
      }
      served.push_back(tube);
      budget -= std::min(budget, 1 + go_on_in(*tube, budget));
    }
    if (tubes_left_.empty()) appender_.leads_are_placed();
  } catch (const StoreError& error) {
    appender_.failed(error.what());
    at_ = clock_.tick() + kRetry;
  }
}

std::size_t Placing::go_on_in(Tube& tube, std::size_t budget) {
  const std::vector<JobRecord> records = store_.scan_due(tube.record.number, from_, budget);
  std::vector<JobChange> moves;
  for (const JobRecord& record : records) {
    if (is_late(record, end_after_step(record, clock_)))
      moves.push_back({.before = record, .after = counted_after_step(record, clock_), .body = {}});
  }
  place(moves);
  if (records.size() == budget) {
    from_ = {records.back().due, records.back().id + 1};
  } else {
    from_ = {clock_.utc() + 1, 0};
    tubes_left_.pop_back();
  }
  return records.size();
}

void Placing::place(const std::vector<JobChange>& moves) {
  if (moves.empty()) return;
  for (const JobChange& move : moves) appender_.add_change(move.before, move.after);
  const Sequence sequence = appender_.append();
  for (const JobChange& move : moves) {
    const JobId id = move.after->id;
    LoadedJob* job = jobs_.loaded(id);
    if (job == nullptr) {
      far_.note(tubes_.numbered(move.before->tube), *move.before, -1);
      job = &jobs_.add_to_memory(*move.before);
    }
    const bool reserved = job->state == JobState::kReserved;
    if (!reserved) jobs_.detach(*job);
    job->record = *move.after;
    job->sequence = sequence;
    Tube& tube = *job->tube;
    if (reserved) {
      tube.reserved_until = std::max(tube.reserved_until, job->record.due);
      continue;
    }
    jobs_.enqueue(*job);
    if (LoadedJob* still = jobs_.loaded(id)) far_.make_room(tube, *still);
  }
}

// --- Delays that end after their due times.

bool Placing::is_too_early(const JobRecord& record) const {
  const DueKey end = far_.horizon();
  return DueKey{record.due, record.id} < end && DueKey{clock_.delay_end(record), record.id} >= end;
}

std::vector<JobRecord> Placing::place_later(std::span<const JobRecord> records) {
  std::vector<JobRecord> later;
  for (const JobRecord& record : records) {
    if (jobs_.loaded(record.id) != nullptr || !is_too_early(record)) continue;
    later.push_back(counted_anew(record, clock_));
    appender_.add_change(record, later.back());
  }
  if (later.empty()) return later;
  const std::vector<JobChange> moves = appender_.changes.jobs;
  appender_.append();
  for (const JobChange& move : moves) {
    Tube& tube = tubes_.numbered(move.before->tube);
    far_.note(tube, *move.before, -1);
    far_.note(tube, *move.after, +1);
  }
  return later;
}

}  // namespace carillon::queue
