// Which tubes there are, and what the replies to commands that choose or pause them may say
// (model.h).

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/model.h"

namespace carillon::simulator {

namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
// As in the engine.
constexpr std::size_t kWatchesOfATube = 12;

}  // namespace

std::size_t Model::tubes_and_watches() const {
  std::set<std::string_view> names{"default"};
  std::size_t watches = 0;
  for (const auto& [name, jobs] : tubes_) names.insert(name);
  for (const auto& [number, tube] : history_.state().tubes) names.insert(tube.name);
  for (const std::string_view tube : schedules_.tubes()) names.insert(tube);
  for (const auto& [number, client] : clients_) {
    names.insert(client.tube_in_use);
    names.insert(client.watched.begin(), client.watched.end());
    watches += client.watched.size();
  }
  return names.size() + watches / kWatchesOfATube;
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

}  // namespace carillon::simulator
