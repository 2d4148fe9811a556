// Here clients disconnect, and what clients with many jobs or watches leave behind is cleared up in
// steps: each call does a part, and Engine::advance goes on with the rest.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

std::size_t EngineState::leave_lines(Client& client, std::size_t budget) {
  const std::size_t before = client.in_lines;
  while (client.in_lines > before - std::min(before, budget)) {
    Watch& watch = *client.watches[--client.in_lines];
    Tube::WaitingLine& line = watch.tube->waiting;
    if (watch.waiting_hook.is_linked()) line.erase(line.iterator_to(watch));
  }
  if (client.in_lines == 0 && client.leaving_hook.is_linked())
    leaving_lines.erase(leaving_lines.iterator_to(client));
  return before - client.in_lines;
}

std::size_t EngineState::give_up(Client& client, std::size_t budget) {
  std::size_t done = 0;
  for (; done < budget && !client.held.empty(); ++done) {
    LoadedJob& job = client.held.front();
    if (end_is_stored(job, Ending::kLost)) {
      queue_ending(job, Ending::kLost);
      continue;
    }
    Tube& tube = *job.tube;
    detach(job);
    enqueue(job);
    serve(tube);
  }
  for (; done < budget && !client.watches.empty(); ++done) unwatch(*client.watches.back());
  return done;
}

void EngineState::clear_up(std::size_t budget) {
  while (budget > 0 && !gone.empty()) {
    budget -= give_up(*gone.front(), std::min(budget, kLeaveAtOnce));
    if (gone.front()->watches.empty()) {
      gone.pop_front();
    } else {
      gone.splice(gone.end(), gone, gone.begin());
    }
  }
  while (budget > 0 && !leaving_lines.empty()) {
    Client& client = leaving_lines.front();
    budget -= leave_lines(client, std::min(budget, kLeaveAtOnce));
    if (client.leaving_hook.is_linked())
      leaving_lines.splice(leaving_lines.end(), leaving_lines, leaving_lines.begin());
  }
}

void Engine::disconnect(ClientId id, Now now) {
  EngineState& s = *state_;
  s.observe(now);
  Client& client = s.client(id);
  if (client.waiting) s.end_waiting(client);
  if (client.leaving_hook.is_linked())
    s.leaving_lines.erase(s.leaving_lines.iterator_to(client));  // `unwatch` does that too
  s.end_listing(client);
  s.give_up(client, EngineState::kLeaveAtOnce);
  --client.tube_in_use->users;
  s.forget_if_unreferenced(*client.tube_in_use);
  client.tube_in_use = nullptr;
  const auto at = s.clients.find(id);
  if (!client.watches.empty()) s.gone.push_back(std::move(at->second));
  s.clients.erase(at);
}

}  // namespace carillon::queue
