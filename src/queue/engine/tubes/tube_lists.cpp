// Here lists of all tubes are read in steps.
//
// A list is read by position in the order of tubes, and its length is told first. Meanwhile tubes
// are made, which stand at the end; and tubes are forgotten: then the last one takes the position.
// So the engine notes each removal, and a list that goes on looks at those since its last step:
//  - A tube that was forgotten ahead of the list is listed now.
//  - A tube that has moved from ahead of the list to behind it is listed now.
// A note serves all lists, so a removal costs the same for any number of them.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

constexpr std::size_t kNamesAtOnce = 128;
constexpr std::size_t kTubesAtOnce = 1'024;  // those that are not in the list count too

}  // namespace

void EngineState::end_listing(Client& client) {
  if (!client.listing) return;
  client.listing.reset();
  removals.end_listing();
}

void EngineTubes::end_tube_list(ClientId id) {
  state_.end_listing(state_.client(id));
}

TubeListSize EngineTubes::list_tubes(ClientId id) {
  EngineState& s = state_;
  Client& client = s.client(id);
  s.end_listing(client);
  client.listing = {
      .made_before = s.tubes_made, .left = s.tube_order.size(), .removals_seen = s.removals.end()};
  s.removals.begin_listing();
  return {.tubes = s.tube_order.size(), .name_bytes = s.name_bytes};
}

std::optional<std::vector<std::string>> EngineTubes::next_tubes(ClientId id) {
  EngineState& s = state_;
  Client& client = s.client(id);
  TubeListing& list = client.listing.value();
  if (list.removals_seen < s.removals.first()) {
    s.end_listing(client);
    return std::nullopt;
  }
  std::vector<std::string> names;
  const std::uint64_t removed = s.removals.end();
  for (; list.removals_seen < removed && names.size() < kNamesAtOnce; ++list.removals_seen) {
    const TubeRemovals::Removal& removal = s.removals.numbered(list.removals_seen);
    const bool was_ahead = removal.gone.position >= list.next;
    const TubeRemovals::Removal::Of& lost = was_ahead ? removal.gone : removal.moved;
    if (lost.position >= list.next && lost.made < list.made_before) names.push_back(lost.name);
  }
  for (std::size_t looks = 0; looks < kTubesAtOnce && names.size() < kNamesAtOnce; ++looks) {
    if (list.next >= s.tube_order.size()) break;
    const Tube& tube = *s.tube_order[list.next++];
    if (tube.made < list.made_before) names.push_back(tube.record.name);
  }
  list.left -= names.size();
  if (list.left == 0) s.end_listing(client);
  return names;
}

}  // namespace carillon::queue
