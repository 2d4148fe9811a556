// What each reply may say (model.h).

#include <algorithm>
#include <array>
#include <utility>

#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;

namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

}  // namespace

void Model::fail(const Case& c, const std::string& why) const {
  std::string sent = c.command.bytes.substr(0, c.command.bytes.find('\r'));
  sent.resize(std::min<std::size_t>(sent.size(), 100));
  std::string text = "client " + std::to_string(c.number) + " sent '" + sent + "' and got '" +
                     std::string(c.reply.line) + "': " + why;
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
  const bool is_refused = c.reply.word == "INTERNAL_ERROR" || c.reply.word == "OUT_OF_MEMORY";
  if (command.schedule.empty() || is_refused) judge_own_steps(history_.schedule_steps().size());
  forget_pauses();
  const bool is_put = command.verb == Verb::kPut || command.verb == Verb::kPutJob;
  const bool ends_body = is_put || command.verb == Verb::kRefused;
  const JobId body = ends_body ? std::exchange(c.client.body, 0) : 0;
  if (c.reply.word == "INTERNAL_ERROR") {
    if (!excuses.fails) fail(c, "nothing has failed");
    return expect_changed({});
  }
  if (c.reply.word == "OUT_OF_MEMORY") return judge_out_of_memory(c);
  if (is_put) {
    judge_put(c, body);
  } else {
    judge_command(c);
  }
  forget_pauses();
}

void Model::judge_command(const Case& c) {
  switch (c.command.verb) {
    case Verb::kReserve:
      return judge_reserve(c);
    case Verb::kReserveJob:
      return judge_reserve_job(c);
    case Verb::kDelete:
      return judge_delete(c);
    case Verb::kRelease:
    case Verb::kBury:
    case Verb::kTouch:
    case Verb::kTouchJob:
      return judge_held(c);
    case Verb::kSetSchedule:
    case Verb::kDeleteSchedule:
    case Verb::kPauseSchedule:
    case Verb::kResumeSchedule:
    case Verb::kTriggerSchedule:
    case Verb::kStatsSchedule:
    case Verb::kListSchedules:
      return judge_schedule(c);
    case Verb::kFailJob:
      return judge_fail(c);
    case Verb::kStoryJob:
      return judge_story(c);
    case Verb::kSetTube:
      return judge_set_tube(c);
    case Verb::kNameClient:
      if (c.reply.line != "NAMED") fail(c, "that is no answer to it");
      c.client.has_name = true;
      return expect_changed({});
    case Verb::kPatchJob:
      return judge_patch(c);
    case Verb::kCancelJob:
      return judge_cancel(c);
    case Verb::kPeek:
    case Verb::kPeekJob:
    case Verb::kPeekReady:
    case Verb::kPeekDelayed:
    case Verb::kPeekBuried:
      return judge_peek(c);
    case Verb::kKick:
      return judge_kick(c);
    case Verb::kKickJob:
      return judge_kick_job(c);
    case Verb::kUse:
    case Verb::kWatch:
    case Verb::kIgnore:
    case Verb::kPause:
      return judge_tubes(c);
    case Verb::kStatsJob:
    case Verb::kStatsTube:
      return judge_stats(c);
    case Verb::kCheckpoint:
      return judge_checkpoint(c);
    case Verb::kOther:
      if (c.reply.word != "OK" && c.reply.word != "USING") fail(c, "that is no answer to it");
      return expect_changed({});
    case Verb::kGarbage:
      if (c.reply.word != "UNKNOWN_COMMAND" && c.reply.word != "BAD_FORMAT")
        fail(c, "that is no answer to garbage");
      return expect_changed({});
    case Verb::kRefused:
      if (c.reply.line != c.command.refusal) fail(c, "it must be " + c.command.refusal);
      return expect_changed({});
    case Verb::kPut:
    case Verb::kPutJob:
    case Verb::kQuit:
      break;
  }
}

// --- What is stored.

