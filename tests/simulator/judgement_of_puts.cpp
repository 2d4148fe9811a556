// What the replies to puts and patches may say, and what they must have stored (model.h).

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;
using queue::OnConflict;

namespace {

bool same_due_time(const JobRecord& one, const JobRecord& other) {
  return one.due == other.due && one.lead == other.lead && one.era == other.era;
}

}  // namespace

// --- What is stored.

const JobRecord& Model::stored_record(JobId id) const {
  const auto found = history_.state().jobs.find(id);
  if (found == history_.state().jobs.end())
    throw Violation("job " + std::to_string(id) + " has no record");
  return found->second.record;
}

// The job's record, which was changed now, is as the model has the job.
void Model::follow_record(JobId id, queue::Now now) {
  follow_record(stored_record(id), now);
}

void Model::follow_record(const JobRecord& record, queue::Now now) {
  follow_all_but_due_time(record);
  const Job& job = jobs_.at(record.id);
  if (job.burial != 0) return;
  const std::uint64_t due_ns = record.due * kNsPerMs;
  if (due_ns < job.moment || due_ns - now.utc_ns + now.mono_ns < job.delay_end)
    throw Violation("the record of job " + std::to_string(record.id) + " has another due time");
}

void Model::follow_all_but_due_time(JobId id) {
  follow_all_but_due_time(stored_record(id));
}

void Model::follow_all_but_due_time(const JobRecord& record) {
  const JobId id = record.id;
  Job& job = jobs_.at(id);
  const auto differs = [id](const std::string& what) {
    throw Violation("the record of job " + std::to_string(id) + " has another " + what);
  };
  const auto& tubes = history_.state().tubes;
  const auto lane = tubes.find(record.tube);
  if (lane != tubes.end()) {  // or the job is gone, and was the last one of its tube
    const bool has_group = lane->second.head != 0;
    const queue::TubeRecord& tube = has_group ? tubes.at(lane->second.head) : lane->second;
    if (tube.name != job.tube) differs("tube");
    if ((has_group ? lane->second.name : "") != job.group) differs("group");
  }
  if (record.priority != job.priority) differs("priority");
  if (record.ttr != job.ttr) differs("ttr");
  if (record.burial != job.burial) differs("burial");
  if (record.extras->key != job.key) differs("key");
  if (record.extras->key_window != job.key_window) differs("window of its key");
  if (record.extras->retry != job.retry) differs("policy");
  if (record.extras->attributes != job.attributes) differs("attributes");
  if (record.extras->attempts != job.attempts) differs("number of failed attempts");
  if (record.extras->death != job.death) differs("death");
  if (record.extras->expires != job.expires) differs("expiry");
  if (job.expires != 0 && record.extras->expires_lead != job.expires_lead)
    differs("lead of its expiry");
  if (record.extras->at_expiry != job.at_expiry) differs("end at its expiry");
  if (record.extras->cancel_asked != job.cancel_asked) differs("cancel");
  if (record.extras->has_story == job.story.empty()) differs("story");
  job.record = record;
  note_change(job);
}

// `given`: the id under which the large body has come.
void Model::expect_new_body(const Case& c, JobId given, JobId id) {
  const auto& stored = history_.state().jobs.at(id);
  const JobId body = stored.record.body_id();
  const bool is_large = c.command.body.size() > queue::kBodyPiece;
  if (is_large && body != given) fail(c, "its body came under the id " + std::to_string(given));
  if (!is_large && (body <= last_given_ || body <= last_told_))
    fail(c, "the id " + std::to_string(body) + " was given before");
  last_given_ = std::max(last_given_, body);
  if (stored.body != c.command.body) fail(c, "another body is stored");
}

// `delay`: in ms from now, if the job has no moment.
void Model::expect_due(const Case& c, const Job& job, const JobRecord& record,
                       queue::Millis delay) const {
  const std::uint64_t due = job.moment != 0 ? job.moment : c.since.utc_ns + delay * kNsPerMs;
  if (record.due * kNsPerMs > std::max(due, c.now.utc_ns) + kSlack)
    fail(c, "its due time is too late");
}

// --- Puts.

Model::Job Model::as_put(const Case& c) const {
  const std::uint64_t delay_ns = c.command.delay * kNsPerMs;
  queue::RetryPolicy retry;
  c.command.policy.apply(retry);
  retry.counts_empty = c.command.policy.names_any() && retry == queue::RetryPolicy();
  return {.tube = c.client.tube_in_use,
          .group = c.command.group,
          .priority = c.command.priority,
          .moment = c.command.due_at.value_or(0) * kNsPerMs,
          .delay_end = delay_ns == 0 ? 0 : c.since.mono_ns + delay_ns,
          .ttr = std::clamp(c.command.ttr, queue::kMinTtr, queue::kMaxTtr),
          .key = c.command.key,
          .key_window = c.command.key.empty() ? 0 : c.command.key_window,
          .retry = retry,
          .attributes = c.command.attributes.value_or("")};
}

