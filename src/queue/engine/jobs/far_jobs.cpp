#include "queue/engine/jobs/far_jobs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// How long a tube waits for more room before it is loaded again, in ms.
constexpr Millis kRoomWait = 100;

// A count does not begin anew for jobs that will be due within this many ms: some hosts set the
// clocks of their guests by a few milliseconds again and again.
constexpr Millis kSmallStep = 100;

}  // namespace

DueKey FarJobs::horizon() const {
  return {clock_.utc() + options_.load_ahead + 1, 0};
}

Tick FarJobs::time_to_load(UtcMs due_time) const {
  return clock_.tick_of(due_time > options_.load_ahead ? due_time - options_.load_ahead : 0);
}

void FarJobs::load_not_after(Tube& tube, Tick when) {
  if (!tube.load_time.armed() || when < tube.load_time.expiry())
    wheel_.reschedule(tube.load_time, Moment{when});
}

std::size_t FarJobs::most_queued() const {
  const std::size_t queued = jobs_.size() - counts_.sums.reserved;
  const std::size_t free = options_.max_loaded > queued ? options_.max_loaded - queued : 0;
  return std::min(options_.max_loaded_per_tube, std::max<std::size_t>(free, 1));
}

void FarJobs::extend_cursor(Tube& tube) {
  if (tube.queued() >= most_queued()) return;
  DueKey known = horizon();
  if (tube.far > 0) known = std::min(known, DueKey{tube.next_far, 0});
  tube.cursor = std::max(tube.cursor, known);
}

void FarJobs::leave_far(Tube& tube, const JobRecord& record) noexcept {
  tube.next_far = tube.far == 0 ? record.due : std::min(tube.next_far, record.due);
  if (!tube.starved) load_not_after(tube, time_to_load(tube.next_far));
  note(tube, record, +1);
}

void FarJobs::make_room(Tube& tube, LoadedJob& newest) noexcept {
  constexpr std::size_t kAtOnce = 16;
  const bool is_ready = newest.state == JobState::kReady;  // it is not among the delayed ones
  drop_surplus(tube, kAtOnce);
  const bool no_room = tube.delayed.empty() && tube.queued() > most_queued();
  const bool no_memory = tube.queued() > 1 && memory_is_short();
  if (is_ready && (no_room || no_memory)) drop_for_room(newest);
}

std::size_t FarJobs::drop_surplus(Tube& tube, std::size_t budget) {
  std::size_t dropped = 0;
  for (; tube.queued() > most_queued() && !tube.delayed.empty(); ++dropped) {
    if (dropped == budget) {
      load_not_after(tube, clock_.tick());
      break;
    }
    drop_for_room(*tube.delayed.rbegin());
  }
  return dropped;
}

void FarJobs::drop_for_room(LoadedJob& job) {
  Tube& tube = *job.tube;
  tube.cursor = std::min(tube.cursor, job.due_key());
  const JobRecord stored = job.record;
  jobs_.detach(job);
  jobs_.drop_from_memory(job);
  tube.starved = true;
  leave_far(tube, stored);
  starve(tube);
}

void FarJobs::room_appeared(Tube& tube) {
  const std::size_t most = most_queued();
  if (!tube.starved || tube.queued() >= most) return;
  // A scan for each job that leaves would read one record at a time. So wait until a quarter of the
  // room is free, but not for long.
  const Tick load_at = clock_.tick() + (tube.queued() <= most - most / 4 ? 0 : kRoomWait);
  load_not_after(tube, load_at);
}

std::size_t FarJobs::load(Tube& tube, std::size_t budget) {
  tube.starved = false;
  if (tube.far == 0) return 0;
  if (!endings_.may_load(tube)) {
    load_not_after(tube, clock_.tick() + kRoomWait);
    return 0;
  }
  if (const std::size_t dropped = drop_surplus(tube, budget); dropped > 0) return dropped;
  const std::size_t most = memory_is_short() ? 1 : most_queued();
  if (tube.queued() >= most) {
    starve(tube);
    return 0;
  }
  const std::size_t limit = std::min(budget, most - tube.queued());
  const std::vector<JobRecord> records = store_.scan_due(tube.record.number, tube.cursor, limit);
  load(tube, records, limit);
  if (tube.cursor > DueKey{clock_.utc() + 1, 0}) end_count(tube);
  return records.size();
}

void FarJobs::load(Tube& tube, std::span<const JobRecord> records, std::size_t limit) {
  // No job that stays in the store is due before this; none if no job stays there.
  std::optional<UtcMs> rest_due;
  if (records.size() == limit) rest_due = records.back().due;
  const std::vector<JobRecord> later = placing_.place_later(records);
  for (const JobRecord& record : later)
    rest_due = std::min(rest_due.value_or(kLastDue), record.due);
  for (const JobRecord& record : records) {
    if (DueKey{record.due, record.id} >= horizon()) {
      rest_due = std::min(rest_due.value_or(kLastDue), record.due);
      break;
    }
    tube.cursor = std::max(tube.cursor, DueKey{record.due, record.id + 1});
    if (jobs_.loaded(record.id) != nullptr || placing_.is_too_early(record)) continue;
    note(tube, record, -1);
    jobs_.enqueue(jobs_.add_to_memory(record));
  }
  if (!rest_due || *rest_due >= horizon().due) tube.cursor = std::max(tube.cursor, horizon());
  if (rest_due) {
    tube.next_far = *rest_due;
    load_not_after(tube, time_to_load(*rest_due));
  }
}

