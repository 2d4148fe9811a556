// What the replies to cancelJobs, retryJobs, moveJobs and spreadJobs may say, and what they may
// change (model.h).

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "simulator/model.h"
#include "simulator/requests.h"

namespace carillon::simulator {

using queue::bit_of;
using queue::JobId;
using queue::JobRecord;
using queue::JobState;

// --- Which jobs a filter means.

Model::Is Model::is_in(const Job& job, std::uint32_t states, const Case& c) const {
  const auto in = [states](JobState state) { return (states & bit_of(state)) != 0; };
  if (job.burial != 0) {
    const bool is_dead = job.death != queue::Death::kNone;
    const bool fits = in(JobState::kBuried) || (is_dead && (states & queue::kDeadJobs) != 0);
    return fits ? Is::kYes : Is::kNo;
  }
  Is most = Is::kNo;
  Is least = Is::kYes;
  const auto look = [&](JobState state, Is is) {
    if (in(state)) most = std::max(most, is);
    if (!in(state) && is != Is::kNo) least = Is::kMaybe;
  };
  look(JobState::kReserved, held(job, c.now));
  look(JobState::kDelayed, delayed(job, c));
  look(JobState::kReady, may_call_ready(c) ? Is::kMaybe : counts_as_ready(job, c.now));
  return std::min(most, least);
}

Model::Is Model::is_meant(const Job& job, const JobRecord& record, const Case& c) const {
  const queue::JobFilter& filter = c.command.filter;
  const bool fits = record.due >= filter.due_from && record.due < filter.due_before &&
                    job.key.starts_with(filter.key_prefix) &&
                    (filter.group.empty() || job.group == filter.group);
  return fits ? is_in(job, filter.states, c) : Is::kNo;
}

// --- What was changed since the part before.

void Model::follow_bulk(const Case& c) {
  std::set<JobId> changed = history_.changed();
  if (c.command.verb == Verb::kSpreadJobs)
    changed.insert(history_.due_changed().begin(), history_.due_changed().end());
  for (const JobId id : changed) {
    const bool is_known = jobs_.contains(id) && history_.before(id);
    if (is_known && follow_changed(c, id)) continue;
    if (!history_.changed().contains(id)) continue;  // it was stored anew, as it was
    if (is_own_change(id)) {
      judge_own_change(id);
    } else if (!scheduled_.contains(id) || history_.before(id)) {
      fail(c, "it has changed job " + std::to_string(id));
    }
  }
}

// The engine may have ended an attempt, or buried a job that had expired, before the command came
// to the job. `before`: as the job was then.
void Model::follow_end_before(JobId id, const JobRecord& before) {
  Job& job = jobs_.at(id);
  const bool has_failed = before.extras->attempts == job.attempts + 1 && may_end(job, times_.last);
  const bool is_held = job.holder != 0 && has_time(job, times_.last) == Is::kYes;
  const bool died = before.extras->death == queue::Death::kExpired &&
                    job.death != queue::Death::kExpired && !is_held &&
                    (job.has_seen_expiry || has_expired(job, times_.last));
  if (!has_failed && !died) return;
  let_go(id, job);
  job.freed_at = times_.last.mono_ns;
  job.attempts = before.extras->attempts;
  job.priority = before.priority;
  job.death = before.extras->death;
  job.died = times_.first.mono_ns;
  job.burial = before.burial;
  job.record = before;
  const auto story = history_.state().stories.find(id);
  if (story != history_.state().stories.end()) job.story = story->second;
  if (job.burial == 0) recover_due_time(job);
}

// Returns false if it was the engine that has changed the job.
bool Model::follow_changed(const Case& c, JobId id) {
  const JobRecord before = *history_.before(id);
  follow_end_before(id, before);
  const auto after = history_.state().jobs.find(id);
  const bool is_gone = after == history_.state().jobs.end();
  const bool is_own = is_own_change(id);
  if (c.command.verb == Verb::kRetryJobs) {
    const bool was_kicked = before.history.kicks > jobs_.at(id).record.history.kicks;
    if (is_own && !was_kicked) return false;
    expect_meant(c, id, before);
    retry(c, id);
    if (!is_own) follow_record(id, c.now);
    return !is_own;  // then the engine has ended it
  }
  if (c.command.verb == Verb::kCancelJobs) {
    if (!is_gone) return false;
    const Job& job = jobs_.at(id);
    const bool may_be_meant = !c.command.dry_run && job.tube == c.command.tube &&
                              held(job, c.now) != Is::kYes && is_meant(job, before, c) != Is::kNo;
    if (is_own && !may_be_meant) return false;
    expect_meant(c, id, before);
    note_changed(c, id);
    if (is_own) {  // then it may have ended by itself
      --c.client.bulk_changed;
      ++c.client.bulk_maybe;
    }
    end_key(jobs_.at(id), Is::kNo);
    remove(id);
    return true;
  }
  if (c.command.verb == Verb::kSpreadJobs) return follow_spread_out(c, id, before);
  if (is_gone && !is_own) return false;
  const JobRecord& moved = is_own ? before : after->second.record;
  if (moved.tube == jobs_.at(id).record.tube) return false;
  expect_meant(c, id, before);
  const bool is_same =
      moved.due == before.due && moved.lead == before.lead && moved.burial == before.burial;
  if (!is_same)
    fail(c, "job " + std::to_string(id) + " was moved, and has another due time or burial");
  note_changed(c, id);
  move(c, id, moved);
  if (!is_own) follow_all_but_due_time(id);
  return !is_own;  // then the engine has ended it where it is now
}

void Model::note_changed(const Case& c, JobId id) {
  ++c.client.bulk_changed;
  if (!is_own_change(id))
    c.client.bulk_append = std::max(c.client.bulk_append, history_.changed_at(id));
}

void Model::expect_meant(const Case& c, JobId id, const JobRecord& before) const {
  const Job& job = jobs_.at(id);
  const std::string what = "it has changed " + text_of(id, job, c.now);
  if (c.command.dry_run) fail(c, what + ", and was to change nothing");
  if (job.tube != c.command.tube) fail(c, what + ", which is in another tube");
  if (held(job, c.now) == Is::kYes) fail(c, what + ", which is reserved");
  // If the engine has ended it since, `before` is what the command has made of it, and the due time
  // that the command has seen is known if the wall clock was never set.
  const bool has_ended = c.command.verb != Verb::kCancelJobs && is_own_change(id);
  Is meant = is_meant(job, has_ended ? job.record : before, c);
  if (has_ended && clock_steps_ > 0) meant = is_in(job, c.command.filter.states, c);
  if (meant == Is::kNo) fail(c, what + ", which was not meant");
}

void Model::retry(const Case& c, JobId id) {
  Job& job = jobs_.at(id);
  note_changed(c, id);
  let_go(id, job);
  revive(c, job);
  job.attempts = 0;
  job.moment = job.delay_end = 0;
}

// The job keeps everything except its tube. `moved`: its record as it was stored then.
void Model::move(const Case& c, JobId id, const JobRecord& moved) {
  let_go(id, jobs_.at(id));
  Job job = jobs_.at(id);
  remove(id);
  job.tube = c.command.to;
  job.record = moved;
  add(id, std::move(job));
}

// --- The reply.

void Model::judge_bulk(const Case& c) {
  // A job that the engine has ended may have been left when its end was due.
  const auto has_ended = [this](JobId id) {
    const auto job = jobs_.find(id);
    const auto before = history_.before(id);
    return job != jobs_.end() && before &&
           (is_own_change(id) || before->extras->attempts != job->second.attempts ||
            before->extras->death != job->second.death);
  };
  const auto& all = history_.changed();
  const auto ended = static_cast<std::uint64_t>(std::count_if(all.begin(), all.end(), has_ended));
  follow_bulk(c);
  if (c.reply.word == "ACCEPTED") return begin_long_change(c);
  const std::uint64_t changed = std::exchange(c.client.bulk_changed, 0);
  const std::uint64_t maybe = std::exchange(c.client.bulk_maybe, 0);
  const bool is_whole = !std::exchange(c.client.bulk_in_parts, false) && c.reply.word == "OK";
  if (c.reply.line == "NOT_FOUND") {
    if (exists(c.command.tube)) fail(c, "the tube is there");
    return;
  }
  if (c.reply.word != "OK") fail(c, "that is no answer to it");
  const boost::json::object answer = object_of(c.reply);
  const std::uint64_t told = number_in(answer, "changed");
  const std::string next = next_page_of(answer);
  if (told > c.command.bound) fail(c, "these are too many");
  if (!c.command.dry_run && (told < changed || told > changed + maybe))
    fail(c, "it has changed " + std::to_string(changed));
  if (answer.contains("error")) {
    if (!c.excuses.fails && !may_refuse(c)) fail(c, "it has no reason to end");
    return;
  }
  if (!next.empty()) next_of_many_ = from_there_on(c.command, next);
  if (!is_whole || !next.empty() || c.command.goes_on || c.excuses.fails) return;
  // Those that were changed now are not among these: the engine may have ended them since.
  std::uint64_t must = 0;
  std::uint64_t may = 0;
  std::uint64_t most_left = 0;
  for (const JobId id : jobs_in(c.command.tube)) {
    const Job& job = jobs_.at(id);
    const bool spreads = c.command.verb == Verb::kSpreadJobs;
    Is meant = is_meant(job, history_.state().jobs.at(id).record, c);
    const bool is_taken = c.command.verb == Verb::kMoveJobs && !job.key.empty() &&
                          keys_.contains({c.command.to, job.key});
    const Is is_held = held(job, c.now);
    // Those that would have expired are left.
    if (spreads) most_left += meant != Is::kNo && job.expires != 0 ? 1 : 0;
    if (spreads) meant = std::min(meant, may_be_spread(job, id, c));
    const bool is_left = c.command.dry_run || !history_.changed().contains(id);
    must += meant == Is::kYes && is_held == Is::kNo && !is_taken && is_left ? 1 : 0;
    may += meant != Is::kNo && is_held != Is::kYes && !is_taken ? 1 : 0;
    most_left += meant != Is::kNo && (is_held != Is::kNo || is_taken) ? 1 : 0;
  }
  const bool is_right = c.command.dry_run ? told >= must && told <= may : must == 0;
  if (!is_right) fail(c, "of those that are meant there are " + std::to_string(must));
  most_left += maybe + ended;
  if (number_in(answer, "left") > most_left)
    fail(c, "it can have left " + std::to_string(most_left));
}

// --- A change that goes on without its client.

void Model::begin_long_change(const Case& c) {
  const std::uint64_t id = number_in(object_of(c.reply), "id");
  LongChange change{.command = c.command, .client = {}};
  change.client.bulk_changed = std::exchange(c.client.bulk_changed, 0);
  change.client.bulk_maybe = std::exchange(c.client.bulk_maybe, 0);
  if (!long_changes_.emplace(id, std::move(change)).second) fail(c, "the number was given before");
}

void Model::judge_long_change(std::uint64_t id, std::optional<std::uint64_t> changed,
                              const Times& times, const Excuses& excuses) {
  static const Reply kNone{};
  LongChange& change = long_changes_.at(id);
  const Case c{0, change.client, change.command, kNone, times.first, times.last, excuses};
  times_ = times;
  last_now_ = times.last;
  judge_own_steps(history_.schedule_steps().size());
  judge_ends_of_dead(c);
  follow_bulk(c);
  if (!changed) return;
  change.changed = changed;
  const std::uint64_t most = change.client.bulk_changed + change.client.bulk_maybe;
  if (!change.command.dry_run && (*changed < change.client.bulk_changed || *changed > most))
    fail(c, "it has changed " + std::to_string(change.client.bulk_changed));
}

void Model::judge_show_change(const Case& c) {
  expect_changed({});
  const auto change = long_changes_.find(c.command.id);
  if (c.reply.line == "NOT_FOUND") {
    if (change != long_changes_.end()) fail(c, "it is there");
    return;
  }
  if (c.reply.word != "OK" || change == long_changes_.end()) fail(c, "that is no answer to it");
  const boost::json::object answer = object_of(c.reply);
  const bool is_running = text_in(answer, "state") == "running";
  if (is_running == change->second.changed.has_value()) fail(c, "it is the other way round");
  if (!is_running && number_in(answer, "changed") != *change->second.changed)
    fail(c, "it has changed " + std::to_string(*change->second.changed));
}

const std::set<JobId>& Model::jobs_in(const std::string& tube) const {
  static const std::set<JobId> kNone;
  const auto found = tubes_.find(tube);
  return found == tubes_.end() ? kNone : found->second;
}

}  // namespace carillon::simulator
