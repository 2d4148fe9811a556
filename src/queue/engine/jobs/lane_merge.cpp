// Here lists of a tube with groups are merged: the jobs of all lanes come by due time.
//
// The list has a heap of places, one for each lane: no job of the lane that is still to be listed
// stands before it. The lane with the earliest place is looked at, and its jobs are listed as long
// as they stand before the places of all others. A place may be too early, never too late, so
// nothing is kept of a lane but its place: what is listed was read in the same step.
//
// A step looks at a few lanes, whatever their number. A page looks once at each lane that has jobs,
// because the heap is gone with the page.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "queue/engine/jobs/job_lists.h"

namespace carillon::queue {

namespace {

// In one step: places that are made, looks into lanes, and the jobs that one look reads. A look
// into the lane of the look before reads twice as many.
constexpr std::size_t kPlacesAtOnce = 1'024;
constexpr std::size_t kLooksAtOnce = 32;
constexpr std::size_t kLeastAtOnce = 2;
constexpr std::size_t kMostAtOnce = 64;

bool is_later(const JobCursor& one, const JobCursor& other) {
  return other.is_before(one);
}

// All places are the same then, so they are a heap.
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

// Lists what was found in the lane with the earliest place, and moves the lane on.
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
      break;  // these are listed; the next call meets the error, if it lasts
    }
    read += found.jobs.size();
    list_from(state, found, list, limit, meant);
  }
  list.done = heap.empty();
  return meant;
}

}  // namespace carillon::queue
