// Counting what is due when, in steps (due.h).
#include "server/api/due.h"

#include <algorithm>
#include <memory>

#include "carillon/queue/due_counts.h"
#include "carillon/queue/engine.h"
#include "server/api/operations.h"
#include "server/api/tubes.h"

namespace carillon::server {

namespace {

struct DueWidth {
  queue::Millis ms;
  std::uint32_t usual;  // spans
};
constexpr std::array<DueWidth, 3> kDueWidths = {{{60'000, 60}, {3'600'000, 24}, {86'400'000, 30}}};

void require_found(const std::optional<queue::TubeStats>& stats, const std::string& tube) {
  if (!stats) throw no_such_tube(tube);
}

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
  const auto stats = x.engine().tube_stats(x.now(), counts->tube);
  require_found(stats, counts->tube);
  answer(x, due_of(*counts, stats->jobs));
}

void get_due(RequestContext& x, const GetDue& asked) {
  require_found(x.engine().tube_stats(x.now(), asked.tube), asked.tube);
  const DueWidth& width = kDueWidths[static_cast<std::size_t>(asked.by)];
  const std::uint32_t spans = asked.spans.value_or(width.usual);
  x.hold(std::size_t{spans} * 256);
  const auto counts = std::make_shared<queue::DueCounts>();
  counts->tube = asked.tube;
  counts->bounds = queue::bounds_of(x.now().utc_ns / 1'000'000, width.ms, spans);
  count_spans(x, counts);
}

constexpr auto kDueRows = rows(
    "tubes", operation<get_due, Due>("GET /v1/tubes/{tube}/due", {Needs::kRead, Reach::kTube},
                                     "Counts the jobs that are due in each minute, hour or day.",
                                     {.problems = "404 503"}));

}  // namespace

std::span<const Operation> due_operations() {
  return kDueRows;
}

}  // namespace carillon::server
