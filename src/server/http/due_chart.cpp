// What is due when: as the dials of a clock, as the next minute, hour, day and month, and the
// storms that are coming (routes.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/due_counts.h"
#include "server/api/names.h"
#include "server/api/problem.h"
#include "server/http/routes.h"

namespace carillon::server::http {
namespace {

namespace json = boost::json;

using queue::DueCounts;

struct Dial {
  std::string_view unit;
  queue::Millis width;
  std::size_t slots;
  std::size_t spans;  // how many are counted
};
// So many minutes are counted for the storms: those of the next 16 hours.
constexpr Dial kMinutes{"minute", 60'000, 60, 1'000};
constexpr std::array<Dial, 4> kDials{{{"second", 1'000, 60, 60},
                                      kMinutes,
                                      {"hour", 3'600'000, 24, 24},
                                      {"day", 86'400'000, 30, 30}}};

// So many jobs are counted one by one: about 20 ms of work, in parts.
constexpr std::uint64_t kBudget = 16'384;

// A storm is a minute with a tenth of the delayed jobs, and at least so many.
constexpr std::uint64_t kLeastStorm = 20;
constexpr std::uint64_t kShareOfStorm = 10;

// The spans of all dials together: each span of a dial is one or several of these.
std::vector<queue::UtcMs> all_bounds(queue::UtcMs now) {
  std::vector<queue::UtcMs> all;
  for (const Dial& dial : kDials) {
    const auto bounds = queue::bounds_of(now, dial.width, dial.spans);
    all.insert(all.end(), bounds.begin(), bounds.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// The jobs of each span of a dial.
std::vector<std::uint64_t> jobs_of(const Dial& dial, const DueCounts& counts) {
  const auto bounds = queue::bounds_of(counts.bounds.front(), dial.width, dial.spans);
  std::vector<std::uint64_t> jobs(dial.spans);
  std::size_t counted = 0;
  for (std::size_t span = 0; span < dial.spans; ++span) {
    while (counted < counts.jobs.size() && counts.bounds[counted] < bounds[span + 1])
      jobs[span] += counts.jobs[counted++];
  }
  return jobs;
}

// A dial has what the finer ones have not: of the spans up to its next full turn those behind the
// one that its hand is in. The finest one has that, too.
json::object dial_of(const Dial& dial, const DueCounts& counts, std::uint64_t& shown) {
  const std::uint64_t hand = counts.bounds.front() / dial.width;
  const std::vector<std::uint64_t> counted = jobs_of(dial, counts);
  std::vector<std::uint64_t> jobs(dial.slots);
  for (std::size_t span = dial.unit == "second" ? 0 : 1; span < dial.slots; ++span) {
    if ((hand + span) / dial.slots != hand / dial.slots) break;
    jobs[(hand + span) % dial.slots] = counted[span];
    shown += counted[span];
  }
  return {{"unit", dial.unit},
          {"slots", dial.slots},
          {"hand", hand % dial.slots},
          {"jobs", json::value_from(jobs)}};
}

json::object next_of(const Dial& dial, const DueCounts& counts) {
  std::vector<std::uint64_t> jobs = jobs_of(dial, counts);
  jobs.resize(dial.slots);
  return {{"unit", dial.unit}, {"jobs", json::value_from(jobs)}};
}

json::array storms_of(const DueCounts& counts) {
  json::array storms;
  const std::uint64_t least = std::max(kLeastStorm, counts.delayed / kShareOfStorm);
  const std::vector<std::uint64_t> jobs = jobs_of(kMinutes, counts);
  for (std::size_t span = 0; span < jobs.size(); ++span) {
    if (jobs[span] < least) continue;
    const queue::UtcMs from = (counts.bounds.front() / kMinutes.width + span) * kMinutes.width;
    const queue::UtcMs to = from + kMinutes.width;
    const auto share = static_cast<double>(jobs[span]) / static_cast<double>(counts.delayed);
    storms.push_back({{"tube", counts.tube},
                      {"from", from},
                      {"to", to},
                      {"jobs", jobs[span]},
                      {"share", std::min(1.0, share)},
                      {"estimated", to > counts.exact_until}});
  }
  return storms;
}

void answer(RequestContext& x, const DueCounts& counts) {
  json::array dials;
  json::array next;
  std::uint64_t shown = 0;
  for (const Dial& dial : kDials) {
    dials.push_back(dial_of(dial, counts, shown));
    next.push_back(next_of(dial, counts));
  }
  const bool is_exact = counts.exact_until == UINT64_MAX;
  const json::object told{
      {"now", counts.bounds.front()},
      {"tube", counts.tube},
      {"delayed", counts.delayed},
      {"dials", std::move(dials)},
      {"beyond", counts.delayed - std::min(counts.delayed, shown)},
      {"next", std::move(next)},
      {"storms", storms_of(counts)},
      {"exact", is_exact},
      {"exact_until", is_exact ? json::value(nullptr) : json::value(counts.exact_until)}};
  x.answer({.body = json::serialize(told)});
}

[[noreturn]] void throw_no_tube(const std::string& tube) {
  throw Problem(kNotFound, fmt::format("there is no tube \"{}\"", tube));
}

void go_on(RequestContext& x, const std::shared_ptr<DueCounts>& counts) {
  x.engine().count_due(x.now(), *counts);
  if (counts->done && counts->jobs.empty()) throw_no_tube(counts->tube);  // it was forgotten
  if (counts->done) return answer(x, *counts);
  x.later([counts](RequestContext& then) { go_on(then, counts); });
}

}  // namespace

void answer_wheel(RequestContext& x) {
  const std::string tube(x.request.asked("tube"));
  if (!is_tube_name(tube))
    throw wrong_query("tube", fmt::format("\"{}\": not the name of a tube", tube));
  x.require_tube(tube);
  if (!x.engine().tube_stats(x.now(), tube)) throw_no_tube(tube);
  const auto counts = std::make_shared<DueCounts>();
  counts->tube = tube;
  counts->bounds = all_bounds(x.now().utc_ns / 1'000'000);
  counts->budget = kBudget;
  x.hold(sizeof(std::uint64_t) * 3 * counts->bounds.size());
  go_on(x, counts);
}

}  // namespace carillon::server::http