// The records that the command changed are these, and no others.
void Model::expect_changed(const std::set<JobId>& ids) {
  if (history_.changed() == ids) return;
  std::set<JobId> rest;
  for (const JobId id : history_.changed()) {
    if (ids.contains(id)) {
      rest.insert(id);
    } else if (is_end_of_attempt(id)) {
      judge_end_of_attempt(id);
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

// --- Workers.

void Model::judge_reserve(const Case& c) {
  expect_changed({});
  const Is in_line = may_hold_more(c.client, c.now);
  if (c.reply.word == "RESERVED") {
    if (in_line == Is::kNo) fail(c, "it has too many jobs");
    return judge_reserved(c, false);
  }
  if (in_line == Is::kYes && !c.excuses.unordered && !c.excuses.fails) {
    for (const std::string& tube : c.client.watched) {
      const auto jobs = tubes_.find(tube);
      if (jobs == tubes_.end()) continue;
      for (const JobId id : jobs->second) {
        if (is_free(jobs_.at(id), c.now)) fail(c, "there is " + text_of(id, jobs_.at(id), c.now));
      }
    }
  }
  const Is soon = deadline_soon(c.client, c.now);
  if (c.reply.word == "DEADLINE_SOON") {
    if (soon == Is::kNo) fail(c, "none of its jobs is nearly over");
    return;
  }
  if (soon == Is::kYes) fail(c, "a job of its is nearly over");
  if (c.reply.word == "TIMED_OUT") {
    if (c.command.timeout != 0 && !c.client.ended) fail(c, "it must wait");
    return;
  }
  if (!c.reply.word.empty()) fail(c, "that is no answer to a reserve");
  if (c.command.timeout == 0) fail(c, "it must not wait");
  c.client.waits_as = ++order_;
  c.client.in_line = in_line;
  c.client.give_up.reset();
  if (c.command.timeout) c.client.give_up = c.since.mono_ns + *c.command.timeout * kNsPerMs;
}

// The best ready job goes out first, and to the client that has waited longest for its tube.
void Model::judge_reserved(const Case& c, bool waited) {
  const JobId id = c.reply.number;
  const Job* const job = find(id);
  if (job == nullptr) fail(c, "there is no such job");
  if (!watches(c.client, job->tube)) fail(c, "the client does not watch its tube");
  if (job->holder != 0 && held(*job, c.now) == Is::kYes)
    fail(c, "two hold " + text_of(id, *job, c.now));
  if (ready(*job, c.now) == Is::kNo) fail(c, "too early: " + text_of(id, *job, c.now));
  if (paused(job->tube, c.now) == Is::kYes) fail(c, "its tube is paused");
  expect_body(c);
  if (waited) {
    for (const auto& [number, other] : clients_) {
      const bool longer =
          other.waits_as != 0 && other.waits_as < c.client.waits_as && other.in_line == Is::kYes;
      if (longer && watches(other, job->tube))
        fail(c, "client " + std::to_string(number) + " has waited longer");
    }
  } else if (!c.excuses.unordered && !c.excuses.fails) {
    for (const std::string& tube : c.client.watched) {
      const auto jobs = tubes_.find(tube);
      if (jobs == tubes_.end()) continue;
      for (const JobId other : jobs->second) {
        const Job& that = jobs_.at(other);
        if (std::pair(that.priority, other) < std::pair(job->priority, id) && is_free(that, c.now))
          fail(c, "first comes " + text_of(other, that, c.now));
      }
    }
  }
  take(c, id);
}

void Model::judge_end(ClientNumber number, const Reply& reply, const Times& times,
                      const Excuses& excuses) {
  static const Command kEnd{.verb = Verb::kReserve, .bytes = "(the end of a wait)"};
  const Case c{number, clients_.at(number), kEnd, reply, times.first, times.last, excuses};
  if (c.client.waits_as == 0) fail(c, "it does not wait");
  if (reply.word == "RESERVED") {
    judge_reserved(c, true);
  } else if (reply.word == "TIMED_OUT") {
    if (!c.client.ended && (!c.client.give_up || is(c.now.mono_ns, *c.client.give_up) == Is::kNo))
      fail(c, "too early");
  } else if (reply.word == "DEADLINE_SOON") {
    if (deadline_soon(c.client, c.now) == Is::kNo) fail(c, "none of its jobs is nearly over");
  } else if (reply.word == "OUT_OF_MEMORY") {
    judge_out_of_memory(c);
  } else if (reply.word != "INTERNAL_ERROR" || !excuses.fails) {
    fail(c, "that is no end of a wait");
  }
  c.client.waits_as = 0;
}

void Model::judge_reserve_job(const Case& c) {
  const JobId id = c.command.id;
  Job* const job = find(id);
  if (c.reply.word == "NOT_FOUND") {
    if (job != nullptr && held(*job, c.now) == Is::kNo) fail(c, "it is there");
    return expect_changed({});
  }
  if (c.reply.word != "RESERVED" || c.reply.number != id) fail(c, "that is no answer to it");
  if (job == nullptr) fail(c, "there is no such job");
  if (held(*job, c.now) == Is::kYes) fail(c, "another client holds it");
  if (may_hold_more(c.client, c.now) == Is::kNo) fail(c, "it has too many jobs");
  expect_body(c);
  if (job->burial != 0) {
    revive(*job);
    job->moment = job->delay_end = 0;
    expect_changed({id});
    follow_record(id, c.now);
  } else {
    expect_changed({});
  }
  take(c, id);
}

void Model::judge_held(const Case& c) {
  constexpr std::array<std::string_view, 4> kWords = {"RELEASED", "BURIED", "TOUCHED",
                                                      "CANCEL_ASKED"};
  const bool bury = c.command.verb == Verb::kBury;
  const bool touch_job = c.command.verb == Verb::kTouchJob;
  const bool touch = touch_job || c.command.verb == Verb::kTouch;
  const JobId id = c.command.id;
  Job* const job = find(id);
  const Is is_held = job == nullptr ? Is::kNo : held_by(*job, c.number, c.now);
  if (c.reply.word == "NOT_FOUND") {
    if (is_held == Is::kYes) fail(c, "the client holds it");
    return expect_changed({});
  }
  if (is_held == Is::kNo) fail(c, "the client does not hold it");
  const bool tells = touch_job && job->cancel_asked;
  if (c.reply.line != kWords[bury ? 1 : tells ? 3 : touch ? 2 : 0])
    fail(c, "that is no answer to it");
  if (touch) {
    job->deadline = c.since.mono_ns + job->ttr * kNsPerMs;
    return expect_changed({});
  }
  if (job->cancel_asked) {
    if (history_.state().jobs.contains(id)) fail(c, "its cancel was asked for, and it is there");
    expect_changed({id});
    end_key(*job);
    return remove(id);
  }
  job->priority = c.command.priority;
  let_go(id, *job);
  if (bury) {
    const auto stored = history_.state().jobs.find(id);
    job->burial = stored == history_.state().jobs.end() ? 0 : stored->second.record.burial;
    if (job->burial == 0) fail(c, "it is stored as not buried");
  } else {
    const std::uint64_t delay_ns = c.command.delay * kNsPerMs;
    const JobRecord& record = history_.state().jobs.at(id).record;
    // Without a delay it keeps a moment that has come, for the wall clock may be set back.
    if (delay_ns > 0 || record.lead != queue::kNoLead) job->moment = 0;
    job->delay_end = delay_ns == 0 ? 0 : c.since.mono_ns + delay_ns;
    if (job->moment == 0) job->slack = kSlack;
    const std::uint64_t due_ns = record.due * kNsPerMs;
    if (due_ns > std::max(c.now.utc_ns, c.since.utc_ns + delay_ns) + kSlack)
      fail(c, "its due time is too late");
  }
  expect_changed({id});
  follow_record(id, c.now);
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
  end_key(*job);
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
  const auto jobs = tubes_.find(c.client.tube_in_use);
  if (jobs == tubes_.end()) return;
  for (const JobId id : jobs->second) {
    const Job& job = jobs_.at(id);
    if (fits(job) != Is::kYes) continue;
    if (!found || (has_order(c.command.verb != Verb::kPeekDelayed) &&
                   rank(id, job) < rank(c.reply.number, jobs_.at(c.reply.number))))
      fail(c, "first comes " + text_of(id, job, c.now));
  }
}

}  // namespace carillon::simulator
