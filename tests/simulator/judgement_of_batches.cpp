// What the replies to the commands for many jobs may say: put-jobs, reserve-jobs, delete-jobs and
// release-jobs (model.h).

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;
using queue::KeyRecord;
using queue::OnConflict;

namespace {

std::uint64_t next_ms(std::uint64_t ns) {
  return (ns + kNsPerMs - 1) / kNsPerMs;
}

// The lines of the answer that a token has.
std::string lines_of(const KeyRecord& token) {
  using Result = queue::PutOutcome::Result;
  constexpr std::array<std::string_view, 7> kOwners = {"",        " delayed", " ready", " reserved",
                                                       " buried", " dead",    " done"};
  std::string lines;
  for (const queue::PutRun& run : token.batch->puts) {
    const auto result = static_cast<Result>(run.result);
    const char* const word = result == Result::kInserted   ? "INSERTED "
                             : result == Result::kReplaced ? "REPLACED "
                                                           : "EXISTS ";
    for (std::uint32_t n = 0; n < run.jobs; ++n)
      lines.append(word + std::to_string(run.first + n)).append(kOwners.at(run.owner)) += "\r\n";
  }
  return lines;
}

}  // namespace

// --- put-jobs

void Model::judge_put_jobs(const Case& c) {
  const Command& batch = c.command;
  if (!batch.once.empty()) batch_ = batch;
  const auto token = batch.once.empty() ? std::nullopt : history_.key_before({}, batch.once);
  const bool may_count = token && history_.steady_ns(c.since) < token->until * kNsPerMs;
  const bool must_count = token && history_.steady_ns(c.now) < token->until * kNsPerMs;
  const bool is_other = c.reply.line == "OTHER_BATCH";
  if (is_other || c.reply.word == "ALREADY") {
    expect_changed({});
    if (!may_count) fail(c, "no batch was put with the token");
    const auto known = batches_.find(token->batch->fingerprint);
    const bool same = known != batches_.end() && known->second == batch.batch;
    if (same == is_other) fail(c, "it is the other way round");
    if (same && c.reply.text != lines_of(*token)) fail(c, "the first answer was another one");
    return;
  }
  if (must_count) fail(c, "a batch was put with the token");
  const bool drains = drained_.contains(c.client.tube_in_use);
  if (c.reply.line == "DRAINING") {
    if (!drains) fail(c, "the tube takes puts");
    const auto is_there = [&](const Command& job) {
      const auto owner = keys_.find({c.client.tube_in_use, job.key});
      if (owner == keys_.end() || !job.gives_way()) return false;
      const Job& met = jobs_.at(owner->second);
      return !met.cancel_asked && !has_expired(met, c.now);
    };
    if (std::all_of(batch.jobs.begin(), batch.jobs.end(), is_there)) fail(c, "it adds nothing");
    return expect_changed({});
  }
  if (c.reply.word == "TOO_FAST") {
    if (drains) fail(c, "the tube takes no puts");
    return judge_too_fast(c, batch.jobs.size());
  }
  if (c.reply.word == "REFUSED") return judge_refused_batch(c);
  if (c.reply.word != "JOBS" || c.reply.number != batch.jobs.size())
    fail(c, "that is no answer to it");
  const bool adds = c.reply.text.find("INSERTED") != std::string_view::npos ||
                    c.reply.text.find("REPLACED") != std::string_view::npos;
  if (drains && adds) fail(c, "the tube takes no puts");
  follow_batch(c);
}

void Model::follow_batch(const Case& c) {
  const Command& batch = c.command;
  const std::vector<Reply> answers = replies_in(c.reply.text);
  std::set<JobId> changed;
  for (const Reply& answer : answers) {
    if (answer.word == "INSERTED" || answer.word == "REPLACED") changed.insert(answer.number);
  }
  expect_changed(changed);
  for (std::size_t n = 0; n < answers.size(); ++n) {
    const Command& job = batch.jobs[n];
    const Case one{c.number, c.client, job, answers[n], c.since, c.now, c.excuses};
    const bool is_put = changed.contains(answers[n].number);
    if (!is_put && (answers[n].word != "EXISTS" || job.on_conflict != OnConflict::kIgnore))
      fail(one, "it was in the way of the batch");
    follow_put(one, 0);
  }
  if (batch.once.empty()) return;
  const auto token = history_.state().find_key(queue::kTokens, batch.once);
  if (!token || token->until < next_ms(history_.steady_ns(c.since)) + batch.window ||
      token->until > next_ms(history_.steady_ns(c.now)) + batch.window)
    fail(c, "its token is not stored, or for another time");
  if (lines_of(*token) != c.reply.text) fail(c, "its token has another answer");
  batches_[token->batch->fingerprint] = batch.batch;
}

