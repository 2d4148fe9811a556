// Here the far jobs that are ready are counted, in a tube that may not load all of them.
//
// Jobs before a cursor of (due, id), FarCount::counted, have been counted. The cursor follows the
// clock by scans of the store, a part of them in each call: each job is read once for it. From then
// on whatever makes a job far, or not far any more, counts it in or out if it is before the cursor.
// Nothing of that is stored: a start counts anew.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// A count does not begin anew for jobs that will be due within so many ms: some hosts set the
// clocks of their guests by a few milliseconds again and again.
constexpr Millis kSmallStep = 100;

}  // namespace

void EngineState::starve(Tube& tube) {
  tube.starved = true;
  if (tube.far_count) return;
  tube.far_count = std::make_unique<FarCount>(tube);
  ++far_counts;
  tube.far_count->next = tube.next_far;
  count_not_after(tube, tube.next_far);
}

void EngineState::end_count(Tube& tube) {
  if (!tube.far_count) return;
  forget_count(tube);
  loading.cancel(tube.far_count->time);
  tube.far_count.reset();
  --far_counts;
}

void EngineState::count_after_step(Tube& tube) {
  if (!tube.far_count) return;
  FarCount& count = *tube.far_count;
  if (count.counted > DueKey{clock.utc() + kSmallStep, 0}) forget_count(tube);
  loading.reschedule(count.time, Moment{clock.tick()});
}

void EngineState::forget_count(Tube& tube) {
  FarCount& count = *tube.far_count;
  count_ready(tube, -static_cast<std::int64_t>(count.ready),
              -static_cast<std::int64_t>(count.urgent));
  count.ready = 0;
  count.urgent = 0;
  count.counted = {};
  count.next = 0;
}

void EngineState::count_not_after(Tube& tube, UtcMs when) {
  tube.far_count->next = std::min(tube.far_count->next, when);
  TubeTimer& time = tube.far_count->time;
  Tick tick = clock.tick_of(when);
  // The tick may have come already: if the wall clock was set back by so little that it is no step.
  if (when > clock.utc()) tick = std::max(tick, clock.tick() + 1);
  if (!time.armed() || tick < time.expiry()) loading.reschedule(time, Moment{tick});
}

void EngineState::note_far(Tube& tube, const JobRecord& record, int by) noexcept {
  if (record.buried()) return;
  tube.far += static_cast<std::uint64_t>(static_cast<std::int64_t>(by));
  count_far(tube, record, by);
}

void EngineState::count_far(Tube& tube, const JobRecord& record, int by) noexcept {
  if (!tube.far_count) return;
  FarCount& count = *tube.far_count;
  if (DueKey{record.due, record.id} >= count.counted) {
    if (by < 0) return;
    if (record.due > clock.utc() || record.due >= count.next)
      return count_not_after(tube, record.due);
    // All jobs before it are counted, so no scan is needed. A put into a full tube comes here.
    count.counted = {record.due, record.id + 1};
  }
  const int urgent = record.priority < kUrgentBelow ? by : 0;
  count.ready += static_cast<std::uint64_t>(by);
  count.urgent += static_cast<std::uint64_t>(urgent);
  count_ready(tube, by, urgent);
}

std::size_t EngineState::count_more(Tube& tube, std::size_t budget) {
  constexpr std::size_t kAtOnce = 32;  // in most cases few have become ready since the last time
  FarCount& count = *tube.far_count;
  const DueKey from = std::max(count.counted, tube.cursor);
  const std::size_t limit = std::min(budget, kAtOnce);
  const std::vector<JobRecord> records = store.scan_due(tube.record.number, from, limit);
  const std::vector<JobRecord> later = place_later(records);
  count.next = UINT64_MAX;
  for (const JobRecord& record : later) count_not_after(tube, record.due);
  for (const JobRecord& record : records) {
    if (record.due > clock.utc()) {
      count_not_after(tube, record.due);
      return records.size();
    }
    const bool is_far = loaded(record.id) == nullptr && !is_too_early(record);
    count.counted = {record.due, record.id + 1};
    if (is_far) count_far(tube, record, +1);
  }
  if (records.size() == limit) count_not_after(tube, records.back().due);
  return records.size();
}

}  // namespace carillon::queue
