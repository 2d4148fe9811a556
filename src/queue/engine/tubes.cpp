// Here tubes are found, made, used, watched, and forgotten when nothing refers to them any more.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "queue/engine/engine_state.h"

namespace carillon::queue {

Tube* Engine::State::find_tube(std::string_view name) {
  const auto found = tubes.find(name);
  return found == tubes.end() ? nullptr : found->second.get();
}

Tube& Engine::State::tube_named(std::string_view name) {
  if (Tube* tube = find_tube(name)) return *tube;
  while (tubes_by_number.contains(next_tube)) ++next_tube;
  auto made = std::make_unique<Tube>(next_tube, std::string(name));
  Tube& tube = *made;
  tube_order.reserve(tube_order.size() + 1);
  tubes_by_number.emplace(next_tube, &tube);
  tubes.emplace(tube.record.name, std::move(made));
  tube.position = tube_order.size();
  tube_order.push_back(&tube);
  ++next_tube;
  return tube;
}

Tube& Engine::State::tube_numbered(std::uint32_t number) {
  const auto found = tubes_by_number.find(number);
  if (found == tubes_by_number.end())
    throw StoreError("a job is in tube number " + std::to_string(number) + ", which is not stored");
  return *found->second;
}

void Engine::State::forget_if_unreferenced(Tube& tube) {
  if (&tube == default_tube || tube.referenced()) return;
  due.cancel(tube.due_time);
  if (tube.ripening()) ripening.erase(RipeningLine::s_iterator_to(tube));
  loading.cancel(tube.load_time);
  pauses.cancel(tube.pause_end);
  tube_order[tube.position] = tube_order.back();
  tube_order[tube.position]->position = tube.position;
  tube_order.pop_back();
  tubes_by_number.erase(tube.record.number);
  tubes.erase(tubes.find(tube.record.name));
}

void Engine::State::use(Client& client, Tube& tube) {
  ++tube.users;
  Tube* before = std::exchange(client.tube_in_use, &tube);
  if (before == nullptr) return;
  --before->users;
  forget_if_unreferenced(*before);
}

void Engine::State::watch(Client& client, Tube& tube) {
  client.watches.push_back(std::make_unique<Watch>(client, tube));
  ++tube.watchers;
}

void Engine::State::unwatch(Client& client, std::size_t position) {
  Tube& tube = *client.watches[position]->tube;
  client.watches[position] = std::move(client.watches.back());
  client.watches.pop_back();
  --tube.watchers;
  forget_if_unreferenced(tube);
}

}  // namespace carillon::queue
