// Here far jobs are loaded: which of a tube's jobs are in memory, and which in the store alone.
//
// Each tube has a cursor into its jobs by (due, id): all jobs before it are in memory. The cursor
// moves on as time passes. It moves back when a tube has more jobs than it may have in memory. A
// tube without near jobs costs nothing: its load timer sleeps until `load_ahead` before its first
// far job is due.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// How long a tube waits for more room before it is loaded again, in ms.
constexpr Millis kRoomWait = 100;

}  // namespace

DueKey EngineState::horizon() const {
  return {clock.utc() + options.load_ahead + 1, 0};
}

Tick EngineState::time_to_load(UtcMs due_time) const {
  return clock.tick_of(due_time > options.load_ahead ? due_time - options.load_ahead : 0);
}

void EngineState::load_not_after(Tube& tube, Tick when) {
  if (!tube.load_time.armed() || when < tube.load_time.expiry())
    loading.reschedule(tube.load_time, Moment{when});
}

std::size_t EngineState::most_queued() const {
  const std::size_t queued = jobs.size() - sums.reserved;
  const std::size_t free = options.max_loaded > queued ? options.max_loaded - queued : 0;
  return std::min(options.max_loaded_per_tube, std::max<std::size_t>(free, 1));
}

void EngineState::extend_cursor(Tube& tube) {
  if (tube.queued() >= most_queued()) return;
  DueKey known = horizon();
  if (tube.far > 0) known = std::min(known, DueKey{tube.next_far, 0});
  tube.cursor = std::max(tube.cursor, known);
}

void EngineState::leave_far(Tube& tube, const JobRecord& record) noexcept {
  tube.next_far = tube.far == 0 ? record.due : std::min(tube.next_far, record.due);
  if (!tube.starved) load_not_after(tube, time_to_load(tube.next_far));
  note_far(tube, record, +1);
}

void EngineState::make_room(Tube& tube, LoadedJob& newest) noexcept {
  constexpr std::size_t kAtOnce = 16;
  const bool is_ready = newest.state == JobState::kReady;  // so it is not among the delayed ones
  drop_surplus(tube, kAtOnce);
  const bool no_room = tube.delayed.empty() && tube.queued() > most_queued();
  const bool no_memory = tube.queued() > 1 && memory_is_short();
  if (is_ready && (no_room || no_memory)) drop_for_room(newest);
}

std::size_t EngineState::drop_surplus(Tube& tube, std::size_t budget) {
  std::size_t dropped = 0;
  for (; tube.queued() > most_queued() && !tube.delayed.empty(); ++dropped) {
    if (dropped == budget) {
      load_not_after(tube, clock.tick());
      break;
    }
    drop_for_room(*tube.delayed.rbegin());
  }
  return dropped;
}

void EngineState::drop_for_room(LoadedJob& job) {
  Tube& tube = *job.tube;
  tube.cursor = std::min(tube.cursor, job.due_key());
  const JobRecord stored = job.record;
  detach(job);
  drop_from_memory(job);
  tube.starved = true;
  leave_far(tube, stored);
  starve(tube);
}

void EngineState::room_appeared(Tube& tube) {
  const std::size_t most = most_queued();
  if (!tube.starved || tube.queued() >= most) return;
  // A scan for each job that leaves would read one record at a time. So wait until a quarter has
  // left, but not for long.
  const Tick load_at = clock.tick() + (tube.queued() <= most - most / 4 ? 0 : kRoomWait);
  load_not_after(tube, load_at);
}

std::size_t EngineState::load(Tube& tube, std::size_t budget) {
  tube.starved = false;
  if (tube.far == 0) return 0;
  if (!may_load(tube)) {
    load_not_after(tube, clock.tick() + kRoomWait);
    return 0;
  }
  if (const std::size_t dropped = drop_surplus(tube, budget); dropped > 0) return dropped;
  const std::size_t most = memory_is_short() ? 1 : most_queued();
  if (tube.queued() >= most) {
    starve(tube);
    return 0;
  }
  const std::size_t limit = std::min(budget, most - tube.queued());
  const std::vector<JobRecord> records = store.scan_due(tube.record.number, tube.cursor, limit);
  load(tube, records, limit);
  if (tube.cursor > DueKey{clock.utc() + 1, 0}) end_count(tube);
  return records.size();
}

