// Counts the jobs that will be due by minute, hour or day (due_counts.h).

#include "carillon/queue/due_counts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

constexpr std::size_t kJobsAtOnce = 64;
constexpr std::size_t kSpansAtOnce = 16;
constexpr std::size_t kKeysAtOnce = 512;

std::size_t spans_of(const DueCounts& counts) {
  return counts.bounds.size() - 1;
}

// Returns the span in which a job is due; spans_of() if it is due later.
std::size_t span_of(const DueCounts& counts, UtcMs due) {
  const auto& bounds = counts.bounds;
  const auto end = std::upper_bound(bounds.begin() + 1, bounds.end(), due);
  return static_cast<std::size_t>(end - bounds.begin()) - 1;
}

std::uint64_t& count_of(DueCounts& counts, UtcMs due) {
  const std::size_t span = span_of(counts, due);
  return span < spans_of(counts) ? counts.jobs[span] : counts.later;
}

// Returns the first span of which not all jobs were counted.
std::size_t first_estimated(const DueCounts& counts) {
  return span_of(counts, counts.exact_until);
}

// Divides the jobs that were not counted among the spans, by their weights.
void share_the_rest(DueCounts& counts) {
  const std::uint64_t rest = counts.delayed - std::min(counts.delayed, counts.counted);
  const double sum = std::accumulate(counts.weights.begin(), counts.weights.end(), 0.0);
  double weight = 0;
  std::uint64_t shared = 0;
  std::size_t span = first_estimated(counts);
  for (const double each : counts.weights) {
    weight += each;
    const bool is_last = span == spans_of(counts);
    const auto up_to = is_last || sum <= 0
                           ? rest
                           : static_cast<std::uint64_t>(std::llround(static_cast<double>(rest) *
                                                                     std::min(1.0, weight / sum)));
    (is_last ? counts.later : counts.jobs[span]) += up_to - shared;
    shared = up_to;
    ++span;
  }
}

void begin(const EngineState& s, const Tube& tube, DueCounts& counts) {
  counts.now = s.clock.utc();
  counts.delayed = tube.all_delayed();
  counts.jobs.assign(spans_of(counts), 0);
  counts.next = {counts.now + 1, 0};
}

void end(const Tube& tube, DueCounts& counts) {
  counts.done = true;
  if (counts.exact_until != UINT64_MAX) return share_the_rest(counts);
  if (counts.has_later) {
    counts.later += counts.delayed - std::min(counts.delayed, counts.counted);
    return;
  }
  // All jobs were counted. Any that are left have delays that go on, though the wall clock has
  // jumped over their ends.
  const std::uint64_t left = std::min(counts.delayed, tube.all_delayed());
  counts.jobs.front() += left - std::min(left, counts.counted);
}

// Begins with a lane of the tube (groups.h), or ends if `lane` is null.
void go_to(const Tube& tube, const Tube* lane, DueCounts& counts) {
  if (lane == nullptr) return end(tube, counts);
  counts.lane = lane->record.number;
  counts.next = {counts.now + 1, 0};
  counts.weighed = 0;
}

void pass(Tube& tube, const Tube& lane, DueCounts& counts) {
  go_to(tube, tube.lane_after(lane), counts);
}

void begin_estimates(const Tube& tube, DueCounts& counts) {
  counts.exact_until = counts.next.due;
  if (!tube.groups) return;
  counts.exact_until = counts.now + 1;
  std::fill(counts.jobs.begin(), counts.jobs.end(), 0);
  counts.counted = 0;
  counts.lane = 0;
  counts.next = {counts.now + 1, 0};
}

