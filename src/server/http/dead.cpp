// The buried jobs of a tube, by the reason of their last failed attempt (routes.h).
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "carillon/queue/job_bulk.h"
#include "carillon/queue/job_listing.h"
#include "server/api/problem.h"
#include "server/http/job_fields.h"
#include "server/http/routes.h"
#include "server/text/timestamp.h"

namespace carillon::server::http {
namespace {

namespace json = boost::json;

using queue::UtcMs;

// An answer is about so many jobs, and tells so many reasons.
constexpr std::uint64_t kMostDeadLookedAt = 10'000;
constexpr std::size_t kMostReasons = 100;
// A step reads the stories of so many: of up to 11 KB each.
constexpr std::size_t kAtOnce = 16;
constexpr std::size_t kLongestError = 200;

struct Reason {
  std::uint64_t jobs = 0;
  std::uint64_t dead = 0;
  UtcMs oldest = UINT64_MAX;
  UtcMs newest = 0;
  queue::JobId example = 0;
  std::string error = {};  // of the example
};

struct Reasons {
  queue::JobListing list;
  std::map<std::string, Reason> reasons = {};
  std::uint64_t others = 0;  // jobs with further reasons
};

void add(RequestContext& x, Reasons& all, const queue::ListedJob& job) {
  std::optional<std::vector<queue::Attempt>> story(std::in_place);
  if (job.record.extras->has_story) story = x.engine().story(x.now(), job.record.id);
  if (!story) return;  // it has just gone
  const std::string name = queue::reason_of(job.record, *story);
  if (!all.reasons.contains(name)) {
    if (all.reasons.size() == kMostReasons) return static_cast<void>(++all.others);
    x.hold(sizeof(Reason) + 2 * kLongestError);
  }
  Reason& reason = all.reasons[name];
  const UtcMs at = story->empty() ? job.record.created : story->back().at;
  if (reason.jobs++ == 0) {
    reason.example = job.record.id;
    if (!story->empty()) reason.error = base::beginning(story->back().error, kLongestError);
  }
  if (job.record.extras->death != queue::Death::kNone) ++reason.dead;
  reason.oldest = std::min(reason.oldest, at);
  reason.newest = std::max(reason.newest, at);
}

json::object json_of(const std::string& tube, const std::string& name, const Reason& reason) {
  json::object filter{{"tube", tube}, {"state", "buried"}};
  set_text(filter, "reason", name);
  json::object told{{"jobs", reason.jobs},
                    {"dead", reason.dead},
                    {"oldest", format_timestamp(reason.oldest)},
                    {"newest", format_timestamp(reason.newest)},
                    {"example_id", reason.example},
                    {"filter", std::move(filter)}};
  set_text(told, "reason", name);
  set_text(told, "error", reason.error);
  return told;
}

// Those with the most jobs come first.
void answer(RequestContext& x, const Reasons& all) {
  std::vector<const std::pair<const std::string, Reason>*> sorted;
  for (const auto& reason : all.reasons) sorted.push_back(&reason);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->second.jobs > b->second.jobs; });
  json::array reasons;
  for (const auto* const reason : sorted)
    reasons.push_back(json_of(all.list.tube, reason->first, reason->second));
  const json::value next =
      all.list.done ? json::value(nullptr) : json::value(to_text(all.list.next));
  json::object told{{"reasons", std::move(reasons)},
                    {"other_jobs", all.others},
                    {"looked_at", all.list.looked_at},
                    {"next_page_token", next}};
  if (all.list.incomplete) told["incomplete"] = true;
  x.answer({.body = json::serialize(told), .durable_at = x.engine().last_sequence()});
}

void go_on(RequestContext& x, const std::shared_ptr<Reasons>& all) {
  const std::size_t held = all->list.memory();
  for (const auto& job : x.engine().list_jobs(x.now(), all->list, kAtOnce)) add(x, *all, job);
  x.hold(all->list.memory() - held);
  if (all->list.done || all->list.looked_at >= kMostDeadLookedAt) return answer(x, *all);
  x.later([all](RequestContext& then) { go_on(then, all); });
}

}  // namespace

void answer_dead(RequestContext& x) {
  const auto all = std::make_shared<Reasons>();
  all->list.tube = x.tube();
  all->list.filter.states = queue::bit_of(queue::JobState::kBuried);
  if (const std::string_view token = x.request.asked("page_token"); !token.empty()) {
    const auto next = queue::to_cursor(token);
    if (!next || next->lane != 0)
      throw wrong_query("page_token",
                        fmt::format("\"{}\": not what an answer calls next_page_token", token));
    all->list.next = *next;
  }
  if (!x.engine().tube_stats(x.now(), all->list.tube))
    throw Problem(kNotFound, fmt::format("there is no tube \"{}\"", all->list.tube));
  go_on(x, all);
}

}  // namespace carillon::server::http
