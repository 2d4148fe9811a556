// Here tubes are found, made, used, watched, and forgotten when nothing refers to them any more.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// About the memory of one tube.
constexpr std::size_t kWatchesOfATube = 12;

}  // namespace

void EngineState::refuse_more_tubes() const {
  if (tube_order.size() + lanes.size() + watches / kWatchesOfATube >= options.max_tubes)
    throw OverLimit("there are as many tubes and watches of tubes as there may be");
}

Tube& EngineState::tube_named(std::string_view name) {
  if (Tube* tube = tubes.find(name)) return *tube;
  if (default_tube != nullptr) refuse_more_tubes();
  return made_tube(name);
}

Tube& EngineState::made_tube(std::string_view name) {
  if (Tube* tube = tubes.find(name)) return *tube;
  TubeRecord record;
  record.number = free_number();
  record.name = name;
  Tube& tube = add_tube(std::move(record));
  ++next_tube;
  return tube;
}

// Groups come and go with their jobs, so all numbers may have been given once. 0 is of no tube, and
// the last number has none after it (Tube::lane_after).
std::uint32_t EngineState::free_number() {
  while (next_tube == 0 || next_tube == UINT32_MAX || tubes.find(next_tube) != nullptr) ++next_tube;
  return next_tube;
}

Tube& EngineState::lane_named(Tube& tube, std::string_view group) {
  if (group.empty()) return tube;
  if (Tube* lane = tubes.find(tube, group)) return *lane;
  refuse_more_tubes();
  return made_lane(tube, group);
}

Tube& EngineState::made_lane(Tube& tube, std::string_view group) {
  if (group.empty()) return tube;
  if (Tube* lane = tubes.find(tube, group)) return *lane;
  TubeRecord record;
  record.number = free_number();
  record.name = group;
  record.head = tube.record.number;
  Tube& lane = add_tube(std::move(record));
  ++next_tube;
  return lane;
}

void EngineState::forget_lane(const Tube& tube, std::string_view group) {
  if (group.empty()) return;
  if (Tube* lane = tubes.find(tube, group)) forget_if_unreferenced(*lane);
}

Tube& EngineState::add_tube(TubeRecord record) {
  Tube* const head = record.head == 0 ? nullptr : &tube_numbered(record.head);
  std::deque<Tube*>& order = head == nullptr ? tube_order : lanes;
  auto made = std::make_unique<Tube>(std::move(record));
  made->position = order.size();
  made->made = tubes_made;
  order.push_back(made.get());
  const bool is_first_lane = head != nullptr && !head->groups;
  try {
    if (is_first_lane) head->groups = std::make_unique<Groups>(*head);
    if (head != nullptr) made->turn = std::make_unique<Turn>(*made, *head);
    Tube& tube = tubes.add(std::move(made));
    ++tubes_made;
    if (head == nullptr) {
      name_bytes += tube.record.name.size();
    } else {
      head->groups->add(tube);
    }
    return tube;
  } catch (...) {
    order.pop_back();
    if (is_first_lane) head->groups.reset();
    throw;
  }
}

Tube& EngineState::tube_numbered(std::uint32_t number) {
  if (Tube* tube = tubes.find(number)) return *tube;
  throw StoreError("a job is in tube number " + std::to_string(number) + ", which is not stored");
}

void EngineState::forget_if_unreferenced(Tube& tube) noexcept {
  if (&tube == default_tube || tube.referenced()) return;
  due.cancel(tube.due_time);
  if (tube.ripening()) ripening.erase(RipeningLine::s_iterator_to(tube));
  loading.cancel(tube.load_time);
  if (tube.retained) loading.cancel(tube.retained->time);
  end_count(tube);
  pauses.cancel(tube.pause_end);
  Tube* const head = tube.is_lane() ? &tube.head() : nullptr;
  std::deque<Tube*>& order = head == nullptr ? tube_order : lanes;
  if (head == nullptr) {
    removals.note(tube, *tube_order.back());
    name_bytes -= tube.record.name.size();
  } else {
    head->groups->remove(tube);
    if (head->groups->empty()) head->groups.reset();
  }
  order[tube.position] = order.back();
  order[tube.position]->position = tube.position;
  order.pop_back();
  tubes.remove(tube);
  if (head != nullptr) forget_if_unreferenced(*head);
}

void EngineState::forget_if_unreferenced(std::uint32_t number) noexcept {
  if (Tube* const tube = tubes.find(number)) forget_if_unreferenced(*tube);
}

void EngineState::use(Client& client, Tube& tube) {
  ++tube.users;
  Tube* before = std::exchange(client.tube_in_use, &tube);
  if (before == nullptr) return;
  --before->users;
  forget_if_unreferenced(*before);
}

void EngineState::watch(Client& client, Tube& tube) {
  auto made = std::make_unique<Watch>(client, tube);
  made->position = client.watches.size();
  client.watches.push_back(std::move(made));
  client.by_tube.insert(*client.watches.back());
  ++tube.watchers;
  ++watches;
}

void EngineState::unwatch(Watch& watch) {
  Client& client = *watch.client;
  Tube& tube = *watch.tube;
  if (watch.waiting_hook.is_linked()) tube.waiting.erase(tube.waiting.iterator_to(watch));
  client.by_tube.erase(client.by_tube.iterator_to(watch));
  const std::size_t position = watch.position;
  std::swap(client.watches[position], client.watches.back());
  client.watches[position]->position = position;
  client.watches.pop_back();
  client.in_lines = std::min(client.in_lines, client.watches.size());
  --tube.watchers;
  --watches;
  forget_if_unreferenced(tube);
}

}  // namespace carillon::queue
