// Reads lists of a tube's jobs in steps (job_listing.h).
//
// The store has the records of all jobs, those in memory too, in the order of the list. So a list
// is a scan of the store. Newer data in memory is looked up. No job is loaded for a list.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/engine/jobs/job_lists.h"

namespace carillon::queue {

namespace {

// How many records are read at once. A filter may pass few of them, so at least 16 are read.
constexpr std::size_t kMostRecords = 64;
constexpr std::size_t kLeastRecords = 16;

constexpr std::uint32_t kScheduled =
    bit_of(JobState::kDelayed) | bit_of(JobState::kReady) | bit_of(JobState::kReserved);
constexpr std::uint32_t kBuriedOrDead = bit_of(JobState::kBuried) | kDeadJobs;

std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Returns the due time from which on no job can match, apart from buried ones.
UtcMs end_of(const EngineState& state, const Tube& tube, const JobFilter& filter) {
  if (!filter.admits_any(kScheduled)) return 0;
  const bool any_due = filter.admits_any(bit_of(JobState::kDelayed)) || state.placing.is_pending();
  if (any_due) return filter.due_before;
  // A job that is due later is delayed, unless somebody has reserved it before its time.
  UtcMs last = 0;
  constexpr Millis kTolerance = 1;  // how far the wall clock may go back without a step
  if (filter.admits_any(bit_of(JobState::kReady))) last = state.clock.utc() + kTolerance;
  if (tube.reserved > 0 && filter.admits_any(bit_of(JobState::kReserved)))
    last = std::max(last, tube.reserved_until);
  return std::min(filter.due_before, last + 1);
}

ListedJob listed(EngineState& s, const JobRecord& job, JobState state) {
  ListedJob listed{.record = job, .state = state};
  s.jobs.show_expiry(listed.record);
  const Tube& tube = s.tubes.numbered(job.tube);
  if (tube.is_lane()) listed.group = tube.record.name;
  const LoadedJob* const in_memory = s.jobs.loaded(job.id);
  if (in_memory == nullptr) return listed;
  listed.record.history = in_memory->history;
  if (in_memory->holder != nullptr) listed.worker = in_memory->holder->name;
  return listed;
}

// Limits of one step: places that are made, reads of lanes, and the jobs of one read. If the same
// lane is read again, the read takes twice as many.
constexpr std::size_t kPlacesAtOnce = 1'024;
constexpr std::size_t kLooksAtOnce = 32;
constexpr std::size_t kLeastAtOnce = 2;
constexpr std::size_t kMostAtOnce = 64;

bool is_later(const JobCursor& one, const JobCursor& other) {
  return other.is_before(one);
}

// All places are equal then, so they form a heap.
void make_places(Tube& head, JobListing& list) {
  JobCursor place = list.next;
  for (std::size_t made = 0; made < kPlacesAtOnce; ++made) {
    const Tube* const lane = head.lane_from(list.next_lane);
    list.has_lanes = lane == nullptr;
    if (list.has_lanes) return;
    place.lane = lane->is_lane() ? lane->record.number : 0;
    if (lane->record.scheduled + lane->record.buried > 0) list.lanes.push_back(place);
    list.next_lane = place.lane + 1;
  }
}

void push(std::vector<JobCursor>& heap, const JobCursor& place) {
  heap.push_back(place);
  std::push_heap(heap.begin(), heap.end(), is_later);
}

JobCursor pop(std::vector<JobCursor>& heap) {
  std::pop_heap(heap.begin(), heap.end(), is_later);
  const JobCursor place = heap.back();
  heap.pop_back();
  return place;
}

// Lists the jobs that were found in the lane with the earliest place, and moves the lane on.
void list_from(EngineState& state, const NextListed& found, JobListing& list, std::size_t limit,
               std::vector<ListedJob>& meant) {
  list.incomplete = list.incomplete || found.incomplete;
  JobCursor place = pop(list.lanes);
  const auto move_to = [&place](const JobCursor& to) {
    place.burial = to.burial;
    place.due = to.due;
  };
  for (const JobRecord& job : found.jobs) {
    move_to(JobCursor::of(job));
    const bool others_first = !list.lanes.empty() && list.lanes.front().is_before(place);
    if (others_first || meant.size() == limit) return push(list.lanes, place);
    NextListed::pass(state, job, list, meant);
    move_to(JobCursor::after(job));
  }
  if (found.next) move_to(*found.next);
  if (!found.done) push(list.lanes, place);
}

}  // namespace

bool JobFilter::admits(const JobRecord& job, JobState state) const {
  const bool is_dead = state == JobState::kBuried && job.extras->death != Death::kNone;
  const std::uint32_t is = bit_of(state) | (is_dead ? kDeadJobs : 0);
  return admits_any(is) && job.due >= due_from && job.due < due_before &&
         job.extras->key.starts_with(key_prefix);
}

std::string to_text(const JobCursor& cursor) {
  std::string text = cursor.lane > 0 ? "g" + std::to_string(cursor.lane) + "-" : "";
  text += cursor.burial > 0
              ? "b" + std::to_string(cursor.burial)
              : "d" + std::to_string(cursor.due.due) + "-" + std::to_string(cursor.due.id);
  if (cursor.burials_before != UINT64_MAX) text += "-" + std::to_string(cursor.burials_before);
  return text;
}

std::optional<JobCursor> to_cursor(std::string_view text) {
  JobCursor cursor;
  if (text.starts_with('g')) {
    text.remove_prefix(1);
    const auto lane = take_number(text);
    if (!lane || *lane == 0 || *lane > UINT32_MAX || !text.starts_with('-')) return std::nullopt;
    cursor.lane = static_cast<std::uint32_t>(*lane);
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  const char kind = text.front();
  text.remove_prefix(1);
  std::vector<std::uint64_t> numbers;
  while (true) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (text.empty()) break;
    if (text.front() != '-') return std::nullopt;
    text.remove_prefix(1);
  }
  const std::size_t most = kind == 'd' ? 3 : 2;
  if (numbers.size() == most) {
    cursor.burials_before = numbers.back();
    numbers.pop_back();
  }
  if (numbers.size() != most - 1) return std::nullopt;
  if (kind == 'd') {
    cursor.due = {numbers[0], numbers[1]};
    return cursor;
  }
  cursor.burial = numbers[0];
  return kind == 'b' && cursor.burial > 0 ? std::optional(cursor) : std::nullopt;
}

NextListed NextListed::in(const EngineState& state, const Tube& lane, const JobFilter& filter,
                          const JobCursor& from, std::size_t limit) {
  const std::uint32_t number = lane.record.number;
  NextListed found;
  const std::uint64_t gaps = state.store.scans_around_damage();
  const auto has_gap = [&] { return state.store.scans_around_damage() != gaps; };
  if (from.burial > 0) {
    found.jobs = state.store.scan_buried(number, from.burial, limit);
    found.incomplete = has_gap();
    const bool all = found.jobs.size() < limit;
    const auto is_late = [&](const JobRecord& job) { return job.burial >= from.burials_before; };
    found.done = std::erase_if(found.jobs, is_late) > 0 || all;
    return found;
  }
  const DueKey first = std::max(from.due, DueKey{filter.due_from, 0});
  const UtcMs end = end_of(state, lane, filter);
  if (first.due < end) found.jobs = state.store.scan_due(number, first, limit);
  found.incomplete = has_gap();
  const bool ends = found.jobs.size() < limit || found.jobs.back().due >= end;
  while (!found.jobs.empty() && found.jobs.back().due >= end) found.jobs.pop_back();
  if (!ends) return found;
  found.next = JobCursor{.burial = 1, .due = {}};
  found.done = lane.record.buried == 0 || !filter.admits_any(kBuriedOrDead);
  return found;
}

Tube* NextListed::lane_of(EngineState& state, JobListing& list) {
  Tube* const tube = state.tubes.find(list.tube);
  if (tube == nullptr) return nullptr;
  if (!list.filter.group.empty()) return state.tubes.find(*tube, list.filter.group);
  Tube* const lane = tube->lane_from(list.next.lane);
  if (lane == nullptr || !lane->is_lane() || lane->record.number == list.next.lane) return lane;
  list.next.lane = lane->record.number;  // the lane before is gone
  list.move_to({});
  return lane;
}

void NextListed::pass(Tube& lane, JobListing& list) {
  const Tube* const next = list.filter.group.empty() ? lane.head().lane_after(lane) : nullptr;
  list.done = next == nullptr;
  if (list.done) return;
  list.next.lane = next->record.number;
  list.move_to({});
}

void NextListed::pass(EngineState& state, const JobRecord& job, JobListing& list,
                      std::vector<ListedJob>& meant) {
  list.move_to(JobCursor::after(job));
  ++list.looked_at;
  const JobState is = state.jobs.state_of(job);
  if (list.filter.admits(job, is)) meant.push_back(listed(state, job, is));
}

std::vector<ListedJob> NextListed::of_lane(EngineState& state, const Tube& lane, JobListing& list,
                                           std::size_t limit) {
  std::vector<ListedJob> meant;
  const NextListed found =
      in(state, lane, list.filter, list.next, std::clamp(limit, kLeastRecords, kMostRecords));
  list.incomplete = list.incomplete || found.incomplete;
  for (const JobRecord& job : found.jobs) {
    if (meant.size() == limit) return meant;
    pass(state, job, list, meant);
  }
  if (found.next) list.move_to(*found.next);
  list.done = found.done;
  return meant;
}

std::vector<ListedJob> EngineReports::list_jobs(Now now, JobListing& list, std::size_t limit) {
  EngineState& s = state_;
  s.advance(now);
  if (list.done || limit == 0) return {};
  Tube* tube = s.tubes.find(list.tube);
  if (tube != nullptr && list.filter.group.empty() && tube->groups)
    return NextListed::of_lanes(s, *tube, list, limit);
  if (tube != nullptr && !list.filter.group.empty()) tube = s.tubes.find(*tube, list.filter.group);
  list.done = tube == nullptr;
  if (list.done) return {};
  return NextListed::of_lane(s, *tube, list, limit);
}

// Lists of a tube with groups are merged: the jobs of all lanes come by due time.
//
// The list has a heap of places, one for each lane: all jobs of the lane before the place are
// listed. A step reads the lane with the earliest place, and lists its jobs as long as they stand
// before the places of all others. A place may be too early, never too late. So only the places are
// kept between steps: each step reads the jobs that it lists.
//
// A step reads a few lanes, whatever their number. A page visits each lane that has jobs once,
// because the heap is gone with the page.
std::vector<ListedJob> NextListed::of_lanes(EngineState& state, Tube& head, JobListing& list,
                                            std::size_t limit) {
  std::vector<ListedJob> meant;
  if (!list.has_lanes) return make_places(head, list), meant;
  std::vector<JobCursor>& heap = list.lanes;
  std::uint32_t last_lane = UINT32_MAX;
  std::size_t at_once = kLeastAtOnce;
  std::size_t read = 0;
  for (std::size_t looks = 0; looks < kLooksAtOnce && read < kMostAtOnce; ++looks) {
    if (heap.empty() || meant.size() == limit) break;
    const std::uint32_t number = heap.front().lane;
    at_once = number == last_lane ? std::min(2 * at_once, kMostAtOnce - read) : kLeastAtOnce;
    last_lane = number;
    const Tube* const lane = number == 0 ? &head : state.tubes.find(number);
    NextListed found{.done = true};
    try {
      if (lane != nullptr && &lane->head() == &head)
        found = in(state, *lane, list.filter, heap.front(), at_once);
    } catch (const StoreError&) {
      if (meant.empty()) throw;
      break;  // list these; the next call meets the error, if it lasts
    }
    read += found.jobs.size();
    list_from(state, found, list, limit, meant);
  }
  list.done = heap.empty();
  return meant;
}

}  // namespace carillon::queue
