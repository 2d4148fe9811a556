// What the replies to commands about schedules may say, and the jobs that schedules put (model.h).

#include <algorithm>
#include <string>

#include "server/beanstalk/schedule_stats.h"
#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;

void Model::judge_own_steps(std::size_t end) {
  const auto& steps = history_.schedule_steps();
  for (std::size_t n = 0; n < end; ++n) {
    if (steps[n].append <= last_step_) continue;
    last_step_ = steps[n].append;
    schedules_.judge_own_step(steps[n], times_.first, times_.last);
    if (steps[n].put != 0) add_scheduled(steps[n]);
  }
}

// A job that a schedule has put: due at a moment if it is for an occurrence, else now.
void Model::add_scheduled(const HistoryStore::ScheduleStep& step) {
  const queue::Schedule& asked = step.after->schedule;
  const std::string what = "job " + std::to_string(step.put) + " of the schedule " + step.name;
  if (step.put <= last_given_ || step.put <= last_told_)
    throw Violation(what + " has an id that was given before");
  if (step.body != asked.body) throw Violation(what + " has another body");
  last_given_ = step.put;
  scheduled_.insert(step.put);
  Job job{.tube = asked.tube,
          .group = asked.group,
          .priority = asked.priority,
          .ttr = asked.ttr,
          .retry = asked.retry,
          .attributes = asked.attributes,
          .at_expiry = asked.at_expiry};
  if (step.after->last_occurrence != 0) job.moment = step.job.due * kNsPerMs;
  if (job.moment == 0 && step.job.due * kNsPerMs > times_.last.utc_ns + kSlack)
    throw Violation(what + " is not due now");
  follow_expiry_of_schedule(job, asked, step.job, what);
  add(step.put, std::move(job));
  follow_record(step.job, times_.last);
}

// The job expires `expires_in` after it is due, or after its put.
void Model::follow_expiry_of_schedule(Job& job, const queue::Schedule& asked,
                                      const queue::JobRecord& put, const std::string& what) const {
  if (asked.expires_in == 0) return;
  const auto next_ms = [](queue::Now now) { return (now.utc_ns + kNsPerMs - 1) / kNsPerMs; };
  const queue::UtcMs due = job.moment / kNsPerMs;
  job.expires = put.extras->expires;
  if (job.expires < std::max(due, next_ms(times_.first)) + asked.expires_in ||
      job.expires > std::max(due, next_ms(times_.last)) + asked.expires_in)
    throw Violation(what + " expires at " + std::to_string(job.expires));
}

// As it was sent; without a tube, it is the one in use.
queue::Schedule Model::asked_by(const Case& c) {
  queue::Schedule asked = c.command.asked;
  if (asked.tube.empty()) asked.tube = c.client.tube_in_use;
  return asked;
}

void Model::judge_schedule(const Case& c) {
  const bool shows = c.command.verb == Verb::kShowSchedule;
  if (shows || c.command.verb == Verb::kStatsSchedule) return judge_stats_schedule(c);
  if (c.command.verb == Verb::kListSchedules) {
    const auto names = std::count(c.reply.text.begin(), c.reply.text.end(), '\n') - 1;
    const std::size_t wanted = schedules_.names_after(c.command.after);
    if (c.reply.word != "OK" || names != static_cast<std::ptrdiff_t>(wanted))
      fail(c, "there are " + std::to_string(wanted));
    return expect_changed({});
  }
  const bool is_there = schedules_.exists(c.command.schedule);
  if (c.reply.line == "NOT_FOUND") {
    if (is_there || c.command.verb == Verb::kSetSchedule) fail(c, "it is there");
    judge_own_steps(history_.schedule_steps().size());
    return expect_changed({});
  }
  if (!is_there && c.command.verb != Verb::kSetSchedule) fail(c, "there is no such schedule");
  judge_change_of_schedule(c);
}

// The last step is that of the command.
void Model::judge_change_of_schedule(const Case& c) {
  const auto& steps = history_.schedule_steps();
  const bool is_resume = c.command.verb == Verb::kResumeSchedule;
  const bool changes_nothing = is_resume && !schedules_.is_paused(c.command.schedule);
  judge_own_steps(steps.size() - (changes_nothing || steps.empty() ? 0 : 1));
  if (changes_nothing) {
    if (c.reply.line != "RESUMED") fail(c, "that is no answer to it");
    return expect_changed({});
  }
  if (steps.empty() || steps.back().name != c.command.schedule) fail(c, "nothing is stored");
  last_step_ = steps.back().append;
  std::string wanted;
  if (c.command.verb == Verb::kSetSchedule) {
    const queue::Schedule asked = asked_by(c);
    if (!has_room_for_lane(asked)) fail(c, "there are too many tubes");
    schedules_.judge_set(steps.back(), asked, c.command.pauses, c.since, c.now);
    wanted = "SCHEDULED";
  } else if (c.command.verb == Verb::kDeleteSchedule) {
    schedules_.judge_delete(steps.back());
    wanted = "DELETED";
  } else if (c.command.verb == Verb::kPauseSchedule) {
    schedules_.judge_pause(steps.back());
    wanted = "PAUSED";
  } else if (is_resume) {
    schedules_.judge_resume(steps.back(), c.since, c.now);
    wanted = "RESUMED";
  } else {
    schedules_.judge_trigger(steps.back());
    add_scheduled(steps.back());
    wanted = "INSERTED " + std::to_string(steps.back().put);
  }
  if (c.reply.line != wanted) fail(c, "it must be " + wanted);
  expect_changed({});
}

void Model::judge_stats_schedule(const Case& c) {
  judge_own_steps(history_.schedule_steps().size());
  expect_changed({});
  const bool is_there = schedules_.exists(c.command.schedule);
  if ((c.reply.line == "NOT_FOUND") == is_there) fail(c, "it is the other way round");
  if (!is_there) return;
  const queue::ScheduleRecord& record = schedules_.record(c.command.schedule);
  if (c.command.verb == Verb::kShowSchedule) {
    if (c.reply.text != server::beanstalk::schedule_line(record))
      fail(c, "it is another one: " + std::string(c.reply.text));
    return;
  }
  if (c.reply.word != "OK" || field_of(c.reply.text, "fired") != record.fired ||
      field_of(c.reply.text, "skipped") != record.skipped ||
      field_of(c.reply.text, "last-job") != record.last_job)
    fail(c, "its record says something else");
}

}  // namespace carillon::simulator
