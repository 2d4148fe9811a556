// Counts due jobs in steps and answers with dials, spans and storms (due_chart.h).
#include "server/api/due_chart.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "carillon/queue/due_counts.h"
#include "carillon/queue/engine.h"
#include "server/api/operations.h"
#include "server/api/tubes.h"

namespace carillon::server {
namespace {

using queue::DueCounts;

struct DialSize {
  DialUnit unit;
  queue::Millis width;
  std::size_t slots;
  std::size_t spans;  // spans that are counted
};
// Storms are found in the minutes of the next 16 hours.
constexpr DialSize kMinutes{DialUnit::kMinute, 60'000, 60, 1'000};
constexpr std::array<DialSize, 4> kDials{{{DialUnit::kSecond, 1'000, 60, 60},
                                          kMinutes,
                                          {DialUnit::kHour, 3'600'000, 24, 24},
                                          {DialUnit::kDay, 86'400'000, 30, 30}}};

// The most jobs that are counted one by one: about 20 ms of work, in steps.
constexpr std::uint64_t kBudget = 16'384;

// A storm is a minute with a tenth of the delayed jobs, and at least kLeastStorm of them.
constexpr std::uint64_t kLeastStorm = 20;
constexpr std::uint64_t kShareOfStorm = 10;

// The bounds of the spans of all dials: a span of a dial is one or several of these.
std::vector<queue::UtcMs> all_bounds(queue::UtcMs now) {
  std::vector<queue::UtcMs> all;
  for (const DialSize& dial : kDials) {
    const auto bounds = queue::bounds_of(now, dial.width, dial.spans);
    all.insert(all.end(), bounds.begin(), bounds.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Counts the jobs in each span of a dial.
std::vector<std::uint64_t> jobs_of(const DialSize& dial, const DueCounts& counts) {
  const auto bounds = queue::bounds_of(counts.bounds.front(), dial.width, dial.spans);
  std::vector<std::uint64_t> jobs(dial.spans);
  std::size_t counted = 0;
  for (std::size_t span = 0; span < dial.spans; ++span) {
    while (counted < counts.jobs.size() && counts.bounds[counted] < bounds[span + 1])
      jobs[span] += counts.jobs[counted++];
  }
  return jobs;
}

// A dial shows only jobs that no finer dial shows: it begins behind the span in which its hand is,
// and ends with its next full turn. The finest dial shows the span of its hand, too.
Dial dial_of(const DialSize& dial, const DueCounts& counts, std::uint64_t& shown) {
  const std::uint64_t hand = counts.bounds.front() / dial.width;
  const std::vector<std::uint64_t> counted = jobs_of(dial, counts);
  std::vector<std::uint64_t> jobs(dial.slots);
  for (std::size_t span = dial.unit == DialUnit::kSecond ? 0 : 1; span < dial.slots; ++span) {
    if ((hand + span) / dial.slots != hand / dial.slots) break;
    jobs[(hand + span) % dial.slots] = counted[span];
    shown += counted[span];
  }
  return {
      .unit = dial.unit, .slots = dial.slots, .hand = hand % dial.slots, .jobs = std::move(jobs)};
}

NextJobs next_of(const DialSize& dial, const DueCounts& counts) {
  std::vector<std::uint64_t> jobs = jobs_of(dial, counts);
  jobs.resize(dial.slots);
  return {.unit = dial.unit, .jobs = std::move(jobs)};
}

std::vector<Storm> storms_of(const DueCounts& counts) {
  std::vector<Storm> storms;
  const std::uint64_t least = std::max(kLeastStorm, counts.delayed / kShareOfStorm);
  const std::vector<std::uint64_t> jobs = jobs_of(kMinutes, counts);
  for (std::size_t span = 0; span < jobs.size(); ++span) {
    if (jobs[span] < least) continue;
    const queue::UtcMs from = (counts.bounds.front() / kMinutes.width + span) * kMinutes.width;
    const queue::UtcMs to = from + kMinutes.width;
    const auto share = static_cast<double>(jobs[span]) / static_cast<double>(counts.delayed);
    storms.push_back({.tube = counts.tube,
                      .from = from,
                      .to = to,
                      .jobs = jobs[span],
                      .share = std::min(1.0, share),
                      .estimated = to > counts.exact_until});
  }
  return storms;
}

Wheel wheel_of(const DueCounts& counts) {
  Wheel told{.now = counts.bounds.front(), .tube = counts.tube, .delayed = counts.delayed};
  std::uint64_t shown = 0;
  for (const DialSize& dial : kDials) {
    told.dials.push_back(dial_of(dial, counts, shown));
    told.next.push_back(next_of(dial, counts));
  }
  told.beyond = counts.delayed - std::min(counts.delayed, shown);
  told.storms = storms_of(counts);
  told.exact = counts.exact_until == UINT64_MAX;
  if (!told.exact) told.exact_until = counts.exact_until;
  return told;
}

void count_on(RequestContext& x, const std::shared_ptr<DueCounts>& counts) {
  x.engine().count_due(x.now(), *counts);
  if (counts->done && counts->jobs.empty())
    throw no_such_tube(counts->tube);  // the tube was forgotten
  if (counts->done) return answer_at_once(x, write(wheel_of(*counts)));
  x.later([counts](RequestContext& then) { count_on(then, counts); });
}

void get_wheel(RequestContext& x, const GetWheel& asked) {
  x.require_tube(asked.tube);
  if (!x.engine().tube_stats(x.now(), asked.tube)) throw no_such_tube(asked.tube);
  const auto counts = std::make_shared<DueCounts>();
  counts->tube = asked.tube;
  counts->bounds = all_bounds(x.now().utc_ns / 1'000'000);
  counts->budget = kBudget;
  x.hold(sizeof(std::uint64_t) * 3 * counts->bounds.size());
  count_on(x, counts);
}

constexpr auto kWheelRows =
    rows("tubes", operation<get_wheel, Wheel>(
                      "GET /v1/wheel", {Needs::kRead, Reach::kChecked},
                      "How many delayed jobs of a tube are due when, as the dials of a clock.",
                      {.problems = "404"}));

}  // namespace

std::span<const Operation> wheel_operations() {
  return kWheelRows;
}

}  // namespace carillon::server
