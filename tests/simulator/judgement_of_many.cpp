// What the replies to commands about many jobs may say: kick, statistics, checkpoint (model.h).

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;

// A command may be carried out in parts, with others in between.
void Model::judge_part(ClientNumber number, const Command& command, const Times& times,
                       const Excuses& excuses) {
  static const Reply kNone{};
  const Case c{number, clients_.at(number), command, kNone, times.first, times.last, excuses};
  times_ = times;
  last_now_ = times.last;
  judge_own_steps(history_.schedule_steps().size());
  judge_ends_of_dead(c);
  switch (command.verb) {
    case Verb::kKick:
      return kick(c, false);
    case Verb::kDeleteJobs:
    case Verb::kReleaseJobs:
      c.client.each_in_parts = true;
      return follow_each(c);
    case Verb::kCancelJobs:
    case Verb::kRetryJobs:
    case Verb::kMoveJobs:
    case Verb::kSpreadJobs:
      c.client.bulk_in_parts = true;
      return follow_bulk(c);
    case Verb::kListJobs:
    case Verb::kDueCounts:
      c.client.bulk_in_parts = true;
      return expect_changed({});
    case Verb::kReserveJobs:
      gathering_.try_emplace(number, times.first);
      return expect_changed({});
    default:
      return expect_changed({});
  }
}

void Model::judge_kick(const Case& c) {
  if (c.reply.word != "KICKED") fail(c, "that is no answer to a kick");
  kick(c, c.client.kicked == 0);
  const std::uint64_t kicked = std::exchange(c.client.kicked, 0);
  if (c.reply.number != kicked) fail(c, "it has kicked " + std::to_string(kicked));
  if (kicked > c.command.bound) fail(c, "these are too many");
}

// The first of the buried jobs in the order of their burials; else of the delayed ones by (due,
// id); those of one group after the other. Which ones these were, the history tells.
void Model::kick(const Case& c, bool whole) {
  const auto jobs = tubes_.find(c.client.tube_in_use);
  const std::set<JobId> none;
  const std::set<JobId>& all = jobs == tubes_.end() ? none : jobs->second;
  std::map<JobId, std::uint64_t> kicks_before;
  for (const JobId id : history_.changed()) {
    if (!jobs_.contains(id) || !history_.before(id)) continue;
    kicks_before[id] = jobs_.at(id).record.history.kicks;
    follow_end_before(id, *history_.before(id));
  }
  const bool first_part = c.client.kicked == 0;  // later ones may pass over new jobs
  if (first_part) {
    c.client.kicks_buried =
        std::any_of(all.begin(), all.end(), [this](JobId id) { return jobs_.at(id).burial != 0; });
  }
  const bool buried = c.client.kicks_buried;
  const auto fits = [&](const Job& job) {
    if (buried) return job.burial != 0 ? Is::kYes : Is::kNo;
    return delayed(job, c);
  };
  const auto rank = [&](JobId id) {
    const Job& job = jobs_.at(id);
    const std::uint64_t group = job.group.empty() ? 0 : job.record.tube;
    return std::tuple(group, buried ? job.burial : job.record.due, id);
  };
  std::set<JobId> kicked;
  for (const JobId id : history_.changed()) {
    if (is_own_change(id)) {
      c.client.kicked += judge_kicked_and_gone(c, id);
    } else if (!scheduled_.contains(id) || history_.before(id)) {
      kicked.insert(id);
    }
  }
  // One that expires as it is kicked, and is buried again, stays so.
  for (const JobId id : kicked) {
    if (stored_record(id).history.kicks > kicks_before[id] + 1)
      fail(c, "it has kicked twice " + text_of(id, jobs_.at(id), c.now));
  }
  std::tuple<std::uint64_t, std::uint64_t, JobId> last;
  bool has_newcomer = false;
  for (const JobId id : kicked) {
    if (!all.contains(id)) fail(c, "it has kicked job " + std::to_string(id));
    const Job& job = jobs_.at(id);
    if (fits(job) == Is::kNo) fail(c, "it has kicked " + text_of(id, job, c.now));
    has_newcomer = has_newcomer || held(job, c.since) != Is::kNo || job.freed_at > c.since.mono_ns;
    last = std::max(last, rank(id));
  }
  // A kick wants as many jobs as were delayed when it began. One whose reservation has ended since
  // then takes the place of another one.
  const bool has_room = c.client.kicked + kicked.size() < c.command.bound && !has_newcomer;
  const bool wants_more = whole && has_room && !c.excuses.fails && !may_call_ready(c);
  for (const JobId id : all) {
    // It may have expired as it was kicked, and be buried again.
    const bool is_changed = kicked.contains(id) || history_.changed().contains(id);
    if (first_part && !is_changed && fits(jobs_.at(id)) == Is::kYes &&
        (wants_more || (has_order(buried) && rank(id) < last)))
      fail(c, "it has left out " + text_of(id, jobs_.at(id), c.now));
  }
  for (const JobId id : kicked) {
    Job& job = jobs_.at(id);
    let_go(id, job);
    revive(c, job);
    job.moment = job.delay_end = 0;
    follow_record(id, c.now);
  }
  c.client.kicked += kicked.size();
}

