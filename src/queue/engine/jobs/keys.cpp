// Here the keys of jobs are handled: what a put with a key meets, and keys whose jobs are gone.
//
// The store has a record of each key: which job has it, or had it and is done, and until when it
// counts. That goes by steady time (engine_clock.h): a wall clock that is set ends no window. A
// record whose time is over is as good as none. It is forgotten within about a second, together
// with others that have ended meanwhile.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

constexpr Millis kNoKeyEnds = UINT64_MAX;

// How long keys that have ended wait to be forgotten together, in ms.
constexpr Millis kTogether = 1'000;

// Returns true if no worker gets the reserved job again: its cancel was asked for, or it has
// expired and that is not stored yet.
bool is_ending(const EngineState& s, const JobRecord& job) {
  const auto* const queued_endings = s.queued_endings.find(job.id);
  return job.extras->cancel_asked || (queued_endings != nullptr && !queued_endings->ending);
}

}  // namespace

// Sets what becomes of a put whose key is not free.
void EngineState::plan_conflict(const PutOrder& order, PlannedPut& put) {
  using Result = PutOutcome::Result;
  const KeyRecord& owner = *put.owner;
  const bool stands_in_the_way =
      order.on_conflict == OnConflict::kReject || order.on_conflict == OnConflict::kIgnore;
  if (owner.until != 0) {
    if (stands_in_the_way && clock.steady() < owner.until)
      put.outcome = {.result = Result::kExists,
                     .id = owner.id,
                     .durable_at = last_sequence,
                     .owner = KeyOwner::kDone};
    return;
  }
  std::optional<JobRecord> other = record_of(owner.id);
  if (!other) {
    throw StoreDamage("the key '" + owner.key + "' is of job " + std::to_string(owner.id) +
                      ", and there is no such job");
  }
  put.outcome = {.result = Result::kExists,
                 .id = owner.id,
                 .durable_at = durable_at(owner.id),
                 .owner = owner_of_key(*other)};
  const bool is_reserved = put.outcome.owner == KeyOwner::kReserved;
  // A job that is ending will not run, so the producer learns that nothing was put.
  if (stands_in_the_way && !(is_reserved && is_ending(*this, *other))) return;
  put.outcome.result = Result::kReserved;
  if (is_reserved) return;
  put.outcome.result = Result::kReplaced;
  put.outcome.owner = KeyOwner::kNone;

  JobRecord& record = put.after;
  record.id = other->id;
  const bool is_later = due_of(*other) > due_of(record);
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

KeyOwner EngineState::owner_of_key(const JobRecord& job) {
  switch (state_of(job)) {
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

// Whoever puts a job again that was not done must not be told that it is there.
void EngineState::end_key(const JobRecord& job, Work work) {
  const JobExtras& extras = *job.extras;
  if (extras.key.empty()) return;
  const std::uint32_t tube = tube_numbered(job.tube).head().record.number;
  const KeyRecord before{.tube = tube, .key = extras.key, .id = job.id};
  if (extras.key_window == 0 || work == Work::kNotDone) return add_key_change(before, std::nullopt);
  KeyRecord after = before;
  after.until = std::min(extras.key_window, kLastDue) + clock.steady_from();
  add_key_change(before, after);
}

void EngineState::sweep_keys_not_after(Millis when) {
  keys_from = std::min(keys_from, when);
  keys_end = std::min(keys_end, std::max(when, clock.steady() + kTogether));
}

void EngineState::sweep_keys(std::size_t budget) try {
  const Millis steady = clock.steady();
  if (steady < keys_end) return;
  if (!store.has_room()) {
    keys_end = steady + kTogether;
    return;
  }
  const std::vector<KeyRecord> ended = store.scan_ended_keys(keys_from, budget + 1);
  std::vector<std::uint32_t> of;
  for (const KeyRecord& key : ended) {
    if (key.until > steady || of.size() == budget) break;
    add_key_change(key, std::nullopt);
    of.push_back(key.tube);
  }
  if (!of.empty()) append();
  keys_from = of.size() < ended.size() ? ended[of.size()].until : kNoKeyEnds;
  keys_end = keys_from;
  if (keys_end > steady && keys_end != kNoKeyEnds)
    keys_end = std::max(keys_end, steady + kTogether);
  for (const std::uint32_t number : of) forget_if_unreferenced(number);
} catch (const StoreError& error) {
  load_failure = error.what();
  keys_end = clock.steady() + kTogether;  // tried again then; nobody is harmed meanwhile
}

}  // namespace carillon::queue
