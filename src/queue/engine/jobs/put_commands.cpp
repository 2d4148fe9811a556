// The commands for producers: use and put. batches.cpp has the commands for many jobs.

#include <algorithm>
#include <string>
#include <string_view>

#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

void EngineJobs::use(ClientId id, std::string_view tube) {
  state_.clients.use(state_.clients.client(id), state_.tubes.named(tube));
}

const std::string& EngineJobs::tube_in_use(ClientId id) const {
  return state_.clients.client(id).tube_in_use->record.name;
}

PutOutcome EngineJobs::put(ClientId id, Now now, const PutOrder& order, std::string_view body) {
  LargeBody large{.bytes = static_cast<std::uint32_t>(body.size())};
  if (body.size() <= kBodyPiece) return put(id, now, order, large, body);
  large = begin_body(large.bytes);
  try {
    for (std::size_t at = 0; at < body.size(); at += kBodyPiece)
      add_piece(large, body.substr(at, kBodyPiece));
    const PutOutcome outcome = put(id, now, order, large);
    if (!outcome.done()) give_up(large);
    return outcome;
  } catch (...) {
    give_up(large);
    throw;
  }
}

PutOutcome EngineJobs::put(ClientId id, Now now, const PutOrder& order, const LargeBody& body) {
  return put(id, now, order, body, {});
}

PutOutcome EngineJobs::put(ClientId id, Now now, const PutOrder& order, const LargeBody& of,
                           std::string_view body) {
  EngineState& s = state_;
  s.advance(now);
  Tube& tube = *s.clients.client(id).tube_in_use;
  try {
    PlannedPut put = s.puts.plan_of_client(tube, order, of, body);
    if (!put.outcome.done()) return put.outcome;
    put.outcome.durable_at = s.appender.append();
    tube.count_puts(1, s.clock.mono());
    s.puts.finish(put);
    if (put.before) s.tubes.forget_if_unreferenced(put.before->tube);
    return put.outcome;
  } catch (...) {
    s.tubes.forget_lane(tube, order.group);
    throw;
  }
}

LargeBody EngineJobs::begin_body(std::uint32_t bytes) {
  CARILLON_REQUIRE(bytes > kBodyPiece, bytes);
  EngineState& s = state_;
  const JobId id = s.appender.give_id();
  s.appender.changes.clear();
  s.appender.changes.begun = {id, bytes};
  s.appender.append();
  return {.id = id, .bytes = bytes};
}

void EngineJobs::add_piece(LargeBody& body, std::string_view piece) {
  CARILLON_REQUIRE(body.put < body.bytes &&
                       piece.size() == std::min<std::size_t>(kBodyPiece, body.bytes - body.put),
                   body.id, body.put, body.bytes, piece.size());
  EngineState& s = state_;
  s.appender.changes.clear();
  s.appender.changes.piece = {body.id, static_cast<std::uint32_t>(body.put / kBodyPiece), piece};
  s.appender.append();
  body.put += static_cast<std::uint32_t>(piece.size());
}

void EngineJobs::give_up(const LargeBody& body) {
  EngineState& s = state_;
  s.appender.changes.clear();
  s.appender.changes.given_up = {body.id, body.bytes};
  s.appender.append();
}

}  // namespace carillon::queue