// The reply: REFUSED, the number of a job, and as the job alone would be answered.
void Model::judge_refused_batch(const Case& c) {
  expect_changed({});
  const std::size_t number = c.reply.number;
  if (number == 0 || number > c.command.jobs.size()) fail(c, "there is no such job");
  const auto in_the_way = [&](const Command& job) {
    const auto owner = keys_.find({c.client.tube_in_use, job.key});
    if (job.key.empty() || job.on_conflict == OnConflict::kIgnore) return false;
    if (owner != keys_.end())
      return job.gives_way() || held(jobs_.at(owner->second), c.now) == Is::kYes;
    const auto ended = history_.key_before(c.client.tube_in_use, job.key);
    return job.gives_way() && ended && history_.steady_ns(c.now) < ended->until * kNsPerMs;
  };
  for (std::size_t n = 0; n + 1 < number; ++n) {
    if (in_the_way(c.command.jobs[n]))
      fail(c, "job " + std::to_string(n + 1) + " was in the way before");
  }
  const std::string why(c.reply.line.substr(c.reply.line.find(' ', c.reply.word.size() + 1) + 1));
  if (why == "TOO_MANY") {
    if (number <= put_rates_.most(c.client.tube_in_use)) fail(c, "the rate lets so many in");
    return;
  }
  const std::string line = why + "\r\n";
  std::string_view bytes = line;
  const auto answer = take_reply(bytes);
  const Command& job = c.command.jobs[number - 1];
  const bool may_be =
      answer && ((answer->word == "EXISTS" && job.on_conflict == OnConflict::kReject) ||
                 answer->word == "IS_RESERVED");
  if (!may_be || job.key.empty()) fail(c, "nothing was in the way");
  follow_put({c.number, c.client, job, *answer, c.since, c.now, c.excuses}, 0);
}

// --- delete-jobs and release-jobs

// What they have done since the part before: other commands may come in between.
void Model::follow_each(const Case& c) {
  const std::set<JobId> ids(c.command.ids.begin(), c.command.ids.end());
  for (const JobId id : std::set<JobId>(history_.changed())) {
    if (ids.contains(id) && follow_one(c, id)) continue;
    if (is_own_change(id)) {
      judge_own_change(id);
    } else if (!scheduled_.contains(id) || history_.before(id)) {
      fail(c, "it has changed job " + std::to_string(id));
    }
  }
}

// Returns false if it was the engine that has changed the job.
bool Model::follow_one(const Case& c, JobId id) {
  Job* const job = find(id);
  if (job == nullptr) return false;
  const bool releases = c.command.verb == Verb::kReleaseJobs;
  const bool is_gone = !history_.state().jobs.contains(id);
  const bool is_own = is_own_change(id);
  const bool holds = held_by(*job, c.number, c.now) != Is::kNo;
  if (is_gone && (!releases || job->cancel_asked)) {
    const bool may = holds || (!releases && held(*job, c.now) != Is::kYes);
    if (!may && is_own) return false;
    if (!may) fail(c, "another client holds job " + std::to_string(id));
    (is_own ? c.client.each_maybe : c.client.each_done).insert(id);
    end_key(*job, releases ? Is::kNo : is_own ? Is::kMaybe : was_done(c, *job));
    remove(id);
    return true;
  }
  if (!releases) return false;
  const bool was_released = history_.before(id)->history.releases > job->record.history.releases;
  if (is_own && !was_released) return false;
  if (!holds) fail(c, "the client does not hold job " + std::to_string(id));
  c.client.each_done.insert(id);
  if (!is_own) {
    follow_release(c, id, c.command.patch.priority.value_or(job->priority));
    return true;
  }
  // Then the engine has ended it.
  let_go(id, *job);
  job->priority = c.command.patch.priority.value_or(job->priority);
  job->moment = job->delay_end = 0;
  return false;
}

