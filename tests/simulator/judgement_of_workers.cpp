// What the replies to workers may say: to reserves, and about jobs that a client holds (model.h).

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;

void Model::judge_reserve(const Case& c) {
  expect_changed({});
  const Is in_line = may_hold_more(c.client, c.now);
  if (c.reply.word == "RESERVED") {
    if (in_line == Is::kNo) fail(c, "it has too many jobs");
    return judge_reserved(c, Taking::kAtOnce);
  }
  if (in_line == Is::kYes && !c.excuses.unordered && !c.excuses.fails) {
    for (const std::string& tube : c.client.watched) {
      const auto jobs = tubes_.find(tube);
      if (jobs == tubes_.end() || !is_open(tube, c.now)) continue;
      for (const JobId id : jobs->second) {
        if (must_go_out(jobs_.at(id), c.now))
          fail(c, "there is " + text_of(id, jobs_.at(id), c.now));
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
void Model::judge_reserved(const Case& c, Taking how) {
  const JobId id = c.reply.number;
  const Job* const job = find(id);
  if (job == nullptr) fail(c, "there is no such job");
  if (!watches(c.client, job->tube)) fail(c, "the client does not watch its tube");
  if (job->holder != 0 && held(*job, c.now) == Is::kYes)
    fail(c, "two hold " + text_of(id, *job, c.now));
  if (has_expired(*job, c.since)) fail(c, "it has expired: " + text_of(id, *job, c.now));
  expect_body(c);
  if (how == Taking::kInParts) {
    if (due(*job, c.now) == Is::kNo || job->burial != 0)
      fail(c, "it was not ready: " + text_of(id, *job, c.now));
    // Nobody knows which jobs ran then.
    tube_limits_.start(job->tube, 0, c.since, c.now);
    if (!job->group.empty())
      tube_limits_.start(LimitsModel::lane(job->tube, job->group), 0, c.since, c.now);
    turns_.forget(job->tube);
    return take(c, id);
  }
  if (ready(*job, c.now) == Is::kNo) fail(c, "too early: " + text_of(id, *job, c.now));
  if (paused(job->tube, c.now) == Is::kYes) fail(c, "its tube is paused");
  if (how == Taking::kWaited) {
    for (const auto& [number, other] : clients_) {
      const bool longer =
          other.waits_as != 0 && other.waits_as < c.client.waits_as && other.in_line == Is::kYes;
      if (longer && watches(other, job->tube))
        fail(c, "client " + std::to_string(number) + " has waited longer");
    }
  } else if (!c.excuses.unordered && !c.excuses.fails) {
    expect_first_in_order(c, *job);
  }
  tube_limits_.start(job->tube, running(job->tube, c.now).first, c.since, c.now);
  if (!job->group.empty()) {
    tube_limits_.start(LimitsModel::lane(job->tube, job->group),
                       running(job->tube, job->group, c.now).first, c.since, c.now);
  }
  // While a client waits, no group has a ready job for it: there are no turns to compare. And a job
  // whose body has no room goes back, but its group has had its turn.
  const bool takes_turns = how != Taking::kWaited && !limits_.bodies;
  follow_turn(c, *job, takes_turns && !c.excuses.unordered && !c.excuses.fails);
  take(c, id);
}

void Model::expect_first_in_order(const Case& c, const Job& job) const {
  for (const std::string& tube : c.client.watched) expect_turn(c, tube, job, c.reply.number);
}

void Model::judge_end(ClientNumber number, const Reply& reply, const Times& times,
                      const Excuses& excuses) {
  Command end;
  end.verb = Verb::kReserve;
  end.bytes = "(the end of a wait)";
  const Case c{number, clients_.at(number), end, reply, times.first, times.last, excuses};
  if (c.client.waits_as == 0) fail(c, "it does not wait");
  const std::size_t wanted = std::exchange(c.client.wanted, 0);
  const bool has_many = reply.word == "JOBS" || reply.alone;
  if (has_many && wanted > 0) {
    // The others were taken after the first one.
    const Case whole{number, c.client, end, reply, times.first, times_.last, excuses};
    follow_gathered(whole, times.first, Taking::kWaited, wanted);
  } else if (reply.word == "RESERVED" && wanted == 0) {
    judge_reserved(c, Taking::kWaited);
  } else if (reply.word == "TIMED_OUT") {
    if (!c.client.ended && (!c.client.give_up || is(c.now.mono_ns, *c.client.give_up) == Is::kNo))
      fail(c, "too early");
  } else if (reply.word == "DEADLINE_SOON") {
    // The attempt at a job may have ended since, when others were told that their waits have ended.
    const bool had_job = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& job) {
      return job.second.worker == number && job.second.freed_at >= c.since.mono_ns;
    });
    if (deadline_soon(c.client, c.now) == Is::kNo && !had_job)
      fail(c, "none of its jobs is nearly over");
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
    const bool is_gone = job == nullptr || (job->burial == 0 && has_expired(*job, c.now));
    if (!is_gone && held(*job, c.now) == Is::kNo) fail(c, "it is there");
    return expect_changed({});
  }
  if (c.reply.word != "RESERVED" || c.reply.number != id) fail(c, "that is no answer to it");
  if (job == nullptr) fail(c, "there is no such job");
  if (held(*job, c.now) == Is::kYes) fail(c, "another client holds it");
  if (job->burial == 0 && has_expired(*job, c.since)) fail(c, "it has expired");
  if (may_hold_more(c.client, c.now) == Is::kNo) fail(c, "it has too many jobs");
  expect_body(c);
  if (job->burial != 0) {
    revive(c, *job);
    job->moment = job->delay_end = 0;
    expect_changed({id});
    follow_record(id, c.now);
  } else {
    expect_changed({});
  }
  tube_limits_.start_anyway(job->tube, c.since, c.now);
  if (!job->group.empty())
    tube_limits_.start_anyway(LimitsModel::lane(job->tube, job->group), c.since, c.now);
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
    give_time(*job, c.since, c.now);
    return expect_changed({});
  }
  if (job->cancel_asked) {
    if (history_.state().jobs.contains(id)) fail(c, "its cancel was asked for, and it is there");
    expect_changed({id});
    end_key(*job, Is::kNo);
    return remove(id);
  }
  expect_changed({id});
  if (!bury) return follow_release(c, id, c.command.priority);
  job->priority = c.command.priority;
  let_go(id, *job);
  const auto stored = history_.state().jobs.find(id);
  job->burial = stored == history_.state().jobs.end() ? 0 : stored->second.record.burial;
  if (job->burial == 0) fail(c, "it is stored as not buried");
  follow_record(id, c.now);
}

void Model::follow_release(const Case& c, JobId id, queue::Priority priority) {
  Job& job = jobs_.at(id);
  job.priority = priority;
  let_go(id, job);
  const std::uint64_t delay_ns = c.command.delay * kNsPerMs;
  const JobRecord& record = history_.state().jobs.at(id).record;
  // Without a delay it keeps a moment that has come, for the wall clock may be set back.
  if (delay_ns > 0 || record.lead != queue::kNoLead) job.moment = 0;
  job.delay_end = delay_ns == 0 ? 0 : c.since.mono_ns + delay_ns;
  if (job.moment == 0) job.slack = kSlack;
  const std::uint64_t due_ns = record.due * kNsPerMs;
  if (due_ns > std::max(c.now.utc_ns, c.since.utc_ns + delay_ns) + kSlack)
    fail(c, "its due time is too late");
  follow_record(id, c.now);
}

}  // namespace carillon::simulator
