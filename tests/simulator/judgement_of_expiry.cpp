// What becomes of jobs that expire, and when jobs are due that are spread (model.h).

#include <algorithm>
#include <string>

#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::AtExpiry;
using queue::JobId;
using queue::JobRecord;
using queue::Millis;
using queue::Now;
using queue::UtcMs;

namespace {

// The first whole millisecond that has not begun.
UtcMs next_ms(Now now) {
  return (now.utc_ns + kNsPerMs - 1) / kNsPerMs;
}

}  // namespace

// --- Expiry.

UtcMs Model::expiry_of(UtcMs expires, std::int64_t lead, Now now) const {
  constexpr std::int64_t kRounding = 2;
  if (expires == 0 || lead == queue::kNoLead) return expires;
  const auto ahead_ns = static_cast<std::int64_t>(now.utc_ns - history_.steady_ns(now));
  const auto ms = static_cast<std::int64_t>(kNsPerMs);
  const std::int64_t ahead = ahead_ns / ms - (ahead_ns % ms < 0 ? 1 : 0);
  if (ahead == lead) return expires;
  return static_cast<UtcMs>(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(expires) + ahead - lead + kRounding));
}

bool Model::has_expired(const Job& job, Now now) const {
  return job.expires != 0 && now.utc_ns >= expiry_of(job.expires, job.expires_lead, now) * kNsPerMs;
}

bool Model::has_surely_expired(const Job& job, Now now) const {
  if (!has_expired(job, now) || job.expires_lead != queue::kNoLead) return has_expired(job, now);
  // What the clock would show if it had not been set in the last minute, or set back only. It may
  // have been set by less than a second.
  constexpr std::uint64_t kDoubt = 59'000'000'000;
  constexpr std::uint64_t kSmall = 1'001'000'000;
  std::uint64_t least_ns = now.utc_ns;
  for (const Now& step : steps_seen_) {
    if (step.mono_ns + kDoubt < now.mono_ns) continue;
    least_ns = std::min(least_ns, step.utc_ns + (now.mono_ns - step.mono_ns));
  }
  const std::uint64_t small = kSmall * steps_seen_.size();
  return std::min(now.utc_ns, least_ns + small) >= job.expires * kNsPerMs;
}

// The put or patch has stored what it asked for. A duration counts from the command.
void Model::follow_expiry(const Case& c, Job& job, const JobRecord& record) const {
  const ExpiryOptions& asked = c.command.expiry;
  const UtcMs stored = record.extras->expires;
  if (asked.at) {
    job.expires = *asked.at == queue::kNeverExpires ? 0 : std::max<UtcMs>(*asked.at, 1);
    job.expires_lead = queue::kNoLead;
  } else if (asked.in) {
    if (stored < next_ms(c.since) + *asked.in || stored > next_ms(c.now) + *asked.in)
      fail(c, "it expires at another moment, " + std::to_string(stored));
    job.expires = stored;
    job.expires_lead = record.extras->expires_lead;
    if (job.expires_lead == queue::kNoLead) fail(c, "it expires at a moment");
  }
  const bool is_patch = c.command.verb == Verb::kPatchJob;
  if (is_patch || job.expires != 0) job.at_expiry = asked.then.value_or(job.at_expiry);
  if (asked.at || asked.in) job.has_seen_expiry = false;
}

// Returns true if the last change has ended the job because it has expired.
bool Model::is_expiry(JobId id) const {
  const auto before = history_.before(id);
  if (!before || before->extras->expires == 0) return false;
  const auto after = history_.state().jobs.find(id);
  if (after == history_.state().jobs.end()) {
    const auto job = jobs_.find(id);
    const bool has_seen = job != jobs_.end() && job->second.has_seen_expiry;
    return !before->extras->cancel_asked && before->extras->at_expiry == AtExpiry::kDrop &&
           (has_seen || last_now_.utc_ns >= expiry_of(before->extras->expires,
                                                      before->extras->expires_lead, last_now_) *
                                                kNsPerMs);
  }
  return after->second.record.extras->death == queue::Death::kExpired &&
         before->extras->death != queue::Death::kExpired;
}

