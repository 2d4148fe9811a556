// What the replies to commands about schedules may say, and the jobs that schedules put (model.h).

#include <algorithm>
#include <boost/json/parse.hpp>
#include <string>

#include "simulator/clock.h"
#include "simulator/model.h"
#include "simulator/requests.h"
#include "simulator/talker_words.h"

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

void Model::judge_schedule(const Case& c) {
  if (c.command.verb == Verb::kShowSchedule) return judge_show_schedule(c);
  if (c.command.verb == Verb::kListSchedules) {
    const std::size_t wanted = schedules_.names_after(c.command.after);
    if (c.reply.word != "OK" || object_of(c.reply).at("schedules").as_array().size() != wanted)
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

// The step of the command. Before it answers, the server lets the engine do what is due by then. So
// other steps may follow.
std::size_t Model::own_step_of(const Case& c) const {
  const auto& steps = history_.schedule_steps();
  const auto is_own = [&](std::size_t n) {
    const HistoryStore::ScheduleStep& step = steps[n];
    if (step.name != c.command.schedule) return false;
    if (c.command.verb == Verb::kDeleteSchedule) return !step.after.has_value();
    if (c.command.verb == Verb::kTriggerSchedule)
      return step.put == number_in(object_of(c.reply), "id");
    if (c.command.verb != Verb::kSetSchedule) return true;
    const bool has_fired = n > 0 && steps[n - 1].name == step.name && steps[n - 1].after &&
                           (steps[n - 1].after->skipped != step.after->skipped ||
                            steps[n - 1].after->waiting < step.after->waiting);
    return step.put == 0 && !has_fired;
  };
  // While it was paused, it did nothing. What follows the resume may be what was due by then.
  if (c.command.verb == Verb::kResumeSchedule)
    for (std::size_t n = 0; n < steps.size(); ++n)
      if (steps[n].append > last_step_ && is_own(n)) return n;
  for (std::size_t n = steps.size(); n > 0; --n)
    if (is_own(n - 1)) return n - 1;
  fail(c, "nothing is stored");
}

void Model::judge_change_of_schedule(const Case& c) {
  const auto& steps = history_.schedule_steps();
  const bool is_resume = c.command.verb == Verb::kResumeSchedule;
  const bool changes_nothing = is_resume && !schedules_.is_paused(c.command.schedule);
  if (c.reply.word != "OK") fail(c, "that is no answer to it");
  const std::size_t own = changes_nothing ? steps.size() : own_step_of(c);
  judge_own_steps(own);
  if (changes_nothing) return expect_changed({});
  const HistoryStore::ScheduleStep& step = steps[own];
  last_step_ = step.append;
  if (c.command.verb == Verb::kSetSchedule) {
    const queue::Schedule& asked = c.command.asked;
    if (!has_room_for_lane(asked)) fail(c, "there are too many tubes");
    schedules_.judge_set(step, asked, false, c.since, c.now);
  } else if (c.command.verb == Verb::kDeleteSchedule) {
    schedules_.judge_delete(step);
  } else if (c.command.verb == Verb::kPauseSchedule) {
    schedules_.judge_pause(step);
  } else if (is_resume) {
    schedules_.judge_resume(step, c.since, c.now);
  } else {
    schedules_.judge_trigger(step);
    add_scheduled(step);
    if (number_in(object_of(c.reply), "id") != step.put)
      fail(c, "it must be job " + std::to_string(step.put));
  }
  judge_own_steps(steps.size());
  expect_changed({});
}

void Model::judge_show_schedule(const Case& c) {
  judge_own_steps(history_.schedule_steps().size());
  expect_changed({});
  const bool is_there = schedules_.exists(c.command.schedule);
  if ((c.reply.line == "NOT_FOUND") == is_there) fail(c, "it is the other way round");
  if (!is_there) return;
  if (c.reply.word != "OK") fail(c, "that is no answer to it");
  const boost::json::object shown = object_of(c.reply);
  const queue::ScheduleRecord& record = schedules_.record(c.command.schedule);
  if (number_in(shown, "fired") != record.fired || number_in(shown, "skipped") != record.skipped ||
      number_in(shown, "last_job") != record.last_job || shown.at("paused") != record.paused)
    fail(c, "its record says something else");
  // The answer is what a client would send to set it.
  Command as_set{.verb = Verb::kSetSchedule, .schedule = record.name, .asked = record.schedule};
  write_request(as_set);
  const boost::json::value asked =
      boost::json::parse(as_set.bytes.substr(as_set.bytes.find("\r\n\r\n") + 4));
  for (const auto& [name, value] : asked.as_object())
    if (shown.at(name) != value) fail(c, std::string(name) + " is another one");
}

}  // namespace carillon::simulator