// Returns 1 if the job was kicked before the engine has changed it, by an earlier step of the kick.
std::uint64_t Model::judge_kicked_and_gone(const Case& c, JobId id) {
  const auto job = jobs_.find(id);
  const bool was_kicked =
      job != jobs_.end() && history_.before(id)->history.kicks > job->second.record.history.kicks;
  if (was_kicked) {
    let_go(id, job->second);
    revive(c, job->second);
    job->second.moment = job->second.delay_end = 0;
  }
  judge_own_change(id);
  return was_kicked ? 1 : 0;
}

void Model::judge_kick_job(const Case& c) {
  const JobId id = c.command.id;
  Job* const job = find(id);
  const Is is_delayed = job == nullptr ? Is::kNo : delayed(*job, c);
  const bool is_buried = job != nullptr && job->burial != 0;
  const bool may_be_kicked = is_buried || is_delayed != Is::kNo;
  const bool must_be_kicked = is_buried || is_delayed == Is::kYes;
  if (c.reply.word == "NOT_FOUND") {
    if (must_be_kicked) fail(c, "it is there");
    return expect_changed({});
  }
  if (c.reply.line != "KICKED") fail(c, "that is no answer to it");
  if (!may_be_kicked) fail(c, "it is neither delayed nor buried");
  let_go(id, *job);
  revive(c, *job);
  job->moment = job->delay_end = 0;
  expect_changed({id});
  follow_record(id, c.now);
}

void Model::judge_stats_job(const Case& c) {
  expect_changed({});
  const JobId id = named(c).value_or(0);
  if (c.reply.line == "NOT_FOUND") {
    if (id != 0) fail(c, "it is there");
    return;
  }
  if (c.reply.word != "OK" || id == 0) fail(c, "that is no answer to it");
  const Job& job = jobs_.at(id);
  if (field_of(c.reply.text, "pri") != job.priority) fail(c, "it has another priority");
  const std::uint64_t attempts = field_of(c.reply.text, "attempts").value_or(0);
  if (attempts != job.attempts)
    fail(c, "it tells of " + std::to_string(attempts) + " attempts and not " +
                std::to_string(job.attempts));
}

