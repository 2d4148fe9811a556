// What the groups of tubes have got (turns_model.h).

#include "simulator/turns_model.h"

namespace carillon::simulator {

std::optional<TurnsModel::Witness> TurnsModel::witness(const std::string& tube,
                                                       const std::string& group) const {
  const auto entry = tubes_.find(tube);
  if (entry == tubes_.end()) return std::nullopt;
  const auto found = entry->second.groups.find(group);
  return found == entry->second.groups.end() ? std::nullopt : std::optional(found->second.witness);
}

std::string TurnsModel::follow(const std::string& tube, const Groups& groups) {
  Entry& entry = tubes_[tube];
  entry.groups = groups;
  GroupShares::Line line;
  for (const auto& [group, is] : groups) line[group] = is.turn;
  return entry.shares.follow(line);
}

void TurnsModel::job_has_changed(const std::string& tube, const std::string& group,
                                 queue::Priority priority) {
  const auto entry = tubes_.find(tube);
  if (entry == tubes_.end()) return;
  const auto found = entry->second.groups.find(group);
  if (found != entry->second.groups.end() && priority < found->second.turn.priority)
    forget(tube, group);
}

void TurnsModel::forget(const std::string& tube, const std::string& group) {
  const auto entry = tubes_.find(tube);
  if (entry == tubes_.end()) return;
  entry->second.groups.erase(group);
  entry->second.shares.forget(group);
}

}  // namespace carillon::simulator
