// The commands for many jobs, each with one append: put_all, release_all and remove_all.
//
// A batch may have a token, so that a client that got no answer can send it again. The answer is
// stored in the same append as the jobs, among the keys whose jobs are gone, and is forgotten like
// them (keys.cpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "carillon/queue/never_runs.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// Throws std::invalid_argument if a key comes twice.
class DistinctKeys {
 public:
  void add(std::string_view key) {
    if (key.empty() || keys_.insert(key).second) return;
    throw std::invalid_argument("put_all: two jobs have the key '" + std::string(key) + "'");
  }

 private:
  std::unordered_set<std::string_view> keys_;
};

// Its destructor forgets the lanes that were made for jobs that are not put.
class MadeLanes {
 public:
  using Forget = std::function<void(std::string_view group)>;
  MadeLanes(std::span<const NewJob> jobs, Forget forget)
      : jobs_(jobs), forget_(std::move(forget)) {}
  MadeLanes(const MadeLanes&) = delete;
  MadeLanes& operator=(const MadeLanes&) = delete;
  ~MadeLanes() {
    for (const NewJob& job : jobs_) forget_(job.order.group);
  }
  void keep() { jobs_ = {}; }

 private:
  std::span<const NewJob> jobs_;
  Forget forget_;
};

bool is_in_the_way(const PutOutcome& put, const PutOrder& order) {
  if (put.done()) return false;
  return put.result != PutOutcome::Result::kExists || order.on_conflict != OnConflict::kIgnore;
}

// Calls `plan` for the job of a batch at this position.
template <class Plan>
PlannedPut plan_at(std::size_t position, Plan plan) {
  try {
    return plan();
  } catch (NeverRuns& refused) {
    refused.job = position;
    throw;
  }
}

// Only checks: a batch that has to wait uses up nothing of what a plan takes, such as ids.
// Returns the refusal of a batch for which the tube lacks tokens, or none.
std::optional<BatchOutcome> refusal_of_rate(EngineState& s, Tube& tube,
                                            std::span<const NewJob> batch) {
  using Result = PutOutcome::Result;
  if (tube.lets_put(batch.size(), s.clock.mono()) || tube.refuses_puts()) return std::nullopt;
  const std::uint64_t tokens = tube.puts->tokens(s.clock.mono());
  BatchOutcome outcome{.result = BatchOutcome::Result::kRefused};
  std::uint64_t wanted = 0;
  for (const NewJob& job : batch) {
    PutOutcome put = plan_at(outcome.jobs.size(), [&] {
                       return s.puts.check(tube, job.order, s.appender.next_id());
                     }).outcome;
    if (put.done() && ++wanted > tube.puts->most_tokens()) put = {.result = Result::kTooMany};
    if (put.done() && wanted == tokens + 1) outcome.stopper = outcome.jobs.size();
    outcome.jobs.push_back(put);
    outcome.durable_at = std::max(outcome.durable_at, put.durable_at);
    if (!is_in_the_way(put, job.order)) continue;
    outcome.stopper = outcome.jobs.size() - 1;
    return outcome;
  }
  if (wanted <= tokens) return std::nullopt;
  outcome.jobs.resize(outcome.stopper + 1);
  outcome.jobs.back() = s.throttle.too_fast(tube, wanted);
  return outcome;
}

}  // namespace

BatchOutcome EngineJobs::put_all(ClientId id, Now now, std::span<const NewJob> jobs,
                                 const BatchOrder& order) {
  EngineState& s = state_;
  s.advance(now);
  BatchToken token = s.keys.token_of(order);
  if (auto answer = s.keys.answer_of(token, order)) return *std::move(answer);

  Tube& tube = *s.clients.client(id).tube_in_use;
  if (auto refused = refusal_of_rate(s, tube, jobs)) return *std::move(refused);
  MadeLanes lanes(jobs, [&](std::string_view group) { s.tubes.forget_lane(tube, group); });
  DistinctKeys keys;
  std::vector<PlannedPut> puts;
  puts.reserve(jobs.size());
  BatchOutcome outcome;
  outcome.jobs.reserve(jobs.size());
  for (const NewJob& job : jobs) {
    keys.add(job.order.key);
    Puts::refuse_large(job.body);
    const LargeBody body{.bytes = static_cast<std::uint32_t>(job.body.size())};
    puts.push_back(plan_at(puts.size(),
                           [&] { return s.puts.plan_of_client(tube, job.order, body, job.body); }));
    const PutOutcome& put = outcome.jobs.emplace_back(puts.back().outcome);
    outcome.durable_at = std::max(outcome.durable_at, put.durable_at);
    if (!is_in_the_way(put, job.order)) continue;
    outcome.result = BatchOutcome::Result::kRefused;
    outcome.stopper = outcome.jobs.size() - 1;
    return outcome;
  }
  if (order.tells_job && puts.size() == 1)
    outcome.job = puts.front().job(tube.record.name, jobs.front().order.group);
  if (!order.once.empty()) s.keys.add_token(std::move(token), order, outcome);
  if (s.appender.changes.jobs.empty() && s.appender.changes.keys.empty()) return outcome;
  outcome.durable_at = s.appender.append();
  lanes.keep();
  const auto done = std::count_if(puts.begin(), puts.end(),
                                  [](const PlannedPut& put) { return put.outcome.done(); });
  tube.count_puts(static_cast<std::uint64_t>(done), s.clock.mono());
  for (std::size_t i = 0; i < puts.size(); ++i) {
    if (!puts[i].outcome.done()) continue;
    outcome.jobs[i].durable_at = outcome.durable_at;
    s.puts.finish(puts[i]);
  }
  // Forget lanes only now: several of the jobs may have been the last ones of one group.
  for (const PlannedPut& put : puts) {
    if (put.before) s.tubes.forget_if_unreferenced(put.before->tube);
  }
  return outcome;
}

