// Here a command's changes are gathered and appended to the store, along with the counts of their
// tubes and, now and then, the watermarks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/engine/schedules/schedules.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// The stored watermarks run ahead of the ids given by this many. A larger block means more ids
// skipped after a crash; a smaller one more appends that carry watermarks.
constexpr std::uint64_t kIdBlock = 1'000;
// The stored time is at most about so far behind.
constexpr Millis kTimeStep = 1'000;

void count(TubeRecord& tube, const JobRecord& job, std::int64_t by) {
  std::uint64_t& jobs = job.buried() ? tube.buried : tube.scheduled;
  jobs += static_cast<std::uint64_t>(by);
}

// Gathers how many lanes the tubes will have: a tube is stored as long as any of its lanes is.
void add_lane_counts(EngineState& s) {
  std::vector<TubeRecord>& tubes = s.changes.tubes;
  for (std::size_t i = 0; i < tubes.size(); ++i) {
    const std::uint32_t head = tubes[i].head;
    if (head == 0) continue;
    const bool was_stored = !s.tube_numbered(tubes[i].number).record.empty();
    const bool is_stored = !tubes[i].empty();
    if (is_stored && !was_stored) ++s.changed_tube(head).lanes;
    if (was_stored && !is_stored) --s.changed_tube(head).lanes;
  }
}

}  // namespace

TubeRecord& EngineState::changed_tube(std::uint32_t number) {
  const auto same = [number](const TubeRecord& tube) { return tube.number == number; };
  const auto tube = std::find_if(changes.tubes.begin(), changes.tubes.end(), same);
  return tube != changes.tubes.end() ? *tube
                                     : *changes.tubes.insert(tube, tube_numbered(number).record);
}

void EngineState::add_change(std::optional<JobRecord> before, std::optional<JobRecord> after,
                             std::string_view body) {
  if (before) count(changed_tube(before->tube), *before, -1);
  if (after) count(changed_tube(after->tube), *after, +1);
  changes.jobs.push_back({std::move(before), std::move(after), body});
}

void EngineState::add_key_change(std::optional<KeyRecord> before, std::optional<KeyRecord> after) {
  if (after && after->until != 0) sweep_keys_not_after(after->until);
  const std::uint32_t number = before ? before->tube : after->tube;
  if (number != kTokens) {
    TubeRecord& tube = changed_tube(number);
    if (before && before->until != 0) --tube.ended_keys;
    if (after && after->until != 0) ++tube.ended_keys;
  }
  changes.keys.push_back({std::move(before), std::move(after)});
}

Watermarks EngineState::watermarks(JobId ids, std::uint64_t burials) const {
  return {.next_id = ids,
          .next_burial = burials,
          .time = clock.utc(),
          .boot = options.boot,
          .wall_ns = clock.wall_ns(),
          .steady_ns = clock.steady_ns(),
          .boot_lead = clock.boot_lead(),
          .job_lead = job_lead,
          .gained_ns = clock.gained_ns(),
          .era = clock.era(),
          .boot_era = clock.boot_era(),
          .up_ns = clock.up_ns(),
          .rises = clock.rises(),
          .wrong_since = clock.wrong_since(),
          .newer = stored_marks.newer};
}

Sequence EngineState::append() {
  struct Clear {
    Changes& changes;
    ~Clear() { changes.clear(); }
  } clear{changes};

  const bool covered = next_id <= stored_marks.next_id && next_burial <= stored_marks.next_burial;
  if (!covered || !clock_is_stored || clock.utc() >= stored_marks.time + kTimeStep) {
    changes.watermarks =
        watermarks(std::max(stored_marks.next_id, next_id + (covered ? 0 : kIdBlock)),
                   std::max(stored_marks.next_burial, next_burial + (covered ? 0 : kIdBlock)));
  }
  add_lane_counts(*this);
  last_sequence = store.append(changes);
  appended();
  return last_sequence;
}

void EngineState::appended() noexcept {
  if (changes.watermarks) {
    stored_marks = std::move(*changes.watermarks);
    clock_is_stored = true;
  }
  for (TubeRecord& counted : changes.tubes) {
    Tube& tube = tube_numbered(counted.number);
    TubeRecord& record = tube.record;
    scheduled += counted.scheduled - record.scheduled;
    sums.buried += counted.buried - record.buried;
    if (tube.turn) {
      tube.sums()->scheduled += counted.scheduled - record.scheduled;
      tube.sums()->buried += counted.buried - record.buried;
    }
    record.scheduled = counted.scheduled;
    record.buried = counted.buried;
    record.ended_keys = counted.ended_keys;
    record.lanes = counted.lanes;
    record.settings = std::move(counted.settings);
    if (tube.turn) tube.head().groups->follow_record(tube);
  }
  if (!schedules->awaited.empty()) schedules->jobs_left(changes);
}

}  // namespace carillon::queue