void Model::judge_expiry(JobId id, const std::string& who) {
  Job& job = jobs_.at(id);
  // Its attempt may have ended just before.
  const JobRecord before = *history_.before(id);
  const bool has_failed = before.extras->attempts > job.attempts && may_end(job, times_.last);
  const std::string what = who + "as if it had expired: " + text_of(id, job, times_.last);
  if (!job.has_seen_expiry && !has_surely_expired(job, times_.last)) throw Violation(what);
  const bool is_held = job.holder != 0 && has_time(job, times_.last) == Is::kYes;
  if (job.burial != 0 || is_held) throw Violation(what);
  const bool is_due = job.has_seen_expiry || due(job, times_.last) != Is::kNo;
  if (!has_failed && (job.entrusted == Is::kYes || !is_due)) throw Violation(what);
  const auto after = history_.state().jobs.find(id);
  const bool is_gone = after == history_.state().jobs.end();
  if (is_gone != (job.at_expiry == AtExpiry::kDrop)) throw Violation(what + ", by another end");
  if (is_gone) {
    end_key(job, Is::kNo);
    return remove(id);
  }
  if (has_failed) {
    job.attempts = before.extras->attempts;
    job.priority = before.priority;
    job.story = history_.state().stories.at(id);
  }
  let_go(id, job);
  job.death = queue::Death::kExpired;
  job.died = times_.first.mono_ns;
  job.burial = after->second.record.burial;
  if (job.burial == 0) throw Violation(what + ", and is not buried");
  follow_record(id, times_.last);
}

bool Model::has_old_expiry(Now now) const {
  constexpr std::uint64_t kLong = 50'000'000;
  // A step forward has made jobs expire for an age of which not a millisecond has passed. For a
  // minute it is in doubt.
  constexpr std::uint64_t kDoubt = 61'000'000'000;
  if (clock_steps_ > 0 && now.mono_ns < clock_set_at_ + kDoubt) return false;
  const Now then{.utc_ns = now.utc_ns - kLong, .mono_ns = now.mono_ns - kLong};
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& each) {
    const Job& job = each.second;
    return has_expired(job, then) && job.burial == 0 && due(job, then) == Is::kYes &&
           (job.holder == 0 || has_time(job, then) == Is::kNo);
  });
}

// --- Spread.

// The job is due later by a part of the spread. The engine chooses which part, but all parts must
// occur.
void Model::follow_spread(const Case& c, Job& job, const JobRecord& record) {
  const Millis spread = c.command.spread;
  if (spread == 0) return;
  Millis later = 0;
  if (c.command.due_at) {
    if (record.due < *c.command.due_at || record.due >= *c.command.due_at + spread)
      fail(c, "it is due outside of its spread");
    later = record.due - *c.command.due_at;
    job.moment = record.due * kNsPerMs;
  } else {
    const UtcMs earliest = next_ms(c.now) + c.command.delay;
    if (record.due >= earliest + spread) fail(c, "it is due after its spread");
    later = record.due - std::min(record.due, earliest);
    job.delay_end = c.since.mono_ns + (c.command.delay + later) * kNsPerMs;
    if (c.command.delay + later == 0) job.delay_end = 0;
  }
  constexpr Millis kWide = 100;
  if (spread < kWide) return;
  constexpr std::uint64_t kMany = 100;
  spread_parts_ += static_cast<double>(later) / static_cast<double>(spread);
  const double mean = spread_parts_ / static_cast<double>(++spread_jobs_);
  if (spread_jobs_ > kMany && (mean < 0.3 || mean > 0.7))
    fail(c, "jobs are spread unevenly, on average to " + std::to_string(mean) + " of their spread");
}

}  // namespace carillon::simulator