void Model::judge_each(const Case& c) {
  follow_each(c);
  const bool releases = c.command.verb == Verb::kReleaseJobs;
  const auto done = std::exchange(c.client.each_done, {});
  const auto maybe = std::exchange(c.client.each_maybe, {});
  const bool is_whole = !std::exchange(c.client.each_in_parts, false);
  const std::vector<Reply> answers = replies_in(c.reply.text);
  if (c.reply.word != "JOBS" || answers.size() != c.command.ids.size())
    fail(c, "that is no answer to it");
  std::set<JobId> told;
  for (std::size_t n = 0; n < answers.size(); ++n) {
    const JobId id = c.command.ids[n];
    const Reply& answer = answers[n];
    const std::string what = "'" + std::string(answer.line) + "': ";
    if (answer.number != id) fail(c, what + "it must be about job " + std::to_string(id));
    if (answer.word == "INTERNAL_ERROR" && c.excuses.fails) continue;
    if (answer.word == (releases ? "RELEASED" : "DELETED")) {
      if (!told.insert(id).second || !(done.contains(id) || maybe.contains(id)))
        fail(c, what + "that was not done");
      continue;
    }
    if (answer.word != "NOT_FOUND") fail(c, what + "that is no answer to it");
    const Job* const job = find(id);
    // A schedule may have put it after the search.
    const bool is_new = history_.changed().contains(id) && !history_.before(id);
    if (!is_whole || job == nullptr || told.contains(id) || is_new) continue;
    const bool holds = held_by(*job, c.number, c.now) == Is::kYes;
    const bool is_free = held(*job, c.now) == Is::kNo;
    if (holds || (!releases && is_free)) fail(c, what + "it is there");
  }
  for (const JobId id : done) {
    if (!told.contains(id) && !c.excuses.fails)
      fail(c, "it does not tell of job " + std::to_string(id));
  }
}

// --- reserve-jobs

void Model::judge_reserve_jobs(const Case& c, const std::optional<queue::Now>& begun) {
  const bool has_jobs = c.reply.word == "JOBS" || c.reply.alone;
  if (!has_jobs && (begun || c.reply.word == "RESERVED")) fail(c, "that is no answer to it");
  if (!has_jobs) {
    c.client.wanted = c.reply.word.empty() ? c.command.bound : 0;
    return judge_reserve(c);
  }
  expect_changed({});
  if (begun) return follow_gathered(c, *begun, Taking::kInParts, c.command.bound);
  follow_gathered(c, c.since, Taking::kAtOnce, c.command.bound);
}

// `begun`: when the first job was taken.
void Model::follow_gathered(const Case& c, queue::Now begun, Taking how, std::size_t wanted) {
  const std::vector<Reply> jobs = c.reply.alone ? std::vector{c.reply} : replies_in(c.reply.text);
  if (jobs.empty() || jobs.size() > wanted) fail(c, "so many jobs were not asked for");
  for (const Reply& reply : jobs) {
    const Case one{c.number, c.client, c.command, reply, begun, c.now, c.excuses};
    if (reply.word != "RESERVED") fail(one, "that is no job");
    if (how == Taking::kAtOnce && may_hold_more(c.client, c.now) == Is::kNo)
      fail(one, "it has too many jobs");
    judge_reserved(one, how);
    // The engine may not have come to all that is due.
    if (how == Taking::kWaited) how = Taking::kInParts;
  }
  const bool is_strict = how != Taking::kInParts && !c.excuses.unordered && !c.excuses.fails &&
                         limits_.reserved == SIZE_MAX && !limits_.bodies && !limits_.system;
  if (is_strict && jobs.size() < wanted && !c.reply.alone) expect_no_more_to_gather(c);
}

// A large body comes alone, so it may have been the next one.
void Model::expect_no_more_to_gather(const Case& c) const {
  std::optional<JobId> left;
  for (const std::string& tube : c.client.watched) {
    const auto jobs = tubes_.find(tube);
    if (jobs == tubes_.end()) continue;
    const bool open = is_open(tube, c.now);
    for (const JobId id : jobs->second) {
      const Job& job = jobs_.at(id);
      if (ready(job, c.now) == Is::kNo) continue;
      if (job.record.body_bytes > queue::kBodyPiece) return;
      if (open && must_go_out(job, c.now)) left = id;
    }
  }
  if (left) fail(c, "it has left out " + text_of(*left, jobs_.at(*left), c.now));
}

// The client may have got a job of these tubes, and its connection may have been lost with it.
void Model::lose_gathered(const Client& client, ClientNumber number, queue::Now now) {
  for (const std::string& tube : client.watched) {
    tube_limits_.lose_tokens(tube, now);
    turns_.forget(tube);
    const auto jobs = tubes_.find(tube);
    if (jobs == tubes_.end()) continue;
    for (const JobId id : jobs->second) {
      Job& job = jobs_.at(id);
      if (job.entrusted != Is::kNo || held(job, now) != Is::kMaybe || job.holder != 0) continue;
      if (!end_is_stored(job, queue::Ending::kLost)) continue;
      job.worker = number;
      job.worker_has_name = client.has_name;
      entrust(job, Is::kMaybe, {queue::Ending::kLost}, now);
    }
  }
}

}  // namespace carillon::simulator