// The error concerns neither the command that happens to run nor the other tubes. So this does not
// throw; Engine::advance does.
void FarJobs::failed(TubeTimer& timer, const StoreError& error) {
  constexpr Millis kRetry = 1'000;
  appender_.failed(error.what());
  wheel_.reschedule(timer, Moment{clock_.tick() + kRetry});
}

void FarJobs::load_what_is_due(Tube& tube) try {
  // Begin with small scans: in most cases the first one already meets a job that is not due.
  constexpr std::size_t kFirst = 16;
  std::size_t budget = std::min(kFirst, options_.step);
  while (tube.far > 0 && !tube.starved && tube.next_far <= clock_.utc()) {
    wheel_.cancel(tube.load_time);  // `load` arms it anew if any job is left
    if (load(tube, budget) == 0) break;
    budget = std::min(2 * budget, options_.step);
  }
} catch (const StoreError& error) {
  failed(tube.load_time, error);
}

void FarJobs::look_at_all(const std::deque<Tube*>& order) {
  constexpr std::size_t kAtOnce = 1'000;  // tubes whose records are in memory together
  std::vector<Tube*> some;
  for (Tube* tube : order) {
    if (tube->far > 0) some.push_back(tube);
    if (some.size() == kAtOnce || tube == order.back()) look_at(std::exchange(some, {}));
  }
}

void FarJobs::look_at(const std::vector<Tube*>& those) {
  const std::size_t limit = std::min<std::size_t>(16, most_queued());
  std::vector<std::uint32_t> numbers;
  for (const Tube* tube : those) numbers.push_back(tube->record.number);
  std::vector<JobRecord> records;
  try {
    records = store_.scan_due_of_each(numbers, horizon().due, limit);
  } catch (const StoreError&) {
    // A tube among them causes the error. Try each by itself.
    for (Tube* tube : those) load_what_is_due(*tube);
    return;
  }
  auto first = records.begin();
  for (Tube* tube : those) {
    const auto is_others = [tube](const auto& record) {
      return record.tube != tube->record.number;
    };
    const auto last = std::find_if(first, records.end(), is_others);
    try {
      if (endings_.may_load(*tube)) load(*tube, {first, last}, limit);
      load_what_is_due(*tube);
    } catch (const StoreError& error) {
      failed(tube->load_time, error);
    }
    first = last;
  }
}

FarJobs::Found FarJobs::scan(Tube& tube, DueKey from, std::size_t limit) {
  constexpr std::size_t kScan = 16;
  Found found{.jobs = {}, .next = from, .more = tube.far > 0};
  if (!found.more) return found;
  from = std::max({from, tube.cursor, DueKey{clock_.utc() + 1, 0}});
  const std::vector<JobRecord> records = store_.scan_due(tube.record.number, from, kScan);
  for (const JobRecord& record : records) {
    if (found.jobs.size() == limit) return found;
    found.next = {record.due, record.id + 1};
    if (jobs_.loaded(record.id) == nullptr) found.jobs.push_back(record);
  }
  found.more = records.size() == kScan;
  return found;
}

void FarJobs::follow_the_clock(Tube& tube) {
  if (tube.far > 0 && !tube.starved)
    wheel_.reschedule(tube.load_time, Moment{time_to_load(tube.next_far)});
}

void FarJobs::forget(Tube& tube) noexcept {
  wheel_.cancel(tube.load_time);
  end_count(tube);
}

TubeTimer* FarJobs::take_due() {
  TubeTimer* timer = nullptr;
  wheel_.advance(
      clock_.tick(), [&timer](TimerNode& node) { timer = &static_cast<TubeTimer&>(node); }, 1);
  return timer;
}

std::size_t FarJobs::go_on(TubeTimer& timer, std::size_t budget) {
  Tube& tube = *timer.tube;
  return &timer == &tube.load_time ? load(tube, budget) : count_more(tube, budget);
}

// --- Counting those that are ready

void FarJobs::starve(Tube& tube) {
  tube.starved = true;
  if (tube.far_count) return;
  tube.far_count = std::make_unique<FarCount>(tube);
  ++counts_.far_counts;
  tube.far_count->next = tube.next_far;
  count_not_after(tube, tube.next_far);
}

void FarJobs::end_count(Tube& tube) {
  if (!tube.far_count) return;
  forget_count(tube);
  wheel_.cancel(tube.far_count->time);
  tube.far_count.reset();
  --counts_.far_counts;
}

