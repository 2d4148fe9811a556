// Jobs as the API has them, both ways (job.h).
#include "server/api/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace carillon::server {

namespace {

State state_of(queue::JobState state, queue::Death death) {
  const bool is_dead = state == queue::JobState::kBuried && death != queue::Death::kNone;
  return is_dead ? State::kDead : static_cast<State>(state);
}
static_assert(static_cast<int>(State::kBuried) == static_cast<int>(queue::JobState::kBuried));

static_assert(static_cast<int>(queue::Death::kExpired) - 1 == static_cast<int>(Died::kByExpiry));

// A count of nothing is left out.
std::optional<std::uint32_t> count_of(std::uint32_t count) {
  return count > 0 ? std::optional(count) : std::nullopt;
}

Ended ended_of(queue::Ending ending) {
  return static_cast<Ended>(static_cast<int>(ending) - 1);
}
static_assert(static_cast<int>(queue::Ending::kLost) - 1 == static_cast<int>(Ended::kByLoss));

}  // namespace

Job job_of(const queue::JobStats& stats) {
  const queue::JobRecord& record = stats.record;
  const queue::JobExtras& extras = *record.extras;
  Job job;
  job.id = record.id;
  job.tube = stats.tube;
  if (!stats.group.empty()) job.group = Bytes{stats.group};
  if (!extras.key.empty()) job.key = Bytes{extras.key};
  if (extras.key_window > 0) job.key_window = Duration{extras.key_window};
  job.state = state_of(stats.state, extras.death);
  if (job.state == State::kDead) job.died = static_cast<Died>(static_cast<int>(extras.death) - 1);
  job.priority = record.priority;
  job.due.at = record.due;
  job.ttr.ms = record.ttr;
  job.created.at = record.created;
  if (extras.expires != 0) {
    job.expires_at = Moment{std::min(extras.expires, queue::kLastDue)};
    job.at_expiry = extras.at_expiry;
  }
  if (!extras.attributes.empty()) show_attributes(extras.attributes, job);
  if (extras.retry != queue::RetryPolicy()) job.retry = retry_of(extras.retry);
  job.failed_attempts = extras.attempts;
  if (extras.cancel_asked) job.cancel_requested = true;
  job.reserves = count_of(record.history.reserves);
  job.timeouts = count_of(record.history.timeouts);
  job.releases = count_of(record.history.releases);
  job.buries = count_of(record.history.buries);
  job.kicks = count_of(record.history.kicks);
  job.body_bytes = record.body_bytes;
  return job;
}

std::vector<Attempt> attempts_of(const std::vector<queue::Attempt>& story) {
  std::vector<Attempt> attempts;
  for (const queue::Attempt& one : story)
    attempts.push_back({.at = {one.at},
                        .ended = ended_of(one.ending),
                        .worker = {one.worker},
                        .error = {one.error}});
  return attempts;
}

std::string etag_of(const queue::JobStats& stats) {
  const queue::JobRecord& record = stats.record;
  const queue::JobExtras& extras = *record.extras;
  const std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", record.id, stats.tube, record.created,
      record.body_id(), record.priority, record.due, record.ttr, record.burial,
      record.history.reserves, record.history.buries + record.history.kicks,
      static_cast<int>(stats.state), extras.attempts, extras.has_story, extras.cancel_asked,
      extras.expires, static_cast<int>(extras.at_expiry), extras.attributes);
  return fmt::format("\"{:016x}\"", std::hash<std::string>()(text));
}

std::optional<KeyState> key_state_of(const queue::PutOutcome& put) {
  if (put.owner == queue::KeyOwner::kNone) return std::nullopt;
  return static_cast<KeyState>(static_cast<int>(put.owner) - 1);
}
static_assert(static_cast<int>(queue::KeyOwner::kDone) - 1 == static_cast<int>(KeyState::kDone));

queue::PutOrder order_of(Reader& reader, const JobDescription& job) {
  if (job.delay && job.due) reader.fault("due", "there is a delay already");
  if (job.expires_at && job.expires_in)
    reader.fault("expires_in", "there is an expires_at already");
  if (job.at_expiry && !job.expires_at && !job.expires_in)
    reader.fault("at_expiry", "the job does not expire");
  queue::PutOrder order{.priority = job.priority,
                        .due_in = job.delay.value_or(Duration()).ms,
                        .ttr = job.ttr.ms,
                        .key_window = job.key_window.value_or(Duration()).ms,
                        .group = job.group,
                        .expires_in = job.expires_in.value_or(Duration()).ms,
                        .at_expiry = job.at_expiry.value_or(queue::AtExpiry::kDrop),
                        .spread = job.spread.ms};
  if (job.due) order.due_at = job.due->at;
  if (job.expires_at) order.expires_at = job.expires_at->at;
  if (job.retry) {
    reader.within("retry", [&] { apply(reader, *job.retry, order.retry); });
    order.retry.counts_empty = order.retry == queue::RetryPolicy();
  }
  return order;
}

queue::PutOrder order_of(Reader& reader, const NewJob& job) {
  constexpr std::string_view kNoKey = "goes with a key alone";
  if (job.key.empty() && job.on_conflict) reader.fault("on_conflict", std::string(kNoKey));
  if (job.key.empty() && job.key_window) reader.fault("key_window", std::string(kNoKey));
  queue::PutOrder order = order_of(reader, static_cast<const JobDescription&>(job));
  order.key = job.key;
  order.on_conflict = job.on_conflict.value_or(queue::OnConflict::kReject);
  return order;
}

}  // namespace carillon::server
