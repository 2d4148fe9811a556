// Here the commands for producers are handled: use and put.

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/never_runs.h"
#include "queue/engine/state/engine_state.h"
#include "queue/engine/state/mix.h"

namespace carillon::queue {

void EngineJobs::use(ClientId id, std::string_view tube) {
  state_.use(state_.client(id), state_.tube_named(tube));
}

const std::string& EngineJobs::tube_in_use(ClientId id) const {
  return state_.client(id).tube_in_use->record.name;
}

JobId EngineState::give_id() {
  if (next_id > kLastId)
    throw StoreError("the last id, " + std::to_string(kLastId) + ", was given: no job can be put");
  return next_id++;
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
  Tube& tube = *s.client(id).tube_in_use;
  try {
    PlannedPut put = s.plan_client_put(tube, order, of, body);
    if (!put.outcome.done()) return put.outcome;
    put.outcome.durable_at = s.append();
    tube.count_puts(1, s.clock.mono());
    s.finish_put(put);
    if (put.before) s.forget_if_unreferenced(put.before->tube);
    return put.outcome;
  } catch (...) {
    s.forget_lane(tube, order.group);
    throw;
  }
}

std::optional<UtcMs> EngineState::expiry(Millis in, std::optional<UtcMs> at) const {
  if (at == kNeverExpires || (!at && in == 0)) return 0;
  if (!clock.fits(in, at)) return std::nullopt;
  return std::max<UtcMs>(1, at.value_or(clock.utc_from() + in));
}

std::int64_t EngineState::lead_of_expiry(UtcMs expires, bool is_moment) const {
  return expires == 0 || is_moment ? kNoLead : clock.lead();
}

NeverRuns::NeverRuns(Millis due_in, Millis expires_in)
    : std::invalid_argument("the job would expire in " + std::to_string(expires_in) +
                            " ms, and be due in " + std::to_string(due_in) +
                            " ms: no worker would get it") {}

// All of a spread counts: else it would be chance whether the job runs.
void EngineState::require_time_to_run(Millis in, std::optional<UtcMs> at, Millis spread,
                                      UtcMs expires) const {
  const UtcMs from = clock.utc_from();
  const UtcMs first = at.value_or(in > 0 ? from + in : clock.utc());
  const UtcMs last = first + (spread > 0 ? spread - 1 : 0);
  if (expires == 0 || last <= clock.utc() || last < expires) return;
  throw NeverRuns(last - std::min(last, from), expires - std::min(expires, from));
}

PlannedPut EngineState::check_put(Tube& tube, const PutOrder& order, JobId body_id) {
  using Result = PutOutcome::Result;
  check(order.retry);
  static constexpr Millis kTooLong = kLastDue + 1;
  const Millis spread = std::min(order.spread, kTooLong);
  const Millis later = spread == 0 ? 0 : mix(body_id) % spread;
  const Millis due_in = std::min(order.due_in, kTooLong);
  const auto due_at = [&order](Millis by) {
    return order.due_at ? std::optional(std::min(*order.due_at, kTooLong) + by) : std::nullopt;
  };
  const std::optional<UtcMs> expires = expiry(order.expires_in, order.expires_at);
  if (!clock.fits(due_in + spread, due_at(spread)) || !expires) return {};
  PlannedPut put{.before = {},
                 .after = {.tube = tube.record.number,
                           .priority = order.priority,
                           .ttr = std::clamp(order.ttr, kMinTtr, kMaxTtr),
                           .created = clock.utc(),
                           .history = {}},
                 .outcome = {.result = Result::kInserted}};
  clock.set_due(put.after, due_in + later, due_at(later));
  if (order.key.size() > kMaxKey)
    throw std::invalid_argument("queue engine: a key has " + std::to_string(order.key.size()) +
                                " bytes; the most is " + std::to_string(kMaxKey));
  if (order.group.size() > kMaxGroup)
    throw std::invalid_argument("queue engine: a group has " + std::to_string(order.group.size()) +
                                " bytes; the most is " + std::to_string(kMaxGroup));
  check_attributes(order.attributes);
  if (!order.key.empty()) put.owner = store.find_key(tube.record.number, order.key);
  if (put.owner) plan_conflict(order, put);
  // A put that changes nothing is told why: perhaps it is sent again, later than the first time.
  if (put.outcome.done() && !order.buried)
    require_time_to_run(due_in, order.due_at, spread, *expires);
  return put;
}

void EngineState::check_attributes(std::string_view attributes) {
  if (attributes.size() <= kMaxAttributes) return;
  throw std::invalid_argument("attributes: " + std::to_string(attributes.size()) +
                              " bytes; the most is " + std::to_string(kMaxAttributes));
}

// So a put that is sent again learns what became of the first one.
PlannedPut EngineState::plan_client_put(Tube& tube, const PutOrder& order, const LargeBody& of,
                                        std::string_view body) {
  using Result = PutOutcome::Result;
  const bool refuses = tube.refuses_puts();
  if (!refuses && tube.lets_put(1, clock.mono())) return plan_put(tube, order, of, body);
  PlannedPut put = check_put(tube, order, of.id != 0 ? of.id : next_id);
  if (refuses && put.outcome.result != Result::kExists) put.outcome = {.result = Result::kDraining};
  if (!refuses && put.outcome.done()) put.outcome = too_fast(tube, 1);
  return put;
}

// A body that has no id yet gets the id of its job; if it replaces another body, a new one.
PlannedPut EngineState::plan_put(Tube& tube, const PutOrder& order, const LargeBody& of,
                                 std::string_view body) {
  PlannedPut put = check_put(tube, order, of.id != 0 ? of.id : next_id);
  if (!put.outcome.done()) return put;
  Tube& lane = lane_named(tube, order.group);
  JobRecord& record = put.after;
  record.tube = lane.record.number;
  record.body_bytes = of.bytes;
  if (order.buried) record.burial = next_burial++;
  const JobId body_id = of.id != 0 ? of.id : give_id();
  if (record.id == 0) record.id = body_id;
  put.outcome.id = record.id;
  const UtcMs expires = *expiry(order.expires_in, order.expires_at);
  const bool has_extras = body_id != record.id || !order.key.empty() ||
                          order.retry != RetryPolicy() || expires != 0 || !order.attributes.empty();
  if (has_extras) {
    record.extras = detail::Rare(
        JobExtras{.key = std::string(order.key),
                  .key_window = order.key.empty() ? 0 : order.key_window,
                  .body = body_id == record.id ? 0 : body_id,
                  .retry = order.retry,
                  .expires = expires,
                  .expires_lead = lead_of_expiry(expires, order.expires_at.has_value()),
                  .at_expiry = expires != 0 ? order.at_expiry : AtExpiry::kDrop,
                  .attributes = std::string(order.attributes),
                  .newer = {}});
  }
  if (!order.key.empty() && !put.before)
    add_key_change(
        put.owner,
        KeyRecord{.tube = tube.record.number, .key = record.extras->key, .id = record.id});
  if (put.before && put.before->extras->has_story) changes.stories.push_back({record.id, {}});
  extend_cursor(lane);
  add_change(put.before, record, body);
  return put;
}

void EngineState::finish_put(const PlannedPut& put) noexcept {
  const JobRecord& record = put.after;
  if (put.before) return replaced(*put.before, record);
  ++tube_numbered(record.tube).head().total;
  ++sums.total;
  if (!record.buried()) take_in(record);
}

LargeBody EngineJobs::begin_body(std::uint32_t bytes) {
  EngineState& s = state_;
  const JobId id = s.give_id();
  s.changes.clear();
  s.changes.begun = {id, bytes};
  s.append();
  return {.id = id, .bytes = bytes};
}

void EngineJobs::add_piece(LargeBody& body, std::string_view piece) {
  EngineState& s = state_;
  s.changes.clear();
  s.changes.piece = {body.id, static_cast<std::uint32_t>(body.put / kBodyPiece), piece};
  s.append();
  body.put += static_cast<std::uint32_t>(piece.size());
}

void EngineJobs::give_up(const LargeBody& body) {
  EngineState& s = state_;
  s.changes.clear();
  s.changes.given_up = {body.id, body.bytes};
  s.append();
}

void EngineState::give_up_unfinished(const std::vector<UnfinishedBody>& bodies) try {
  for (const UnfinishedBody& body : bodies) {
    changes.given_up = body;
    append();
  }
} catch (const StoreError&) {
}

}  // namespace carillon::queue
