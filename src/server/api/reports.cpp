// Counts of a tube's jobs by time and by reason, in steps (reports.h).
#include "server/api/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "carillon/queue/due_counts.h"
#include "carillon/queue/engine.h"
#include "carillon/queue/job_bulk.h"
#include "carillon/queue/job_listing.h"
#include "server/api/operations.h"
#include "server/api/tubes.h"

namespace carillon::server {

namespace {

// The units of time: the dials of the wheel, and what jobs are counted by.
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

Due due_of(const queue::DueCounts& counts, const queue::JobCounts& jobs) {
  Due due{.now = {counts.now},
          .due = jobs.ready + jobs.reserved,
          .delayed = counts.delayed,
          .buried = jobs.buried,
          .spans = {},
          .later = counts.later,
          .later_estimated = counts.exact_until != UINT64_MAX};
  for (std::size_t span = 0; span < counts.jobs.size(); ++span) {
    if (counts.jobs[span] == 0) continue;
    const queue::UtcMs end = counts.bounds[span + 1];
    due.spans.push_back({.from = {std::min(counts.bounds[span], queue::kLastDue)},
                         .before = {std::min(end, queue::kLastDue)},
                         .jobs = counts.jobs[span],
                         .estimated = end > counts.exact_until});
  }
  return due;
}

void count_spans(RequestContext& x, const std::shared_ptr<queue::DueCounts>& counts) {
  x.engine().count_due(x.now(), *counts);
  if (!counts->done) return x.later([counts](RequestContext& then) { count_spans(then, counts); });
  answer(x, due_of(*counts, found_tube(x, counts->tube).jobs));
}

void get_due(RequestContext& x, const GetDue& asked) {
  found_tube(x, asked.tube);
  static_assert(kDials[1].unit == DialUnit::kMinute, "DueUnit lacks seconds");
  const DialSize& unit = kDials[static_cast<std::size_t>(asked.by) + 1];
  const std::size_t spans = asked.spans.value_or(unit.slots);
  x.hold(spans * 256);
  const auto counts = std::make_shared<queue::DueCounts>();
  counts->tube = asked.tube;
  counts->bounds = queue::bounds_of(x.now().utc_ns / 1'000'000, unit.width, spans);
  count_spans(x, counts);
}

// --- Counts due jobs in steps and answers with dials, spans and storms.

using queue::DueCounts;

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
                      .from = {from},
                      .before = {to},
                      .jobs = jobs[span],
                      .share = std::min(1.0, share),
                      .estimated = to > counts.exact_until});
  }
  return storms;
}

Wheel wheel_of(const DueCounts& counts) {
  Wheel told{.now = {counts.bounds.front()}, .tube = counts.tube, .delayed = counts.delayed};
  std::uint64_t shown = 0;
  for (const DialSize& dial : kDials) {
    told.dials.push_back(dial_of(dial, counts, shown));
    told.next.push_back(next_of(dial, counts));
  }
  told.beyond = counts.delayed - std::min(counts.delayed, shown);
  told.storms = storms_of(counts);
  told.exact = counts.exact_until == UINT64_MAX;
  if (!told.exact) told.exact_until = Moment{counts.exact_until};
  return told;
}

void count_on(RequestContext& x, const std::shared_ptr<DueCounts>& counts) {
  x.engine().count_due(x.now(), *counts);
  if (counts->done && counts->jobs.empty())
    throw no_such_tube(counts->tube);  // the tube was forgotten
  if (counts->done) return x.answer({.body = text_of(wheel_of(*counts))});
  x.later([counts](RequestContext& then) { count_on(then, counts); });
}

void get_wheel(RequestContext& x, const GetWheel& asked) {
  x.require_tube(asked.tube);
  found_tube(x, asked.tube);
  const auto counts = std::make_shared<DueCounts>();
  counts->tube = asked.tube;
  counts->bounds = all_bounds(x.now().utc_ns / 1'000'000);
  counts->budget = kBudget;
  x.hold(sizeof(std::uint64_t) * 3 * counts->bounds.size());
  count_on(x, counts);
}

// --- Counts the reasons of a tube's buried jobs in steps.

// An answer covers at most this many jobs, and names at most this many reasons.
constexpr std::uint64_t kMostDeadLookedAt = 10'000;
constexpr std::size_t kMostReasons = 100;
// A step reads the stories of this many jobs, of up to 11 KB each.
constexpr std::size_t kStoriesAtOnce = 16;
constexpr std::size_t kLongestError = 200;

