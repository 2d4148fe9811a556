// Deletes dead jobs whose time in their tube is over (retention.h).

#include "queue/engine/jobs/retention.h"

#include <algorithm>
#include <memory>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// How many jobs are deleted in one append.
constexpr std::size_t kAtOnce = 16;

Millis retention_of(const Tube& tube) {
  return tube.head().record.settings->retention;
}

Retained& retained_of(Tube& tube) {
  if (!tube.retained) tube.retained = std::make_unique<Retained>(tube);
  return *tube.retained;
}

}  // namespace

void Retention::look_not_after(Tube& tube, Tick when) noexcept {
  TubeTimer& time = retained_of(tube).time;
  if (!time.armed() || when < time.expiry()) wheel_.reschedule(time, Moment{when});
}

void Retention::follow(Tube& tube) noexcept {
  if (retention_of(tube) == 0) {
    if (tube.retained) wheel_.cancel(tube.retained->time);
    return tube.retained.reset();  // the timers of its lanes will find out
  }
  retained_of(tube).lane = 1;
  look_not_after(tube, clock_.tick());
}

void Retention::await(Tube& lane, const JobRecord& job) noexcept {
  const auto end = end_of(job, retention_of(lane));
  if (!end) return;
  Retained& retained = retained_of(lane);
  retained.from = std::min(retained.from, job.burial);
  look_not_after(lane, std::max(clock_.tick_of(*end), clock_.tick() + 1));
}

std::optional<UtcMs> Retention::end_of(const JobRecord& job, Millis kept) const {
  const JobExtras& extras = *job.extras;
  if (kept == 0 || extras.death == Death::kNone) return std::nullopt;
  JobRecord counted{.due = std::min(extras.died + kept, kLastDue), .history = {}};
  counted.lead = extras.died_lead;
  const UtcMs end = clock_.delay_end(counted);
  return extras.died > clock_.utc_from() ? end : std::max(end, counted.due);
}

// Visits lanes of the tube that have buried jobs, and awaits their ends.
std::size_t Retention::look_at_lanes(Tube& tube, std::size_t budget) {
  std::uint32_t& next = tube.retained->lane;
  std::size_t looked = 0;
  for (; next != 0 && looked < budget; ++looked) {
    Tube* const lane = tube.lane_from(next);
    next = lane == nullptr ? 0 : lane->record.number + 1;
    if (lane == nullptr || lane->record.buried == 0) continue;
    retained_of(*lane).from = 0;
    look_not_after(*lane, clock_.tick());
  }
  return looked;
}

std::size_t Retention::go_on(Tube& tube, std::size_t budget, std::vector<std::uint32_t>& emptied) {
  const Millis kept = retention_of(tube);
  if (kept == 0) {
    tube.retained.reset();
    return 0;
  }
  if (!store_.has_room()) {
    look_not_after(tube, clock_.tick() + kAwaitRoom);
    return 0;
  }
  std::size_t looked = look_at_lanes(tube, budget);
  Retained& retained = *tube.retained;
  if (retained.lane != 0) look_not_after(tube, clock_.tick());
  if (looked == budget || tube.record.buried == 0) return looked;

  std::vector<JobRecord> over;
  const std::size_t most = std::min(budget - looked, kAtOnce);
  const std::vector<JobRecord> found = store_.scan_buried(tube.record.number, retained.from, most);
  bool has_time_left = false;
  for (const JobRecord& job : found) {
    ++looked;
    const auto end = end_of(job, kept);
    if (!end && over.empty()) retained.from = job.burial + 1;
    if (!end) continue;
    has_time_left = !clock_.is_surely_over(*end);
    if (has_time_left) {
      look_not_after(tube, std::max(clock_.tick_surely_over(*end), clock_.tick() + 1));
      break;
    }
    over.push_back(job);
  }
  if (!has_time_left && found.size() == most) look_not_after(tube, clock_.tick());
  if (over.empty()) return looked;
  emptied.push_back(tube.record.number);
  remove_all(over);
  retained.from = over.back().burial + 1;  // a scan would pass the erased entries
  return looked;
}

void Retention::remove_all(const std::vector<JobRecord>& jobs) {
  for (const JobRecord& job : jobs) removals_.add(job, Work::kNotDone);
  appender_.append();
  for (const JobRecord& job : jobs) {
    ++removals_.finish(job).head().dead_deleted;
    ++counts_.totals.dead_deleted;
  }
}

bool Retention::will_go(const Tube& lane) const {
  if (retention_of(lane) == 0 || lane.record.buried == 0) return true;
  const Tube& head = lane.head();
  const bool waits = head.retained && head.retained->lane != 0 && head.retained->time.armed();
  for (const JobRecord& job : store_.scan_buried(lane.record.number, 0, SIZE_MAX)) {
    const auto end = end_of(job, retention_of(lane));
    if (!end) continue;
    if (!lane.retained || !lane.retained->time.armed()) return waits;
    return job.burial >= lane.retained->from;
  }
  return true;
}

void Retention::check_invariants(const Tube& lane) const {
  check_invariant(will_go(lane), "a dead job will go in time", lane.record.name);
}

void Retention::follow_the_clock(Tube& tube) {
  if (tube.retained && tube.retained->time.armed())
    wheel_.reschedule(tube.retained->time, Moment{clock_.tick()});
}

void Retention::forget(Tube& tube) noexcept {
  if (tube.retained) wheel_.cancel(tube.retained->time);
}

}  // namespace carillon::queue
