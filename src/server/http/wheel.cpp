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
#include "server/beanstalk/command.h"
#include "server/http/problem.h"
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
// Of minutes so many are counted as may be, for the storms.
constexpr std::array<Dial, 4> kDials{{{"second", 1'000, 60, 60},
                                      {"minute", 60'000, 60, queue::kMostSpans},
                                      {"hour", 3'600'000, 24, 24},
                                      {"day", 86'400'000, 30, 30}}};
constexpr std::size_t kMinutes = 1;

// So many jobs are counted one by one for each dial: about 5 ms of work, in parts.
constexpr std::uint64_t kBudget = 4'096;

// A storm is a minute with a tenth of the delayed jobs, and at least so many.
constexpr std::uint64_t kLeastStorm = 20;
constexpr std::uint64_t kShareOfStorm = 10;

struct Wheel {
  std::array<DueCounts, kDials.size()> counts;
  std::size_t counting = 0;
};

// A dial has what the finer ones have not: of the spans up to its next full turn those behind the
// one that its hand is in. The finest one has that, too.
json::object dial_of(const Dial& dial, const DueCounts& counts, std::uint64_t& shown) {
  const std::uint64_t hand = counts.now / dial.width;
  std::vector<std::uint64_t> jobs(dial.slots);
  for (std::size_t span = dial.unit == "second" ? 0 : 1; span < dial.slots; ++span) {
    if ((hand + span) / dial.slots != hand / dial.slots) break;
    jobs[(hand + span) % dial.slots] = counts.jobs[span];
    shown += counts.jobs[span];
  }
  return {{"unit", dial.unit},
          {"slots", dial.slots},
          {"hand", hand % dial.slots},
          {"jobs", json::value_from(jobs)}};
}

json::object next_of(const Dial& dial, const DueCounts& counts) {
  const auto end = counts.jobs.begin() + static_cast<std::ptrdiff_t>(dial.slots);
  return {{"unit", dial.unit},
          {"jobs", json::value_from(std::vector<std::uint64_t>(counts.jobs.begin(), end))}};
}

json::array storms_of(const DueCounts& counts) {
  json::array storms;
  const std::uint64_t least = std::max(kLeastStorm, counts.delayed / kShareOfStorm);
  for (std::size_t span = 0; span < counts.jobs.size(); ++span) {
    if (counts.jobs[span] < least) continue;
    const queue::UtcMs from = (counts.now / counts.width + span) * counts.width;
    const auto share = static_cast<double>(counts.jobs[span]) / static_cast<double>(counts.delayed);
    storms.push_back({{"tube", counts.tube},
                      {"from", from},
                      {"to", from + counts.width},
                      {"jobs", counts.jobs[span]},
                      {"share", std::min(1.0, share)},
                      {"estimated", from + counts.width > counts.exact_until}});
  }
  return storms;
}

void answer(Exchange& x, const Wheel& wheel) {
  const DueCounts& minutes = wheel.counts[kMinutes];
  json::array dials;
  json::array next;
  std::uint64_t shown = 0;
  queue::UtcMs exact_until = UINT64_MAX;
  for (std::size_t i = 0; i < kDials.size(); ++i) {
    dials.push_back(dial_of(kDials[i], wheel.counts[i], shown));
    next.push_back(next_of(kDials[i], wheel.counts[i]));
    exact_until = std::min(exact_until, wheel.counts[i].exact_until);
  }
  const bool is_exact = exact_until == UINT64_MAX;
  const json::object told{
      {"now", minutes.now},
      {"tube", minutes.tube},
      {"delayed", minutes.delayed},
      {"dials", std::move(dials)},
      {"beyond", minutes.delayed - std::min(minutes.delayed, shown)},
      {"next", std::move(next)},
      {"storms", storms_of(minutes)},
      {"exact", is_exact},
      {"exact_until", is_exact ? json::value(nullptr) : json::value(exact_until)}};
  x.answer({.body = json::serialize(told)});
}

[[noreturn]] void throw_no_tube(const std::string& tube) {
  throw Problem(kNotFound, fmt::format("there is no tube \"{}\"", tube));
}

void go_on(Exchange& x, const std::shared_ptr<Wheel>& wheel) {
  DueCounts& counts = wheel->counts[wheel->counting];
  x.engine().count_due(x.now(), counts);
  if (counts.done && counts.jobs.empty()) throw_no_tube(counts.tube);  // it was forgotten
  if (counts.done && ++wheel->counting == kDials.size()) return answer(x, *wheel);
  x.later([wheel](Exchange& then) { go_on(then, wheel); });
}

}  // namespace

void answer_wheel(Exchange& x) {
  const std::string tube(x.request.asked("tube"));
  if (!beanstalk::is_tube_name(tube))
    throw wrong_query("tube", fmt::format("\"{}\": not the name of a tube", tube));
  x.require_tube(tube);
  if (!x.engine().tube_stats(x.now(), tube)) throw_no_tube(tube);
  const auto wheel = std::make_shared<Wheel>();
  for (std::size_t i = 0; i < kDials.size(); ++i) {
    wheel->counts[i] = {
        .tube = tube, .width = kDials[i].width, .spans = kDials[i].spans, .budget = kBudget};
  }
  x.hold(sizeof(std::uint64_t) * 2 * queue::kMostSpans);
  go_on(x, wheel);
}

}  // namespace carillon::server::http