void Model::judge_stats_tube(const Case& c) {
  expect_changed({});
  const bool there = exists(c.command.tube);
  if (c.reply.line == "NOT_FOUND") {
    if (there) fail(c, "it is there");
    return;
  }
  if (c.reply.word != "OK" || !there) fail(c, "that is no answer to it");
  std::set<std::string> groups;
  for (const auto& [number, tube] : history_.state().tubes) {
    if (tube.head != 0 && history_.state().tubes.at(tube.head).name == c.command.tube)
      groups.insert(tube.name);
  }
  for (const auto& [tube, group] : schedules_.groups()) {
    if (tube == c.command.tube) groups.insert(std::string(group));
  }
  if (field_of(c.reply.text, "current-groups").value_or(0) != groups.size())
    fail(c, "it has " + std::to_string(groups.size()) + " groups");
  const queue::Limits& limits = tube_limits_.of(c.command.tube);
  if (field_of(c.reply.text, "max-running").value_or(0) != limits.max_running ||
      field_of(c.reply.text, "rate").value_or(0) != limits.rate ||
      field_of(c.reply.text, "rate-period-ms").value_or(0) != limits.period ||
      field_of(c.reply.text, "burst").value_or(0) != limits.burst)
    fail(c, "it has other limits");
  const queue::Limits& puts = put_rates_.of(c.command.tube);
  if (field_of(c.reply.text, "put-rate").value_or(0) != puts.rate ||
      field_of(c.reply.text, "put-rate-period-ms").value_or(0) != puts.period ||
      field_of(c.reply.text, "put-burst").value_or(0) != puts.burst)
    fail(c, "it has another rate of puts");
  const auto kept = retentions_.find(c.command.tube);
  if (field_of(c.reply.text, "retention-ms").value_or(0) !=
      (kept == retentions_.end() ? 0 : kept->second))
    fail(c, "it has another retention");
  const auto jobs = [&c](const char* state) {
    return field_of(c.reply.text, std::string("current-jobs-") + state).value_or(UINT64_MAX);
  };
  expect_counts(c, std::nullopt,
                {jobs("ready"), jobs("reserved"), jobs("delayed"), jobs("buried")});
}

void Model::expect_counts(const Case& c, const std::optional<std::string>& group,
                          const Counts& told) const {
  std::uint64_t counts[4][2] = {};  // at least, at most
  for (const JobId id : jobs_in(c.command.tube)) {
    const Job& job = jobs_.at(id);
    if (group && job.group != *group) continue;
    const auto count = [&counts](std::size_t state, Is is) {
      counts[state][0] += is == Is::kYes ? 1U : 0U;
      counts[state][1] += is != Is::kNo ? 1U : 0U;
    };
    count(0, counts_as_ready(job, c.now));
    count(1, held(job, c.now));
    count(2, delayed(job, c));
    count(3, job.burial != 0 ? Is::kYes : Is::kNo);
  }
  constexpr const char* kNames[] = {"ready", "reserved", "delayed", "buried"};
  for (std::size_t state = 0; state < 4; ++state) {
    const bool loose = (c.excuses.fails || may_call_ready(c)) && state % 2 == 0;
    if (!loose && (told[state] < counts[state][0] || told[state] > counts[state][1])) {
      fail(c, std::to_string(told[state]) + " are " + kNames[state] + "; there are " +
                  std::to_string(counts[state][0]) + " to " + std::to_string(counts[state][1]));
    }
  }
}

// One client at a time has a checkpoint, from its command until it leaves. No reply: it waits.
void Model::judge_checkpoint(const Case& c) {
  expect_changed({});
  const bool is_refused = c.reply.word == "CONFLICT";
  if (!limits_.on_disk && !is_refused) fail(c, "there is no store on disk");
  if (!limits_.on_disk) return;
  if (c.reply.word.empty()) {
    if (checkpoint_of_ != 0) fail(c, "another client has one");
    checkpoint_of_ = c.number;
  } else if (!is_refused || checkpoint_of_ == 0) {
    fail(c, "that is no answer to it");
  }
}

void Model::judge_checkpoint(ClientNumber client, const Reply& reply, const Excuses& excuses) {
  const bool has_failed = reply.word == "INTERNAL_ERROR" && excuses.fails;
  if (checkpoint_of_ != client || (reply.word != "OK" && !has_failed))
    throw Violation("client " + std::to_string(client) + " waits for a checkpoint and gets '" +
                    std::string(reply.line) + "'");
  if (has_failed) checkpoint_of_ = 0;
}

}  // namespace carillon::simulator
