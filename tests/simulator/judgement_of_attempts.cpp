// What may be said and stored of attempts that fail, of policies, and of reservations that end
// without a word of their workers (model.h).

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/clock.h"
#include "simulator/model.h"
#include "simulator/talker_parts.h"

namespace carillon::simulator {

using queue::Attempt;
using queue::Ending;
using queue::JobId;
using queue::JobRecord;
using queue::RetryPolicy;

namespace {

// What a policy lets a job wait at least after its `failed`th failed attempt, in ms.
std::uint64_t least_delay(const RetryPolicy& policy, std::uint32_t failed) {
  std::uint64_t delay = policy.backoff;
  for (std::uint32_t n = 1; n < failed && delay < policy.backoff_max; ++n) delay *= 2;
  return std::min(delay, std::max(policy.backoff, policy.backoff_max));
}

}  // namespace

// --- Policies.

const RetryPolicy& Model::policy_of(const Job& job) const {
  static const RetryPolicy kNone;
  if (job.retry != kNone) return job.retry;
  const auto found = policies_.find(job.tube);
  return found == policies_.end() ? kNone : found->second;
}

bool Model::end_is_stored(const Job& job, Ending ending) const {
  const RetryPolicy& policy = policy_of(job);
  if (job.cancel_asked) return true;
  return ending == Ending::kLost ? policy.lost_fails : policy != RetryPolicy();
}

void Model::judge_set_tube(const Case& c) {
  if (!c.command.group.empty()) return judge_set_group(c);
  const std::string& tube = c.command.tube;
  if (c.reply.word != "OK") fail(c, "that is no answer to it");
  // With the settings that end here its record may have gone.
  const bool had_settings = policies_.contains(tube) || retentions_.contains(tube) ||
                            drained_.contains(tube) || tube_limits_.of(tube) != queue::Limits() ||
                            put_rates_.of(tube) != queue::Limits();
  const bool is_new = !exists(tube) && !had_settings;
  if (is_new && tubes_and_watches() >= limits_.tubes) fail(c, "there are too many tubes");
  RetryPolicy next = policies_[tube];
  c.command.policy.apply(next);
  queue::Limits limits = tube_limits_.of(tube);
  c.command.limits.apply(limits);
  tube_limits_.set(tube, limits, c.since, c.now);
  queue::Limits puts = put_rates_.of(tube);
  c.command.put_rate.apply(puts);
  put_rates_.set(tube, puts, c.since, c.now);
  if (puts != queue::Limits()) rated_.insert(tube);
  const queue::Millis kept =
      c.command.retention.value_or(retentions_.contains(tube) ? retentions_.at(tube) : 0);
  kept > 0 ? void(retentions_[tube] = kept) : void(retentions_.erase(tube));
  expect_changed({});
  const bool drains = c.command.refuses_puts.value_or(drained_.contains(tube));
  drains ? void(drained_.insert(tube)) : void(drained_.erase(tube));
  settle_deadlines(tube, next, c.now);
  policies_[tube] = next;
  if (next == RetryPolicy()) policies_.erase(tube);
  if (const queue::TubeRecord* const record = history_.find_tube(tube)) {
    if (record->settings->retry != next || record->settings->limits != limits ||
        record->settings->put_rate != puts || record->settings->retention != kept ||
        record->settings->refuses_puts != drains)
      fail(c, "something else is stored");
    return;
  }
  const bool has_limits = limits != queue::Limits() || puts != queue::Limits();
  if (next != RetryPolicy() || has_limits || drains || kept > 0) fail(c, "nothing is stored");
}

// The policy that held when the time of a job was over says what became of the job.
void Model::settle_deadlines(const std::string& tube, const RetryPolicy& next, queue::Now now) {
  if ((policies_[tube] == RetryPolicy()) == (next == RetryPolicy())) return;
  const auto jobs = tubes_.find(tube);
  if (jobs == tubes_.end()) return;
  for (const JobId id : jobs->second) {
    Job& job = jobs_.at(id);
    if (job.holder == 0 || job.cancel_asked || job.retry != RetryPolicy()) continue;
    if (job.entrusted != Is::kNo) continue;  // by another change of the policy
    const Is has_time_left = has_time(job, now);
    if (has_time_left == Is::kYes) continue;
    const bool was_stored = end_is_stored(job, Ending::kTimedOut);
    // The client may still hold it.
    if (has_time_left == Is::kMaybe) {
      entrust(job, Is::kMaybe, {Ending::kTimedOut}, now);
      continue;
    }
    let_go(id, job);
    if (was_stored) entrust(job, Is::kYes, {Ending::kTimedOut}, now);
  }
}

void Model::entrust(Job& job, Is is_it, std::set<Ending> endings, queue::Now now) {
  job.entrusted = is_it;
  job.entrusted_at = now.mono_ns;
  job.endings.merge(endings);
}

// --- Commands.

void Model::judge_fail(const Case& c) {
  const JobId id = c.command.id;
  Job* const job = find(id);
  const Is is_held = job == nullptr ? Is::kNo : held_by(*job, c.number, c.now);
  if (c.reply.word == "NOT_FOUND") {
    if (is_held == Is::kYes) fail(c, "the client holds it");
    return expect_changed({});
  }
  if (is_held == Is::kNo) fail(c, "the client does not hold it");
  expect_changed({id});
  if (job->cancel_asked) {
    if (c.reply.word != "CANCELLED" || c.reply.number != id) fail(c, "its cancel was asked for");
    if (history_.state().jobs.contains(id)) fail(c, "its record is still there");
    end_key(*job, Is::kNo);
    return remove(id);
  }
  job->story.push_back({.at = 0,
                        .ending = Ending::kFailed,
                        .worker = c.client.has_name ? name_of(c.number) : "",
                        .error = c.command.body.substr(0, queue::kMaxError)});
  follow_attempt(id, c.command.failure);
  const std::string attempts = std::to_string(job->attempts);
  const JobRecord& record = history_.state().jobs.at(id).record;
  const std::string wanted = job->burial != 0
                                 ? "DEAD " + attempts
                                 : "AGAIN " + attempts + " " + std::to_string(record.delay);
  if (c.reply.line != wanted) fail(c, "it must be " + wanted);
}

// --- The engine itself.

void Model::judge_what_was_due(const Times& times) {
  times_ = times;
  last_now_ = times.last;
  judge_own_steps(history_.schedule_steps().size());
  for (const JobId id : std::set<JobId>(history_.changed())) {
    if (!scheduled_.contains(id) || history_.before(id)) judge_own_change(id);
  }
  forget_pauses();
}

// Returns true if the engine has changed the job by itself: it ended, or an attempt failed.
bool Model::is_own_change(JobId id) const {
  const auto before = history_.before(id);
  if (!before) return false;
  if (is_expiry(id)) return true;
  const auto after = history_.state().jobs.find(id);
  if (after == history_.state().jobs.end())
    return before->extras->cancel_asked || is_retention_end(id);
  return after->second.record.extras->attempts == before->extras->attempts + 1;
}

bool Model::may_end(const Job& job, queue::Now now) const {
  if (job.entrusted != Is::kNo) return true;
  if (job.holder == 0) return job.cancel_asked;
  return end_is_stored(job, Ending::kTimedOut) && has_time(job, now) != Is::kYes;
}

void Model::judge_own_change(JobId id) {
  const std::uint64_t append = history_.changed_at(id);
  if (std::exchange(ends_judged_[id], append) == append) return;
  forget_room();  // it counted as reserved until that was stored
  const std::string who = "the engine has changed job " + std::to_string(id) + ", ";
  if (!jobs_.contains(id)) throw Violation(who + "which is not there");
  if (is_end_of_dead(id)) return judge_retention_end(id, who);
  is_expiry(id) ? judge_expiry(id, who) : judge_end_of_attempt(id, who);
}

void Model::judge_end_of_attempt(JobId id, const std::string& who) {
  Job* const job = find(id);
  if (!may_end(*job, times_.last))
    throw Violation(who + (history_.state().jobs.contains(id) ? "" : "which is gone, ") +
                    "and nothing is over: " + text_of(id, *job, times_.last));
  if (job->cancel_asked) {
    if (history_.state().jobs.contains(id)) throw Violation(who + "which is cancelled");
    end_key(*job, Is::kNo);
    return remove(id);
  }
  const auto story = history_.state().stories.find(id);
  if (story == history_.state().stories.end()) throw Violation(who + "which has no story");
  Attempt attempt = story->second.back();
  const bool is_timed_out = job->holder != 0 && attempt.ending == Ending::kTimedOut;
  if (!is_timed_out && !job->endings.contains(attempt.ending))
    throw Violation(who + "and its attempt has ended in another way");
  const bool has_name = attempt.worker == name_of(job->worker);
  if (!attempt.error.empty() || !(has_name || (attempt.worker.empty() && !job->worker_has_name)))
    throw Violation(who + "and its story has '" + attempt.worker + "' '" + attempt.error + "'");
  job->story.push_back(std::move(attempt));
  follow_attempt(id, {});
  job->freed_at = times_.last.mono_ns;
}

// An attempt has failed: it stands at the end of the story already.
void Model::follow_attempt(JobId id, const queue::Failure& failure) {
  Job& job = jobs_.at(id);
  const std::string what = "an attempt of job " + std::to_string(id) + " has failed, and ";
  const auto stored = history_.state().jobs.find(id);
  if (stored == history_.state().jobs.end()) throw Violation(what + "the job is gone");
  const JobRecord& record = stored->second.record;
  const RetryPolicy& policy = policy_of(job);
  ++job.attempts;
  job.priority = failure.priority.value_or(job.priority);
  let_go(id, job);
  expect_story(id, job);
  const std::uint32_t last = failure.max_attempts.value_or(policy.max_attempts);
  if (last > 0 && job.attempts >= last) {
    job.death = queue::Death::kAttempts;
    job.died = times_.first.mono_ns;
    job.burial = record.burial;
    if (job.burial == 0) throw Violation(what + "it was the last one");
    return follow_record(id, times_.last);
  }
  const std::uint64_t least = least_delay(policy, job.attempts);
  const std::uint64_t most = least + least * policy.jitter / 100;
  const bool fits = failure.delay ? record.delay == *failure.delay
                                  : record.delay >= least && record.delay <= most;
  if (!fits) throw Violation(what + "it waits for " + std::to_string(record.delay) + " ms");
  const std::uint64_t delay_ns = record.delay * kNsPerMs;
  if (delay_ns > 0 || record.lead != queue::kNoLead) job.moment = 0;
  job.delay_end = delay_ns == 0 ? 0 : times_.first.mono_ns + delay_ns;
  if (job.moment == 0) job.slack = kSlack;
  const std::uint64_t latest = std::max(times_.last.utc_ns, times_.first.utc_ns + delay_ns);
  if (record.due * kNsPerMs > latest + kSlack) throw Violation(what + "it is due too late");
  follow_record(id, times_.last);
}

// The last one has ended now.
void Model::expect_story(JobId id, Job& job) {
  if (job.story.size() > queue::kMaxStory) job.story.erase(job.story.begin());
  const std::string what = "the story of job " + std::to_string(id);
  const auto stored = history_.state().stories.find(id);
  if (stored == history_.state().stories.end()) throw Violation(what + " is not stored");
  const queue::UtcMs at = stored->second.back().at;
  if (at < times_.first.utc_ns / kNsPerMs || at > times_.last.utc_ns / kNsPerMs)
    throw Violation(what + " ends at another time, " + std::to_string(at));
  job.story.back().at = at;
  if (stored->second != job.story) throw Violation(what + " is another one");
}

bool Model::has_old_end(queue::Now now) const {
  constexpr std::uint64_t kLong = 2'000'000'000;
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& each) {
    const Job& job = each.second;
    if (job.entrusted == Is::kYes) return now.mono_ns > job.entrusted_at + kLong;
    return job.holder != 0 && job.entrusted == Is::kNo && end_is_stored(job, Ending::kTimedOut) &&
           now.mono_ns > job.deadline + kLong;
  });
}

// An expiry that has passed goes; if it passes meanwhile, the record says which came first.
void Model::revive(const Case& c, Job& job) const {
  if (job.burial == 0) return;
  job.burial = 0;
  if (job.death != queue::Death::kNone) job.attempts = 0;
  if (job.death == queue::Death::kExpired) {
    const auto stored = history_.state().jobs.find(job.record.id);
    const bool is_kept =
        stored != history_.state().jobs.end() && stored->second.record.extras->expires != 0;
    if (has_expired(job, c.since) || (has_expired(job, c.now) && !is_kept)) job.expires = 0;
  }
  job.death = queue::Death::kNone;
}

}  // namespace carillon::simulator