// Counts the next jobs one by one.
void count_next(EngineState& s, Tube& tube, const Tube& lane, DueCounts& counts) {
  const auto jobs = s.store.scan_due(lane.record.number, counts.next, kJobsAtOnce);
  for (const JobRecord& job : jobs) {
    counts.next = {job.due, job.id + 1};
    ++counts.looked_at;
    if (s.jobs.state_of(job) != JobState::kDelayed) continue;
    ++count_of(counts, job.due);
    ++counts.counted;
  }
  const bool is_later = counts.next.due >= counts.bounds.back();
  if (jobs.size() < kJobsAtOnce || is_later) {
    counts.has_later = counts.has_later || jobs.size() == kJobsAtOnce;
    pass(tube, lane, counts);
  } else if (counts.looked_at >= counts.budget &&
             dynamic_cast<const DueEstimates*>(&s.store) != nullptr) {
    begin_estimates(tube, counts);
  }
}

// Asks the store about the next spans.
void estimate_spans(const DueEstimates& store, const Tube& lane, DueCounts& counts) {
  const std::size_t first = first_estimated(counts) + counts.weighed;
  const std::size_t spans = spans_of(counts);
  std::vector<UtcMs> bounds;
  for (std::size_t span = first; span <= spans && bounds.size() < kSpansAtOnce; ++span)
    bounds.push_back(std::max(counts.bounds[span], counts.exact_until));
  const bool has_last = first + bounds.size() > spans;
  bounds.push_back(has_last ? UINT64_MAX : counts.bounds[first + bounds.size()]);
  for (const double weight : store.estimate_due(lane.record.number, bounds)) {
    counts.weights[counts.weighed++] += weight;
  }
}

// Returns where to go on behind erased jobs: a sixteenth of a span later.
UtcMs behind_erased(const DueCounts& counts) {
  const UtcMs due = counts.next.due;
  const std::size_t span = span_of(counts, due);
  if (span == spans_of(counts)) return UINT64_MAX;
  return due + std::max<Millis>(1, (counts.bounds[span + 1] - counts.bounds[span]) / 16);
}

// Counts the next jobs in memory, which the store's estimates leave out.
void count_next_in_memory(EngineState& s, const DueEstimates& store, Tube& tube, const Tube& lane,
                          DueCounts& counts) {
  using End = DueEstimates::InMemory::End;
  const auto found = store.scan_due_in_memory(lane.record.number, counts.next, kKeysAtOnce);
  for (const DueKey& key : found.jobs) {
    counts.next = {key.due, key.id + 1};
    const LoadedJob* const job = s.jobs.loaded(key.id);
    if (job != nullptr && job->state != JobState::kDelayed) continue;
    ++count_of(counts, key.due);
    ++counts.counted;
  }
  if (found.end == End::kNoMore) return pass(tube, lane, counts);
  // The few jobs among many erased ones are divided like those in files.
  if (found.end == End::kErased) counts.next = {behind_erased(counts), 0};
}

void estimate_next(EngineState& s, Tube& tube, const Tube& lane, DueCounts& counts) {
  const auto& store = dynamic_cast<const DueEstimates&>(s.store);
  counts.weights.resize(spans_of(counts) - first_estimated(counts) + 1);
  counts.weighed < counts.weights.size() ? estimate_spans(store, lane, counts)
                                         : count_next_in_memory(s, store, tube, lane, counts);
}

}  // namespace

void EngineReports::count_due(Now now, DueCounts& counts) {
  EngineState& s = state_;
  s.advance(now);
  const auto& bounds = counts.bounds;
  if (bounds.size() < 2 || bounds.size() > kMostSpans + 1 ||
      std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>()) != bounds.end())
    throw std::invalid_argument("queue engine: due counts have 1 to " + std::to_string(kMostSpans) +
                                " spans, and bounds that rise");
  Tube* const tube = s.tubes.find(counts.tube);
  if (tube == nullptr) counts.done = true;
  if (counts.done) return;
  if (counts.jobs.empty()) begin(s, *tube, counts);
  const Tube* const lane = tube->lane_from(counts.lane);
  if (lane == nullptr || (lane->is_lane() && lane->record.number != counts.lane))
    return go_to(*tube, lane, counts);  // the lane before is gone
  if (counts.exact_until == UINT64_MAX) return count_next(s, *tube, *lane, counts);
  estimate_next(s, *tube, *lane, counts);
}

}  // namespace carillon::queue
