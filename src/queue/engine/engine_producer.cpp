// Here the commands for producers are handled: use and put.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

JobId Engine::State::give_id() {
  if (next_id > kLastId)
    throw StoreError("the last id, " + std::to_string(kLastId) + ", was given: no job can be put");
  return next_id++;
}

PutOutcome Engine::put(ClientId id, Now now, const PutOrder& order, std::string_view body) {
  LargeBody large{.bytes = static_cast<std::uint32_t>(body.size())};
  if (body.size() <= kBodyPiece) return put(id, now, order, large, body);
  large = begin_body(large.bytes);
  try {
    for (std::size_t at = 0; at < body.size(); at += kBodyPiece)
      add_piece(large, body.substr(at, kBodyPiece));
    const PutOutcome outcome = put(id, now, order, large);
    if (outcome.id == 0) give_up(large);
    return outcome;
  } catch (const StoreError&) {
    give_up(large);
    throw;
  }
}

PutOutcome Engine::put(ClientId id, Now now, const PutOrder& order, const LargeBody& body) {
  return put(id, now, order, body, {});
}

// A body that has no id yet is given one.
PutOutcome Engine::put(ClientId id, Now now, const PutOrder& order, const LargeBody& of,
                       std::string_view body) {
  State& s = *state_;
  s.advance(now);
  if (order.due_at ? *order.due_at > kLastDue : !fits(now, order.due_in)) return {};

  const UtcMs utc = s.clock.utc();
  const UtcMs counted = order.due_in > 0 ? s.clock.utc_from() + order.due_in : utc;
  const UtcMs due = order.due_at.value_or(counted);

  Tube& tube = *s.client(id).tube_in_use;
  JobRecord record{.id = of.id != 0 ? of.id : s.give_id(),
                   .tube = tube.record.number,
                   .priority = order.priority,
                   .due = due,
                   .burial = 0,
                   .ttr = std::clamp(order.ttr, kMinTtr, kMaxTtr),
                   .delay = due > utc ? due - utc : 0,
                   .created = utc,
                   .body_bytes = of.bytes,
                   .history = {}};
  if (!order.due_at) s.clock.counts_from_now(record);
  s.extend_cursor(tube);
  s.add_change(std::nullopt, record, body);
  const Sequence sequence = s.append();

  ++tube.total;
  ++s.sums.total;
  if (record.due > utc && DueKey{record.due, record.id} >= tube.cursor) {
    s.leave_far(tube, record);
  } else {
    LoadedJob& job = s.add_to_memory(record);
    s.enqueue(job);
    s.serve(tube);
    s.make_room(tube, job);
  }
  return {record.id, sequence};
}

LargeBody Engine::begin_body(std::uint32_t bytes) {
  State& s = *state_;
  const JobId id = s.give_id();
  s.changes.begun = {id, bytes};
  s.append();
  return {.id = id, .bytes = bytes};
}

void Engine::add_piece(LargeBody& body, std::string_view piece) {
  State& s = *state_;
  s.changes.piece = {body.id, static_cast<std::uint32_t>(body.put / kBodyPiece), piece};
  s.append();
  body.put += static_cast<std::uint32_t>(piece.size());
}

void Engine::give_up(const LargeBody& body) {
  State& s = *state_;
  s.changes.given_up = {body.id, body.bytes};
  s.append();
}

void Engine::State::give_up_unfinished(const std::vector<UnfinishedBody>& bodies) try {
  for (const UnfinishedBody& body : bodies) {
    changes.given_up = body;
    append();
  }
} catch (const StoreError&) {
}

}  // namespace carillon::queue