void Model::follow_burial(const Case& c, Job& job, const JobRecord& record) const {
  if (!c.command.buried) return;
  if (record.burial == 0) fail(c, "it is not buried");
  job.burial = record.burial;
}

// `body`: the id under which its large body has come.
void Model::judge_put(const Case& c, JobId body) {
  // A large body may have been too fast before it came, when the tube still took puts.
  const bool was_too_fast = c.reply.word == "TOO_FAST" && c.command.body.size() > queue::kBodyPiece;
  const bool drains = !was_too_fast && drained_.contains(c.client.tube_in_use);
  // A put that gives way adds nothing. It gives way to no job that is ending.
  const auto owner = keys_.find({c.client.tube_in_use, c.command.key});
  const bool is_ending = owner != keys_.end() && (jobs_.at(owner->second).cancel_asked ||
                                                  has_expired(jobs_.at(owner->second), c.now));
  const bool gives_way_here = drains && c.command.gives_way() && owner != keys_.end() && !is_ending;
  const bool tells_key = gives_way_here || (drains && c.reply.word == "EXISTS");
  if ((drains && !tells_key) != (c.reply.line == "DRAINING"))
    fail(c, drains ? "the tube takes no puts" : "the tube takes puts");
  if (drains && !tells_key) return expect_changed({});
  if (c.reply.word == "TOO_FAST") {
    if (c.command.gives_way() && keys_.contains({c.client.tube_in_use, c.command.key}))
      fail(c, "it adds nothing");
    return judge_too_fast(c, 1);
  }
  const bool is_done = c.reply.word == "INSERTED" || c.reply.word == "REPLACED";
  expect_changed(is_done ? std::set{c.reply.number} : std::set<JobId>{});
  follow_put(c, body);
}

// So many jobs at the most need a token. A large body is refused before it comes, by the rate that
// held then.
bool Model::may_be_too_fast(const Case& c, std::uint64_t jobs) const {
  const std::string& tube = c.client.tube_in_use;
  if (c.command.body.size() > queue::kBodyPiece && rated_.contains(tube)) return true;
  return !put_rates_.lets_put(tube, jobs, c.since);
}

void Model::judge_too_fast(const Case& c, std::uint64_t jobs) {
  expect_changed({});
  if (!may_be_too_fast(c, jobs)) fail(c, "the rate lets it in");
  if (c.reply.number == 0) fail(c, "it is told to wait for nothing");
}

// The records that it has changed are known.
void Model::follow_put(const Case& c, JobId body) {
  if (c.reply.word == "INSERTED" || c.reply.word == "REPLACED")
    put_rates_.start(c.client.tube_in_use, 0, c.since, c.now);
  if (c.reply.word == "INSERTED") return judge_inserted(c, body);
  if (c.command.key.empty()) fail(c, "that is no answer to a put");
  judge_conflict(c, body);
}

void Model::judge_inserted(const Case& c, JobId body) {
  const JobId id = c.reply.number;
  expect_new_body(c, body, id);
  const JobRecord& record = history_.state().jobs.at(id).record;
  if (record.body_id() != id) fail(c, "its body has another id");
  if (!c.command.key.empty()) expect_free_key(c);
  Job job = as_put(c);
  follow_expiry(c, job, record);
  follow_spread(c, job, record);
  follow_burial(c, job, record);
  expect_due(c, job, record, c.command.delay + c.command.spread);
  add(id, std::move(job));
  follow_record(id, c.now);
  expect_room_for_group(c, jobs_.at(id));
}

// Either nobody has had the key, or it was forgotten, or its time is over, or that does not matter.
void Model::expect_free_key(const Case& c) const {
  const auto owner = keys_.find({c.client.tube_in_use, c.command.key});
  if (owner != keys_.end()) fail(c, "job " + std::to_string(owner->second) + " has the key");
  const auto ended = history_.key_before(c.client.tube_in_use, c.command.key);
  if (ended && c.command.gives_way() && history_.steady_ns(c.now) < ended->until * kNsPerMs)
    fail(c, "job " + std::to_string(ended->id) + " had the key, and its window is not over");
}

void Model::judge_conflict(const Case& c, JobId body) {
  const auto owner = keys_.find({c.client.tube_in_use, c.command.key});
  if (owner == keys_.end()) return judge_ended_key(c);
  const JobId id = owner->second;
  const Is is_held = held(jobs_.at(id), c.now);
  if (c.reply.number != id) fail(c, "job " + std::to_string(id) + " has the key");
  const Job& job = jobs_.at(id);
  const bool is_ending = job.cancel_asked || has_expired(job, c.now);
  if (c.reply.word == "IS_RESERVED" && is_ending) return;
  if (c.command.gives_way()) {
    if (c.reply.word != "EXISTS") fail(c, "that is no answer to a put which gives way");
    return expect_owner(c, jobs_.at(id));
  }
  if (c.reply.word == "IS_RESERVED") {
    if (is_held == Is::kNo) fail(c, "nobody holds job " + std::to_string(id));
    return;
  }
  if (c.reply.word != "REPLACED") fail(c, "that is no answer to a put which replaces");
  if (is_held == Is::kYes) fail(c, "it has replaced " + text_of(id, jobs_.at(id), c.now));
  replace(c, id, body);
}

