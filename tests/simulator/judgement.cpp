// What each reply may say (model.h).

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;

void Model::fail(const Case& c, const std::string& why) const {
  std::string sent = shown(c.command);
  sent.resize(std::min<std::size_t>(sent.size(), 200));
  std::string text = "client " + std::to_string(c.number) + " sent '" + sent + "' and got '" +
                     std::string(c.reply.line) + "': " + why;
  if (c.command.by_http) text += "; " + std::string(c.reply.text.substr(0, 500));
  if (const auto job = jobs_.find(c.command.id); job != jobs_.end())
    text += "; there is " + text_of(job->first, job->second, c.now);
  throw Violation(text);
}

void Model::judge(ClientNumber number, const Command& command, const std::optional<Reply>& reply,
                  const Times& times, const Excuses& excuses) {
  static const Reply kNone{};
  const Case c{number,      clients_.at(number), command, reply ? *reply : kNone,
               times.first, times.last,          excuses};
  times_ = times;
  last_now_ = times.last;
  const bool is_refused = c.reply.word == "INTERNAL_ERROR" || c.reply.word == "OUT_OF_MEMORY";
  if (command.schedule.empty() || is_refused) judge_own_steps(history_.schedule_steps().size());
  judge_ends_of_dead(c);
  forget_pauses();
  const auto gathering = gathering_.extract(number);
  if (gathering && c.reply.word != "JOBS" && !c.reply.alone) {
    for (const std::string& tube : c.client.watched) {
      tube_limits_.lose_tokens(tube, c.now);
      turns_.forget(tube);
    }
  }
  const bool is_put = command.verb == Verb::kPut || command.verb == Verb::kPutJob;
  const bool ends_body = is_put || command.verb == Verb::kRefused;
  const JobId body = ends_body ? std::exchange(c.client.body, 0) : 0;
  if (c.reply.word == "INTERNAL_ERROR") {
    turns_.forget_all();
    if (!excuses.fails) fail(c, "nothing has failed");
    return expect_changed({});
  }
  if (c.reply.word == "OUT_OF_MEMORY") return judge_out_of_memory(c);
  if (is_put) {
    judge_put(c, body);
  } else if (command.verb == Verb::kReserveJobs) {
    judge_reserve_jobs(c, gathering ? std::optional(gathering.mapped()) : std::nullopt);
  } else {
    judge_command(c);
  }
  forget_pauses();
}

void Model::judge_command(const Case& c) {
  using Judge = void (Model::*)(const Case&);
  static const std::unordered_map<Verb, Judge> kJudges = {
      {Verb::kReserve, &Model::judge_reserve},
      {Verb::kReserveJob, &Model::judge_reserve_job},
      {Verb::kDelete, &Model::judge_delete},
      {Verb::kRelease, &Model::judge_held},
      {Verb::kBury, &Model::judge_held},
      {Verb::kTouch, &Model::judge_held},
      {Verb::kTouchJob, &Model::judge_held},
      {Verb::kPeek, &Model::judge_peek},
      {Verb::kPeekJob, &Model::judge_peek},
      {Verb::kPeekReady, &Model::judge_peek},
      {Verb::kPeekDelayed, &Model::judge_peek},
      {Verb::kPeekBuried, &Model::judge_peek},
      {Verb::kKick, &Model::judge_kick},
      {Verb::kKickJob, &Model::judge_kick_job},
      {Verb::kUse, &Model::judge_tubes},
      {Verb::kWatch, &Model::judge_tubes},
      {Verb::kIgnore, &Model::judge_tubes},
      {Verb::kPause, &Model::judge_tubes},
      {Verb::kStatsJob, &Model::judge_stats_job},
      {Verb::kStatsTube, &Model::judge_stats_tube},
      {Verb::kPutJobs, &Model::judge_put_jobs},
      {Verb::kDeleteJobs, &Model::judge_each},
      {Verb::kReleaseJobs, &Model::judge_each},
      {Verb::kFailJob, &Model::judge_fail},
      {Verb::kShowJob, &Model::judge_show_job},
      {Verb::kSetTube, &Model::judge_set_tube},
      {Verb::kStatsGroup, &Model::judge_stats_group},
      {Verb::kPatchJob, &Model::judge_patch},
      {Verb::kCancelJob, &Model::judge_cancel},
      {Verb::kBuryJob, &Model::judge_bury_job},
      {Verb::kListJobs, &Model::judge_list},
      {Verb::kListGroups, &Model::judge_list_groups},
      {Verb::kDueCounts, &Model::judge_due_counts},
      {Verb::kCancelJobs, &Model::judge_bulk},
      {Verb::kRetryJobs, &Model::judge_bulk},
      {Verb::kMoveJobs, &Model::judge_bulk},
      {Verb::kSpreadJobs, &Model::judge_bulk},
      {Verb::kShowChange, &Model::judge_show_change},
      {Verb::kCheckpoint, &Model::judge_checkpoint},
      {Verb::kSetSchedule, &Model::judge_schedule},
      {Verb::kDeleteSchedule, &Model::judge_schedule},
      {Verb::kPauseSchedule, &Model::judge_schedule},
      {Verb::kResumeSchedule, &Model::judge_schedule},
      {Verb::kTriggerSchedule, &Model::judge_schedule},
      {Verb::kShowSchedule, &Model::judge_schedule},
      {Verb::kListSchedules, &Model::judge_schedule},
      {Verb::kOther, &Model::judge_what_changes_nothing},
      {Verb::kGarbage, &Model::judge_what_changes_nothing},
      {Verb::kRefused, &Model::judge_refused},
      {Verb::kNameClient, &Model::judge_name},
  };
  if (c.command.verb != Verb::kQuit) (this->*kJudges.at(c.command.verb))(c);
}

