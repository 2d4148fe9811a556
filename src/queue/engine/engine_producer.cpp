// Here the commands for producers are handled: use and put.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "queue/engine/engine_state.h"

namespace carillon::queue {

void Engine::use(ClientId id, std::string_view tube) {
  state_->use(state_->client(id), state_->tube_named(tube));
}

const std::string& Engine::tube_in_use(ClientId id) const {
  return state_->client(id).tube_in_use->record.name;
}

bool Engine::fits(Now now, Millis delay) const {
  EngineClock then = state_->clock;
  then.observe(now);
  return delay <= kLastDue && then.utc_from() <= kLastDue - delay;
}

PutOutcome Engine::put(ClientId id, Now now, const PutOrder& order, std::string_view body) {
  State& s = *state_;
  s.advance(now);
  if (order.due_at ? *order.due_at > kLastDue : !fits(now, order.due_in)) return {};

  if (s.next_id > kLastId)
    throw StoreError("the last id, " + std::to_string(kLastId) + ", was given: no job can be put");

  const UtcMs utc = s.clock.utc();
  UtcMs due = utc;
  if (order.due_at) due = std::max(utc, *order.due_at);
  if (!order.due_at && order.due_in > 0) due = s.clock.utc_from() + order.due_in;

  Tube& tube = *s.client(id).tube_in_use;
  const JobRecord record{.id = s.next_id++,
                         .tube = tube.record.number,
                         .priority = order.priority,
                         .due = due,
                         .burial = 0,
                         .ttr = std::clamp(order.ttr, kMinTtr, kMaxTtr),
                         .delay = due > utc ? due - utc : 0,
                         .created = utc,
                         .body_bytes = static_cast<std::uint32_t>(body.size()),
                         .history = {}};
  s.extend_cursor(tube);
  s.add_change(std::nullopt, record, body);
  const Sequence sequence = s.append();

  ++tube.total;
  ++s.sums.total;
  if (record.due > utc && DueKey{record.due, record.id} >= tube.cursor) {
    s.leave_far(tube, record.due);
  } else {
    LoadedJob& job = s.add_to_memory(record);
    s.enqueue(job);
    s.serve(tube);
    s.make_room(tube, job);
  }
  return {record.id, sequence};
}

}  // namespace carillon::queue