void FarJobs::count_after_step(Tube& tube) {
  if (!tube.far_count) return;
  FarCount& count = *tube.far_count;
  if (count.counted > DueKey{clock_.utc() + kSmallStep, 0}) forget_count(tube);
  wheel_.reschedule(count.time, Moment{clock_.tick()});
}

void FarJobs::forget_count(Tube& tube) {
  FarCount& count = *tube.far_count;
  counts_.count_ready(tube, -static_cast<std::int64_t>(count.ready),
                      -static_cast<std::int64_t>(count.urgent));
  count.ready = 0;
  count.urgent = 0;
  count.counted = {};
  count.next = 0;
}

void FarJobs::count_not_after(Tube& tube, UtcMs when) {
  tube.far_count->next = std::min(tube.far_count->next, when);
  TubeTimer& time = tube.far_count->time;
  Tick tick = clock_.tick_of(when);
  // The tick may have come already: if the wall clock was set back by so little that it is no step.
  if (when > clock_.utc()) tick = std::max(tick, clock_.tick() + 1);
  if (!time.armed() || tick < time.expiry()) wheel_.reschedule(time, Moment{tick});
}

void FarJobs::note(Tube& tube, const JobRecord& record, int by) noexcept {
  if (record.buried()) return;
  tube.far += static_cast<std::uint64_t>(static_cast<std::int64_t>(by));
  count(tube, record, by);
}

void FarJobs::count(Tube& tube, const JobRecord& record, int by) noexcept {
  if (!tube.far_count) return;
  FarCount& count = *tube.far_count;
  if (DueKey{record.due, record.id} >= count.counted) {
    if (by < 0) return;
    if (record.due > clock_.utc() || record.due >= count.next)
      return count_not_after(tube, record.due);
    // All jobs before it are counted, so no scan is needed. Puts into a full tube take this way.
    count.counted = {record.due, record.id + 1};
  }
  const int urgent = record.priority < kUrgentBelow ? by : 0;
  count.ready += static_cast<std::uint64_t>(by);
  count.urgent += static_cast<std::uint64_t>(urgent);
  counts_.count_ready(tube, by, urgent);
}

std::size_t FarJobs::count_more(Tube& tube, std::size_t budget) {
  constexpr std::size_t kAtOnce = 32;  // in most cases few have become ready since the last time
  FarCount& counted = *tube.far_count;
  const DueKey from = std::max(counted.counted, tube.cursor);
  const std::size_t limit = std::min(budget, kAtOnce);
  const std::vector<JobRecord> records = store_.scan_due(tube.record.number, from, limit);
  const std::vector<JobRecord> later = placing_.place_later(records);
  counted.next = UINT64_MAX;
  for (const JobRecord& record : later) count_not_after(tube, record.due);
  for (const JobRecord& record : records) {
    if (record.due > clock_.utc()) {
      count_not_after(tube, record.due);
      return records.size();
    }
    const bool is_far = jobs_.loaded(record.id) == nullptr && !placing_.is_too_early(record);
    counted.counted = {record.due, record.id + 1};
    if (is_far) count(tube, record, +1);
  }
  if (records.size() == limit) count_not_after(tube, records.back().due);
  return records.size();
}

// All jobs before the cursor must be in memory. No job that is only in the store may be due before
// next_far. Far jobs before FarCount::counted must be counted.
void FarJobs::check_invariants(const Tube& tube) const {
  std::vector<JobRecord> far = store_.scan_due(tube.record.number, {}, SIZE_MAX);
  std::erase_if(far, [this](const JobRecord& job) { return jobs_.loaded(job.id) != nullptr; });
  const std::string& name = tube.record.name;
  const bool waits_for_room = tube.starved && tube.queued() > 0;
  check_invariant(tube.far == 0 || waits_for_room || tube.load_time.armed(),
                  "far jobs will be loaded", name);
  check_invariant(far.size() == tube.far, "far jobs are counted", name);
  std::uint64_t ready = 0;
  std::uint64_t urgent = 0;
  for (const JobRecord& record : far) {
    const DueKey key{record.due, record.id};
    check_invariant(key >= tube.cursor, "a job before the cursor is in memory", name);
    check_invariant(record.due >= tube.next_far, "no far job is due before next_far", name);
    if (!tube.far_count) continue;
    const bool counted = key < tube.far_count->counted;
    check_invariant(counted || tube.far_count->time.armed(), "the far job will be counted", name);
    check_invariant(counted || record.due >= tube.far_count->next, "no other far job is due before",
                    name);
    ready += counted ? 1U : 0U;
    urgent += counted && record.priority < kUrgentBelow ? 1U : 0U;
  }
  if (!tube.far_count)
    return check_invariant(!tube.starved, "a starved tube counts its far jobs", name);
  check_invariant(ready == tube.far_count->ready, "far jobs that are ready are counted", name);
  check_invariant(urgent == tube.far_count->urgent,
                  "far jobs that are ready and urgent are counted", name);
}

}  // namespace carillon::queue
