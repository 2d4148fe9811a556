// Counts the reasons of a tube's buried jobs in steps (dead.h).
#include "server/api/dead.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/text.h"
#include "carillon/queue/engine.h"
#include "carillon/queue/job_bulk.h"
#include "carillon/queue/job_listing.h"
#include "server/api/operations.h"
#include "server/api/tubes.h"

namespace carillon::server {

namespace {

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
  if (!x.engine().tube_stats(x.now(), asked.tube)) throw no_such_tube(asked.tube);
  const auto all = std::make_shared<Reasons>();
  all->list.tube = asked.tube;
  all->list.filter.states = queue::bit_of(queue::JobState::kBuried);
  all->list.next = asked.page_token.value_or(queue::JobCursor());
  count_on(x, all);
}

constexpr auto kDeadRows =
    rows("tubes", operation<get_dead, Dead>(
                      "GET /v1/tubes/{tube}/dead", {Needs::kRead, Reach::kTube},
                      "Counts the buried and dead jobs by reason, up to 10 000 jobs at once.",
                      {.problems = "404"}));

}  // namespace

std::span<const Operation> dead_operations() {
  return kDeadRows;
}

}  // namespace carillon::server