// The reply tells the state of the job that has the key.
void Model::expect_owner(const Case& c, const Job& job) const {
  const std::string_view state = c.reply.line.substr(c.reply.line.rfind(' ') + 1);
  const bool is_dead = job.death != queue::Death::kNone;
  const bool may_be =
      job.burial != 0       ? state == (is_dead ? "dead" : "buried")
      : state == "reserved" ? held(job, c.now) != Is::kNo && !job.cancel_asked
      : state == "delayed"
          ? delayed(job, c) != Is::kNo
          : state == "ready" && (may_call_ready(c) || counts_as_ready(job, c.now) != Is::kNo);
  if (!may_be) fail(c, "it is in another state");
}

void Model::judge_ended_key(const Case& c) {
  if (c.reply.line.substr(c.reply.line.rfind(' ') + 1) != "done") fail(c, "the job is gone");
  if (c.reply.word != "EXISTS" || !c.command.gives_way()) fail(c, "no job has the key");
  const auto ended = history_.key_before(c.client.tube_in_use, c.command.key);
  if (!ended || ended->id != c.reply.number) fail(c, "that job did not have the key");
  if (history_.steady_ns(c.since) >= ended->until * kNsPerMs)
    fail(c, "the window of the key is over");
}

// The job is as if it was put now, apart from its id, and perhaps its due time.
void Model::replace(const Case& c, JobId id, JobId body) {
  expect_new_body(c, body, id);
  const JobRecord& record = history_.state().jobs.at(id).record;
  if (record.body_id() == id) fail(c, "its body has the id of the one before");
  if (record.history != queue::JobHistory{}) fail(c, "its counts do not begin anew");
  Job& job = jobs_.at(id);
  let_go(id, job);
  Job next = as_put(c);
  next.position = job.position;
  const bool may_keep = job.burial == 0 && c.command.on_conflict != OnConflict::kReplace;
  const bool keeps = may_keep && same_due_time(*history_.before(id), record);
  follow_expiry(c, next, record);
  follow_burial(c, next, record);
  if (!keeps) follow_spread(c, next, record);
  if (may_keep) expect_right_due_time(c, job, next, keeps);
  if (keeps) {
    next.moment = job.moment;
    next.delay_end = job.delay_end;
    next.slack = job.slack;
  } else {
    expect_due(c, next, record, c.command.delay + c.command.spread);
  }
  job = std::move(next);
  if (keeps) return follow_all_but_due_time(id);
  follow_record(id, c.now);
}

void Model::expect_right_due_time(const Case& c, const Job& job, const Job& next,
                                  bool keeps) const {
  const auto left = [&c](const Job& of) {
    const std::uint64_t moment = std::max(of.moment, c.now.utc_ns) - c.now.utc_ns;
    return std::max(moment, std::max(of.delay_end, c.now.mono_ns) - c.now.mono_ns);
  };
  const bool always = c.command.on_conflict == OnConflict::kKeepDue;
  if (!keeps && (always || left(job) > left(next) + kSlack)) fail(c, "it is due anew");
  if (keeps && !always && left(job) + job.slack + kSlack < left(next))
    fail(c, "it is due earlier than it was asked for");
}

// --- Patches.

void Model::judge_patch(const Case& c) {
  const std::optional<JobId> id = expect_named(c, "PATCHED");
  if (!id) return expect_changed({});
  const auto before = history_.before(*id);
  if (!before) fail(c, "nothing is stored");
  // Its due time alone may be another one.
  expect_changed(history_.changed().empty() ? std::set<JobId>{} : std::set{*id});
  const JobRecord& record = history_.state().jobs.at(*id).record;
  Job& job = jobs_.at(*id);
  let_go(*id, job);
  const queue::Patch& patch = c.command.patch;
  job.priority = patch.priority.value_or(job.priority);
  job.ttr = patch.ttr.value_or(job.ttr);
  job.attributes = c.command.attributes.value_or(job.attributes);
  if (patch.due_at || patch.due_in) revive(c, job);
  follow_expiry(c, job, record);
  if (c.command.has_body) expect_new_body(c, 0, *id);
  if (!c.command.has_body && record.body_id() != before->body_id()) fail(c, "its body has gone");
  if (!patch.due_at && !patch.due_in) {
    if (!same_due_time(*before, record)) fail(c, "it has another due time");
    return follow_all_but_due_time(*id);
  }
  const std::uint64_t delay_ns = patch.due_in.value_or(0) * kNsPerMs;
  job.moment = patch.due_at.value_or(0) * kNsPerMs;
  job.delay_end = delay_ns == 0 ? 0 : c.since.mono_ns + delay_ns;
  job.slack = kSlack;
  expect_due(c, job, record, patch.due_in.value_or(0));
  follow_record(*id, c.now);
}

}  // namespace carillon::simulator
