// Which tubes there are, what the replies to commands that choose or pause them may say, and
// whether jobs of a tube must go out (model.h).

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

namespace {

// As in the engine.
constexpr std::size_t kWatchesOfATube = 12;

}  // namespace

std::size_t Model::tubes_and_watches() const {
  std::set<std::string_view> names{"default"};
  std::size_t watches = 0;
  for (const auto& [name, jobs] : tubes_) names.insert(name);
  std::size_t lanes = 0;
  for (const auto& [number, tube] : history_.state().tubes) {
    tube.head == 0 ? void(names.insert(tube.name)) : void(++lanes);
  }
  for (const std::string_view tube : schedules_.tubes()) names.insert(tube);
  for (const auto& [tube, group] : schedules_.groups()) {
    if (history_.find_tube(tube, group) == nullptr) ++lanes;
  }
  for (const auto& [number, client] : clients_) {
    names.insert(client.tube_in_use);
    names.insert(client.watched.begin(), client.watched.end());
    watches += client.watched.size();
  }
  return names.size() + lanes + watches / kWatchesOfATube;
}

// Whether the tube of a schedule, and its group there, are there or may be made.
bool Model::has_room_for_lane(const queue::Schedule& of) const {
  const std::size_t made =
      (exists(of.tube) ? 0U : 1U) + (group_exists(of.tube, of.group) ? 0U : 1U);
  return made == 0 || tubes_and_watches() + made <= limits_.tubes;
}

void Model::judge_tubes(const Case& c) {
  expect_changed({});
  const std::string& tube = c.command.tube;
  std::vector<std::string>& watched = c.client.watched;
  const auto at = std::find(watched.begin(), watched.end(), tube);
  std::string wanted;
  const bool makes = c.command.verb == Verb::kUse || c.command.verb == Verb::kWatch;
  if (makes && !exists(tube) && tubes_and_watches() >= limits_.tubes)
    fail(c, "there are too many tubes");
  if (c.command.verb == Verb::kUse) {
    c.client.tube_in_use = tube;
    wanted = "USING " + tube;
  } else if (c.command.verb == Verb::kPause) {
    wanted = exists(tube) ? "PAUSED" : "NOT_FOUND";
    paused_until_.erase(tube);
    if (exists(tube) && c.command.delay > 0)
      paused_until_[tube] = c.since.mono_ns + c.command.delay * kNsPerMs;
  } else if (c.command.verb == Verb::kIgnore && watched.size() == 1 && at != watched.end()) {
    wanted = "NOT_IGNORED";
  } else {
    if (c.command.verb == Verb::kWatch && at == watched.end()) watched.push_back(tube);
    if (c.command.verb == Verb::kIgnore && at != watched.end()) watched.erase(at);
    wanted = "WATCHING " + std::to_string(watched.size());
  }
  if (c.reply.line != wanted) fail(c, "it must be " + wanted);
}

std::pair<std::size_t, std::size_t> Model::running(const std::string& tube, queue::Now now) const {
  return running(tube, {}, now);
}

std::pair<std::size_t, std::size_t> Model::running(const std::string& tube,
                                                   const std::string& group, queue::Now now) const {
  std::pair<std::size_t, std::size_t> jobs;
  if (tube_limits_.of(LimitsModel::lane(tube, group)).max_running == 0) return jobs;
  for (const queue::JobId id : jobs_in(tube)) {
    const Job& job = jobs_.at(id);
    if (!group.empty() && job.group != group) continue;
    const Is is_held = held(job, now);
    jobs.first += is_held == Is::kYes && !job.by_id ? 1U : 0U;
    const bool ended_now = job.freed_at > times_.first.mono_ns;  // perhaps behind what is judged
    jobs.second += is_held != Is::kNo || ended_now ? 1U : 0U;
  }
  return jobs;
}

bool Model::is_open(const std::string& tube, queue::Now now) const {
  if (paused(tube, now) != Is::kNo) return false;
  if (tube_limits_.of(tube) == queue::Limits()) return true;
  // What a reserve-jobs that is not answered yet has taken is not known.
  return !may_be_gathered(tube) &&
         tube_limits_.lets_start(tube, running(tube, now).second, now, kSlack);
}

}  // namespace carillon::simulator