void Model::judge_what_changes_nothing(const Case& c) {
  const std::string_view word = c.reply.word;
  const bool is_answer = c.command.verb == Verb::kGarbage
                             ? word == "UNKNOWN_COMMAND" || word == "BAD_FORMAT"
                             : word == "OK" || word == "USING";
  if (!is_answer) fail(c, "that is no answer to it");
  expect_changed({});
}

void Model::judge_refused(const Case& c) {
  const bool is_of_drained =
      c.command.refusal == "OUT_OF_RANGE" && drained_.contains(c.client.tube_in_use);
  if (c.reply.word == "TOO_FAST" && !is_of_drained) return judge_too_fast(c, 1);
  if (c.reply.line != (is_of_drained ? "DRAINING" : c.command.refusal))
    fail(c, is_of_drained ? "the tube takes no puts" : "it must be " + c.command.refusal);
  expect_changed({});
}

void Model::judge_name(const Case& c) {
  if (c.reply.line != "NAMED") fail(c, "that is no answer to it");
  c.client.has_name = true;
  expect_changed({});
}

// --- What is stored.

// The records that the command changed are these, and no others.
void Model::expect_changed(const std::set<JobId>& ids) {
  if (history_.changed() == ids) return;
  std::set<JobId> rest;
  for (const JobId id : history_.changed()) {
    if (ids.contains(id)) {
      rest.insert(id);
    } else if (is_own_change(id)) {
      judge_own_change(id);
    } else if (!scheduled_.contains(id) || history_.before(id)) {
      rest.insert(id);
    }
  }
  if (rest == ids) return;
  std::string text = "a command changed the records of jobs";
  for (const JobId id : history_.changed()) text += " " + std::to_string(id);
  text += " and not of";
  for (const JobId id : ids) text += " " + std::to_string(id);
  throw Violation(text);
}

void Model::expect_body(const Case& c) const {
  const auto stored = history_.state().jobs.find(c.reply.number);
  if (stored == history_.state().jobs.end() || stored->second.body != c.reply.text)
    fail(c, "the job has another body");
}

// --- Anyone.

void Model::judge_delete(const Case& c) {
  const JobId id = c.command.id;
  const Job* const job = find(id);
  if (c.reply.word == "NOT_FOUND") {
    if (job != nullptr &&
        (held(*job, c.now) == Is::kNo || held_by(*job, c.number, c.now) == Is::kYes))
      fail(c, "it is there");
    return expect_changed({});
  }
  if (c.reply.line != "DELETED") fail(c, "that is no answer to it");
  if (job == nullptr) fail(c, "there is no such job");
  if (held(*job, c.now) == Is::kYes && held_by(*job, c.number, c.now) == Is::kNo)
    fail(c, "another client holds it");
  if (history_.state().jobs.contains(id)) fail(c, "its record is still there");
  expect_changed({id});
  end_key(*job, was_done(c, *job));
  remove(id);
}

// A failed read may be why a job is delayed for longer.
Model::Is Model::delayed(const Job& job, const Case& c) const {
  const Is is_held = held(job, c.now);
  if (job.burial != 0 || is_held == Is::kYes) return Is::kNo;
  const Is is_ready = ready(job, c.now);
  if (is_ready == Is::kYes && !c.excuses.fails && !may_call_ready(c)) return Is::kNo;
  return is_ready == Is::kNo && is_held == Is::kNo ? Is::kYes : Is::kMaybe;
}

void Model::judge_peek(const Case& c) {
  expect_changed({});
  const auto fits = [&](const Job& job) {
    switch (c.command.verb) {
      case Verb::kPeekReady:
        return ready(job, c.now);
      case Verb::kPeekDelayed:
        return delayed(job, c);
      case Verb::kPeekBuried:
        return job.burial != 0 ? Is::kYes : Is::kNo;
      default:
        return Is::kYes;
    }
  };
  const auto rank = [&](JobId id, const Job& job) {
    if (c.command.verb == Verb::kPeekReady) return std::pair(std::uint64_t{job.priority}, id);
    return std::pair(c.command.verb == Verb::kPeekDelayed ? job.record.due : job.burial, id);
  };
  const bool any = c.command.verb != Verb::kPeek && c.command.verb != Verb::kPeekJob;
  const bool found = c.reply.word == "FOUND";
  if (!found && c.reply.line != "NOT_FOUND") fail(c, "that is no answer to a peek");
  if (!any) {
    const std::optional<JobId> id = named(c);
    if (found != id.has_value()) fail(c, "it is the other way round");
    if (found && c.reply.number != *id) fail(c, "that is another job");
    if (found) expect_body(c);
    return;
  }
  if (found) {
    const Job* const job = find(c.reply.number);
    if (job == nullptr || job->tube != c.client.tube_in_use || fits(*job) == Is::kNo)
      fail(c, "that is no such job");
    expect_body(c);
  }
  if (c.excuses.unordered || c.excuses.fails) return;
  const bool is_ready = c.command.verb == Verb::kPeekReady;
  const auto group = [&](const Job& job) {
    return c.command.verb == Verb::kPeekDelayed ? std::string() : job.group;
  };
  for (const JobId id : jobs_in(c.client.tube_in_use)) {
    const Job& job = jobs_.at(id);
    if (fits(job) != Is::kYes) continue;
    if (is_ready && !is_open(job.tube, job.group, c.now)) continue;
    if (found && group(job) != group(jobs_.at(c.reply.number))) continue;
    if (!found || (has_order(c.command.verb != Verb::kPeekDelayed) &&
                   rank(id, job) < rank(c.reply.number, jobs_.at(c.reply.number))))
      fail(c, "first comes " + text_of(id, job, c.now));
  }
}

}  // namespace carillon::simulator