BatchToken Keys::token_of(const BatchOrder& order) const {
  const auto check = [](const char* what, std::string_view text, std::size_t most) {
    if (text.size() > most)
      throw std::invalid_argument("queue engine: " + std::string(what) + " has " +
                                  std::to_string(text.size()) + " bytes; the most is " +
                                  std::to_string(most));
  };
  check("a token", order.once, kMaxKey);
  check("a fingerprint", order.fingerprint, kMaxFingerprint);
  return order.once.empty() ? std::nullopt : store_.find_key(kTokens, order.once);
}

std::optional<BatchOutcome> Keys::answer_of(const BatchToken& token,
                                            const BatchOrder& order) const {
  using Result = BatchOutcome::Result;
  if (!token || token->until <= clock_.steady()) return std::nullopt;
  const BatchAnswer& answer = *token->batch;
  if (!answer.fingerprint.empty() && answer.fingerprint != order.fingerprint)
    return BatchOutcome{.result = Result::kOtherBatch, .durable_at = appender_.last_sequence()};
  BatchOutcome outcome{
      .result = Result::kAlready, .durable_at = appender_.last_sequence(), .job = answer.job};
  for (const PutRun& run : answer.puts) {
    for (std::uint32_t i = 0; i < run.jobs; ++i) {
      outcome.jobs.push_back({.result = static_cast<PutOutcome::Result>(run.result),
                              .id = run.first + i,
                              .durable_at = appender_.last_sequence(),
                              .owner = static_cast<KeyOwner>(run.owner)});
    }
  }
  return outcome;
}

bool EngineJobs::knows_token(std::string_view token) const {
  const auto found = state_.store.find_key(kTokens, token);
  return found && found->until > state_.clock.steady();
}

void Keys::add_token(BatchToken before, const BatchOrder& order, const BatchOutcome& outcome) {
  BatchAnswer answer{.fingerprint = std::string(order.fingerprint), .puts = {}, .job = outcome.job};
  for (const PutOutcome& put : outcome.jobs) {
    const auto result = static_cast<std::uint32_t>(put.result);
    const auto owner = static_cast<std::uint32_t>(put.owner);
    PutRun* const last = answer.puts.empty() ? nullptr : &answer.puts.back();
    const bool is_like_last = last != nullptr && last->result == result && last->owner == owner;
    if (is_like_last && last->first + last->jobs == put.id) {
      ++last->jobs;
    } else {
      answer.puts.push_back({.result = result, .first = put.id, .jobs = 1, .owner = owner});
    }
  }
  add_change(std::move(before),
             KeyRecord{.tube = kTokens,
                       .key = std::string(order.once),
                       .until = std::min(order.window, kLastDue) + clock_.steady_from(),
                       .batch = detail::Rare(std::move(answer))});
}

std::vector<Outcome> EngineWorkers::release_all(ClientId id, Now now, std::span<const JobId> ids,
                                                std::optional<Priority> priority, Millis delay) {
  EngineState& s = state_;
  s.advance(now);
  if (!s.clock.fits(delay, std::nullopt))
    throw std::out_of_range("release_all: a delay of " + std::to_string(delay) +
                            " ms ends after the year 9999");
  const Client& client = s.clients.client(id);
  std::vector<Outcome> outcomes;
  std::vector<PlannedEnd> ends;
  std::unordered_set<JobId> seen;
  for (const JobId job_id : ids) {
    outcomes.push_back({.done = false, .durable_at = s.appender.last_sequence()});
    LoadedJob* const job = s.jobs.held_by(client, job_id);
    if (job == nullptr || !seen.insert(job_id).second) continue;
    outcomes.back().done = true;
    ends.push_back(s.endings.plan_release(*job, priority.value_or(job->record.priority), delay));
  }
  if (ends.empty()) return outcomes;
  std::vector<Tube*> served;
  std::vector<std::uint32_t> left;
  for (const PlannedEnd& end : ends) {
    served.push_back(end.job->tube);
    left.push_back(end.job->record.tube);
  }
  const Sequence sequence = s.appender.append();
  for (Outcome& outcome : outcomes) outcome.durable_at = sequence;
  for (const PlannedEnd& end : ends) s.endings.finish_end(end);
  s.clients.serve(served);
  for (const std::uint32_t tube : left) s.tubes.forget_if_unreferenced(tube);
  return outcomes;
}

std::vector<Outcome> EngineJobs::remove_all(ClientId id, Now now, std::span<const JobId> ids) {
  EngineState& s = state_;
  s.advance(now);
  const Client& client = s.clients.client(id);
  std::vector<Outcome> outcomes;
  std::vector<JobRecord> removed;
  std::unordered_set<JobId> seen;
  for (const JobId job_id : ids) {
    outcomes.push_back({.done = false, .durable_at = s.appender.last_sequence()});
    if (!seen.insert(job_id).second) continue;
    const std::optional<JobRecord> record = s.removals.record_for(client, job_id);
    if (!record) continue;
    outcomes.back().done = true;
    s.removals.add(*record, s.removals.work_of(*record));
    removed.push_back(*record);
  }
  if (removed.empty()) return outcomes;
  std::vector<Tube*> served;
  served.reserve(removed.size());
  const Sequence sequence = s.appender.append();
  for (Outcome& outcome : outcomes) outcome.durable_at = sequence;
  for (const JobRecord& record : removed) {
    Tube& tube = s.removals.finish(record);
    if (tube.limited()) served.push_back(&tube);
  }
  s.clients.serve(served);
  for (const JobRecord& record : removed) s.tubes.forget_if_unreferenced(record.tube);
  return outcomes;
}

}  // namespace carillon::queue