void EngineState::load(Tube& tube, std::span<const JobRecord> records, std::size_t limit) {
  // No job that stays in the store is due before this; none if no job stays there.
  std::optional<UtcMs> rest_due;
  if (records.size() == limit) rest_due = records.back().due;
  const std::vector<JobRecord> later = place_later(records);
  for (const JobRecord& record : later)
    rest_due = std::min(rest_due.value_or(kLastDue), record.due);
  for (const JobRecord& record : records) {
    if (DueKey{record.due, record.id} >= horizon()) {
      rest_due = std::min(rest_due.value_or(kLastDue), record.due);
      break;
    }
    tube.cursor = std::max(tube.cursor, DueKey{record.due, record.id + 1});
    if (loaded(record.id) != nullptr || is_too_early(record)) continue;
    note_far(tube, record, -1);
    enqueue(add_to_memory(record));
  }
  if (!rest_due || *rest_due >= horizon().due) tube.cursor = std::max(tube.cursor, horizon());
  if (rest_due) {
    tube.next_far = *rest_due;
    load_not_after(tube, time_to_load(*rest_due));
  }
}

// Neither the command that happens to run nor the other tubes are at fault. So this does not throw;
// Engine::advance does.
void EngineState::loading_failed(TubeTimer& timer, const StoreError& error) {
  constexpr Millis kRetry = 1'000;
  load_failure = error.what();
  loading.reschedule(timer, Moment{clock.tick() + kRetry});
}

void EngineState::load_what_is_due(Tube& tube) try {
  // Begin with small scans: in most cases the first one already meets a job that is not due.
  constexpr std::size_t kFirst = 16;
  std::size_t budget = std::min(kFirst, options.step);
  while (tube.far > 0 && !tube.starved && tube.next_far <= clock.utc()) {
    loading.cancel(tube.load_time);  // `load` arms it anew if any job is left
    if (load(tube, budget) == 0) break;
    budget = std::min(2 * budget, options.step);
  }
} catch (const StoreError& error) {
  loading_failed(tube.load_time, error);
}

void EngineState::look_at_all(const std::deque<Tube*>& order) {
  constexpr std::size_t kAtOnce = 1'000;  // tubes whose records are in memory together
  std::vector<Tube*> some;
  for (Tube* tube : order) {
    if (tube->far > 0) some.push_back(tube);
    if (some.size() == kAtOnce || tube == order.back()) look_at(std::exchange(some, {}));
  }
}

void EngineState::look_at(const std::vector<Tube*>& those) {
  const std::size_t limit = std::min<std::size_t>(16, most_queued());
  std::vector<std::uint32_t> numbers;
  for (const Tube* tube : those) numbers.push_back(tube->record.number);
  std::vector<JobRecord> records;
  try {
    records = store.scan_due_of_each(numbers, horizon().due, limit);
  } catch (const StoreError&) {
    // One of them is at fault. Each is tried by itself.
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
      if (may_load(*tube)) load(*tube, {first, last}, limit);
      load_what_is_due(*tube);
    } catch (const StoreError& error) {
      loading_failed(tube->load_time, error);
    }
    first = last;
  }
}

EngineState::FarJobs EngineState::scan_far(Tube& tube, DueKey from, std::size_t limit) {
  constexpr std::size_t kScan = 16;
  FarJobs found{.jobs = {}, .next = from, .more = tube.far > 0};
  if (!found.more) return found;
  from = std::max({from, tube.cursor, DueKey{clock.utc() + 1, 0}});
  const std::vector<JobRecord> records = store.scan_due(tube.record.number, from, kScan);
  for (const JobRecord& record : records) {
    if (found.jobs.size() == limit) return found;
    found.next = {record.due, record.id + 1};
    if (loaded(record.id) == nullptr) found.jobs.push_back(record);
  }
  found.more = records.size() == kScan;
  return found;
}

}  // namespace carillon::queue
