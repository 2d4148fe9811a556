// What spreadJobs may do to a job (model.h).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;
using queue::UtcMs;

namespace {

// The place of the job in the longer time, give or take a millisecond (docs/decisions/0087).
UtcMs place_of(JobId id, const Command& spread) {
  constexpr long double kGolden = 0.618033988749894848204586834365638118L;
  const long double turns = static_cast<long double>(id) * kGolden;
  const long double part = turns - std::floor(turns);
  return spread.filter.due_from + static_cast<UtcMs>(part * static_cast<long double>(spread.over));
}

}  // namespace

// Whether one that is meant goes to its place: not if that is in the window, or comes after the
// job's expiry. After the wall clock was set, it may come before the end of the job's delay.
Model::Is Model::may_be_spread(const Job& job, JobId id, const Case& c) const {
  const UtcMs place = place_of(id, c.command);
  if (place + 1 < c.command.filter.due_before) return Is::kNo;
  const UtcMs expires = expiry_of(job.expires, job.expires_lead, c.now);
  if (expires != 0 && expires + 1 < place) return Is::kNo;
  const bool is_sure = place > c.command.filter.due_before && clock_steps_ == 0 &&
                       (expires == 0 || expires > place + 1);
  return is_sure ? Is::kYes : Is::kMaybe;
}

// Returns false if it was the engine that has changed the job, perhaps after the command.
bool Model::follow_spread_out(const Case& c, JobId id, const JobRecord& before) {
  const auto after = history_.state().jobs.find(id);
  const bool is_own = is_own_change(id);
  if (after == history_.state().jobs.end() && !is_own) return false;
  const JobRecord& spread = is_own ? before : after->second.record;
  Job& job = jobs_.at(id);
  if (spread.lead != queue::kNoLead || spread.due == job.record.due) return false;
  // It was meant as it was before.
  expect_meant(c, id, is_own ? job.record : before);
  const UtcMs place = place_of(id, c.command);
  const std::string what =
      "it has spread " + text_of(id, job, c.now) + ", to " + std::to_string(spread.due);
  if (spread.due + 1 < place || spread.due > place + 1)
    fail(c, what + " and not to " + std::to_string(place));
  if (spread.due < c.command.filter.due_before) fail(c, what + ", which is in the window");
  const UtcMs expires = expiry_of(job.expires, job.expires_lead, c.now);
  if (expires != 0 && expires + 3 <= spread.due) fail(c, what + ", where it would expire");
  const std::uint64_t left = std::max(job.delay_end, c.since.mono_ns) - c.since.mono_ns;
  if (clock_steps_ == 0 && spread.due * kNsPerMs + kSlack < c.since.utc_ns + left)
    fail(c, what + ", which is earlier");
  note_changed(c, id);
  let_go(id, job);
  job.moment = spread.due * kNsPerMs;
  job.delay_end = 0;
  job.slack = kSlack;
  job.record = spread;
  if (!is_own) follow_record(id, c.now);
  return !is_own;
}

}  // namespace carillon::simulator