struct Reasons {
  queue::JobListing list;
  std::map<std::string, DeadReason> reasons = {};
  std::uint64_t others = 0;  // jobs whose reasons have no place in the answer
};

DeadReason first_of(const std::string& tube, const std::string& name, queue::JobId id,
                    const std::vector<queue::Attempt>& story) {
  DeadReason reason{.reason = {name}, .error = {}, .newest = {}, .example_id = id, .filter = {}};
  if (!story.empty()) reason.error.bytes = base::beginning(story.back().error, kLongestError);
  reason.filter.tube = tube;
  reason.filter.state = States{queue::bit_of(queue::JobState::kBuried)};
  reason.filter.reason = Bytes{name};
  return reason;
}

void add(RequestContext& x, Reasons& all, const queue::ListedJob& job) {
  std::optional<std::vector<queue::Attempt>> story(std::in_place);
  if (job.record.extras->has_story) story = x.engine().story(x.now(), job.record.id);
  if (!story) return;  // the job was deleted meanwhile
  const std::string name = queue::reason_of(job.record, *story);
  auto found = all.reasons.find(name);
  if (found == all.reasons.end()) {
    if (all.reasons.size() == kMostReasons) return static_cast<void>(++all.others);
    x.hold(sizeof(DeadReason) + 2 * kLongestError);
    found = all.reasons.emplace(name, first_of(all.list.tube, name, job.record.id, *story)).first;
  }
  DeadReason& reason = found->second;
  const queue::UtcMs at = story->empty() ? job.record.created : story->back().at;
  ++reason.jobs;
  if (job.record.extras->death != queue::Death::kNone) ++reason.dead;
  reason.oldest.at = std::min(reason.oldest.at, at);
  reason.newest.at = std::max(reason.newest.at, at);
}

void answer_reasons(RequestContext& x, Reasons& all) {
  Dead dead{.reasons = {},
            .other_jobs = all.others,
            .looked_at = all.list.looked_at,
            .incomplete = {},
            .next_page_token = {}};
  for (auto& reason : all.reasons) dead.reasons.push_back(std::move(reason.second));
  std::stable_sort(dead.reasons.begin(), dead.reasons.end(),
                   [](const DeadReason& a, const DeadReason& b) { return a.jobs > b.jobs; });
  if (all.list.incomplete) dead.incomplete = true;
  if (!all.list.done) dead.next_page_token = all.list.next;
  answer(x, dead);
}

void count_on(RequestContext& x, const std::shared_ptr<Reasons>& all) {
  const std::size_t held = all->list.memory();
  for (const auto& job : x.engine().list_jobs(x.now(), all->list, kStoriesAtOnce))
    add(x, *all, job);
  x.hold(all->list.memory() - held);
  if (all->list.done || all->list.looked_at >= kMostDeadLookedAt) return answer_reasons(x, *all);
  x.later([all](RequestContext& then) { count_on(then, all); });
}

void get_dead(RequestContext& x, const ListDead& asked, Reader& reader) {
  if (asked.page_token && asked.page_token->lane != 0)
    reader.fault("page_token", fmt::format("\"{}\": not what an answer calls next_page_token",
                                           to_text(*asked.page_token)));
  reader.throw_if_any();
  found_tube(x, asked.tube);
  const auto all = std::make_shared<Reasons>();
  all->list.tube = asked.tube;
  all->list.filter.states = queue::bit_of(queue::JobState::kBuried);
  all->list.next = asked.page_token.value_or(queue::JobCursor());
  count_on(x, all);
}

// --- The rows.

constexpr auto kReportRows =
    rows("tubes",
         operation<get_due, Due>("GET /v1/tubes/{tube}/due", {Needs::kRead, Reach::kTube},
                                 "Counts the jobs that are due in each minute, hour or day.",
                                 {.problems = "404 503"}),
         operation<get_wheel, Wheel>(
             "GET /v1/wheel", {Needs::kRead, Reach::kChecked},
             "How many delayed jobs of a tube are due when, as the dials of a clock.",
             {.problems = "404"}),
         operation<get_dead, Dead>(
             "GET /v1/tubes/{tube}/dead", {Needs::kRead, Reach::kTube},
             "Counts the buried and dead jobs by reason, up to 10 000 jobs at once.",
             {.problems = "404"}));

}  // namespace

std::span<const Operation> report_operations() {
  return kReportRows;
}

}  // namespace carillon::server
