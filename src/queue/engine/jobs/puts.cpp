#include "queue/engine/jobs/puts.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "carillon/queue/never_runs.h"
#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"
#include "queue/engine/state/mix.h"

namespace carillon::queue {

std::optional<UtcMs> Puts::expiry(Millis in, std::optional<UtcMs> at) const {
  if (at == kNeverExpires || (!at && in == 0)) return 0;
  if (!clock_.fits(in, at)) return std::nullopt;
  return std::max<UtcMs>(1, at.value_or(clock_.utc_from() + in));
}

std::int64_t Puts::lead_of_expiry(UtcMs expires, bool is_moment) const {
  return expires == 0 || is_moment ? kNoLead : clock_.lead();
}

NeverRuns::NeverRuns(Millis due_in, Millis expires_in)
    : std::invalid_argument("the job would expire in " + std::to_string(expires_in) +
                            " ms, and be due in " + std::to_string(due_in) +
                            " ms: no worker would get it") {}

// The whole spread counts: otherwise it would be chance whether the job runs.
void Puts::require_time_to_run(Millis in, std::optional<UtcMs> at, Millis spread,
                               UtcMs expires) const {
  CARILLON_REQUIRE(clock_.fits(in, at), in, at.value_or(0));
  const UtcMs from = clock_.utc_from();
  const UtcMs first = at.value_or(in > 0 ? from + in : clock_.utc());
  const UtcMs last = first + (spread > 0 ? spread - 1 : 0);
  if (expires == 0 || last <= clock_.utc() || last < expires) return;
  throw NeverRuns(last - std::min(last, from), expires - std::min(expires, from));
}

PlannedPut Puts::check(Tube& tube, const PutOrder& order, JobId body_id) {
  using Result = PutOutcome::Result;
  Endings::check(order.retry);
  static constexpr Millis kTooLong = kLastDue + 1;
  const Millis spread = std::min(order.spread, kTooLong);
  const Millis later = spread == 0 ? 0 : mix(body_id) % spread;
  const Millis due_in = std::min(order.due_in, kTooLong);
  const auto due_at = [&order](Millis by) {
    return order.due_at ? std::optional(std::min(*order.due_at, kTooLong) + by) : std::nullopt;
  };
  const std::optional<UtcMs> expires = expiry(order.expires_in, order.expires_at);
  if (!clock_.fits(due_in + spread, due_at(spread)) || !expires) return {};
  PlannedPut put{.before = {},
                 .after = {.tube = tube.record.number,
                           .priority = order.priority,
                           .ttr = std::clamp(order.ttr, kMinTtr, kMaxTtr),
                           .created = clock_.utc(),
                           .history = {}},
                 .outcome = {.result = Result::kInserted}};
  clock_.set_due(put.after, due_in + later, due_at(later));
  if (order.key.size() > kMaxKey)
    throw std::invalid_argument("queue engine: a key has " + std::to_string(order.key.size()) +
                                " bytes; the most is " + std::to_string(kMaxKey));
  if (order.group.size() > kMaxGroup)
    throw std::invalid_argument("queue engine: a group has " + std::to_string(order.group.size()) +
                                " bytes; the most is " + std::to_string(kMaxGroup));
  check_attributes(order.attributes);
  if (!order.key.empty()) put.owner = store_.find_key(tube.record.number, order.key);
  if (put.owner) plan_conflict(order, put);
  // A put that changes nothing must learn why: perhaps it is a repeat, and later than the first
  // one.
  if (put.outcome.done() && !order.buried)
    require_time_to_run(due_in, order.due_at, spread, *expires);
  return put;
}

void Puts::refuse_large(std::string_view body) {
  if (body.size() <= kBodyPiece) return;
  throw std::invalid_argument("queue engine: a body of a patch or a batch has " +
                              std::to_string(body.size()) + " bytes; the most is " +
                              std::to_string(kBodyPiece));
}

void Puts::check_attributes(std::string_view attributes) {
  if (attributes.size() <= kMaxAttributes) return;
  throw std::invalid_argument("attributes: " + std::to_string(attributes.size()) +
                              " bytes; the most is " + std::to_string(kMaxAttributes));
}

// The tube answers also a put that it would refuse, if it adds nothing: so a repeated put learns
// the outcome of the first one.
PlannedPut Puts::plan_of_client(Tube& tube, const PutOrder& order, const LargeBody& of,
                                std::string_view body) {
  using Result = PutOutcome::Result;
  const bool refuses = tube.refuses_puts();
  if (!refuses && tube.lets_put(1, clock_.mono())) return plan(tube, order, of, body);
  PlannedPut put = check(tube, order, of.id != 0 ? of.id : appender_.next_id());
  if (refuses && put.outcome.result != Result::kExists) put.outcome = {.result = Result::kDraining};
  if (!refuses && put.outcome.done()) put.outcome = throttle_.too_fast(tube, 1);
  return put;
}

// A body that has no id yet gets the id of its job; if it replaces another body, a new one.
PlannedPut Puts::plan(Tube& tube, const PutOrder& order, const LargeBody& of,
                      std::string_view body) {
  PlannedPut put = check(tube, order, of.id != 0 ? of.id : appender_.next_id());
  if (!put.outcome.done()) return put;
  Tube& lane = tubes_.lane_named(tube, order.group);
  JobRecord& record = put.after;
  record.tube = lane.record.number;
  record.body_bytes = of.bytes;
  if (order.buried) record.burial = appender_.give_burial();
  const JobId body_id = of.id != 0 ? of.id : appender_.give_id();
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
    keys_.add_change(
        put.owner,
        KeyRecord{.tube = tube.record.number, .key = record.extras->key, .id = record.id});
  if (put.before && put.before->extras->has_story)
    appender_.changes.stories.push_back({record.id, {}});
  far_.extend_cursor(lane);
  appender_.add_change(put.before, record, body);
  return put;
}

void Puts::finish(const PlannedPut& put) noexcept {
  const JobRecord& record = put.after;
  if (put.before) return jobs_.replaced(*put.before, record);
  ++tubes_.numbered(record.tube).head().total;
  ++counts_.sums.total;
  if (!record.buried()) jobs_.take_in(record);
}

bool Puts::is_ending(const JobRecord& job) const {
  return job.extras->cancel_asked || endings_.is_last(job.id);
}

// Decides the outcome of a put whose key is not free.
void Puts::plan_conflict(const PutOrder& order, PlannedPut& put) {
  using Result = PutOutcome::Result;
  const KeyRecord& owner = *put.owner;
  const bool stands_in_the_way =
      order.on_conflict == OnConflict::kReject || order.on_conflict == OnConflict::kIgnore;
  if (owner.until != 0) {
    if (stands_in_the_way && clock_.steady() < owner.until)
      put.outcome = {.result = Result::kExists,
                     .id = owner.id,
                     .durable_at = appender_.last_sequence(),
                     .owner = KeyOwner::kDone};
    return;
  }
  std::optional<JobRecord> other = jobs_.record_of(owner.id);
  if (!other) {
    throw StoreDamage("the key '" + owner.key + "' is of job " + std::to_string(owner.id) +
                      ", and there is no such job");
  }
  put.outcome = {.result = Result::kExists,
                 .id = owner.id,
                 .durable_at = jobs_.durable_at(owner.id),
                 .owner = owner_of_key(*other)};
  const bool is_reserved = put.outcome.owner == KeyOwner::kReserved;
  // A job that is ending will not run, so the producer must learn that nothing was put.
  if (stands_in_the_way && !(is_reserved && is_ending(*other))) return;
  put.outcome.result = Result::kReserved;
  if (is_reserved) return;
  put.outcome.result = Result::kReplaced;
  put.outcome.owner = KeyOwner::kNone;

  JobRecord& record = put.after;
  record.id = other->id;
  const bool is_later = placing_.due_of(*other) > placing_.due_of(record);
  const bool keeps_due = order.on_conflict == OnConflict::kKeepDue ||
                         (order.on_conflict == OnConflict::kDebounce && is_later);
  if (keeps_due && !other->buried()) {
    record.due = other->due;
    record.delay = other->delay;
    record.lead = other->lead;
    record.era = other->era;
  }
  put.before = std::move(other);
}

KeyOwner Puts::owner_of_key(const JobRecord& job) const {
  switch (jobs_.state_of(job)) {
    case JobState::kDelayed:
      return KeyOwner::kDelayed;
    case JobState::kReady:
      return KeyOwner::kReady;
    case JobState::kReserved:
      return KeyOwner::kReserved;
    case JobState::kBuried:
      break;
  }
  return job.extras->death == Death::kNone ? KeyOwner::kBuried : KeyOwner::kDead;
}

}  // namespace carillon::queue
