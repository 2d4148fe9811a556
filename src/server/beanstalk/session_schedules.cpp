// The commands for schedules that need more than one call of the engine (session.h).
#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "server/api/option_values.h"
#include "server/beanstalk/schedule_options.h"
#include "server/beanstalk/schedule_stats.h"
#include "server/beanstalk/session.h"
#include "server/beanstalk/stats.h"

namespace carillon::server::beanstalk {
namespace {

// The names in one list-schedules. The client asks for those after the last one.
constexpr std::size_t kNamesAtOnce = 1'000;

// The next occurrences that stats-schedule shows.
constexpr std::size_t kTimesShown = 5;

}  // namespace

void Session::begin_set_schedule(const Command& c) {
  const std::string& tube = service_.engine().tube_in_use(client_);
  try {
    schedule_ = std::make_unique<ScheduleOptions>(parse_schedule_options(c.options, tube));
  } catch (const std::invalid_argument& error) {
    return refuse_options(c.bytes, error.what());
  }
  if (!caller_.may_use_all_tubes()) {
    std::string why = caller_.lacks_tube(schedule_->schedule.tube);
    const auto before = service_.engine().schedule(service_.now(), c.tube, 0);
    if (why.empty() && before)
      why = caller_.lacks_tube_of(fmt::format("the schedule {}", c.tube),
                                  before->record.schedule.tube);
    if (!why.empty()) return refuse_body(c.bytes, kForbidden, why);
  }
  if (c.bytes > service_.options().max_job_size || c.bytes > queue::kMaxScheduleBody)
    return swallow_and_answer(c.bytes, "JOB_TOO_BIG\r\n");
  if (!may_add_body(c.bytes, c.bytes)) return;
  put_ = c;
  key_ = c.tube;
  state_ = State::kBody;
}

void Session::set_schedule(std::string_view body) {
  const std::unique_ptr<ScheduleOptions> asked = std::move(schedule_);
  const queue::Now now = service_.now();
  if (const std::string_view reply = refusal(now); !reply.empty()) return replies_.add(0, reply);
  or_answer_failure([&] {
    asked->schedule.body = body;
    try {
      answer(service_.engine().set_schedule(now, key_, asked->schedule, asked->paused),
             "SCHEDULED\r\n");
      audit("schedule:put", key_, "done");
    } catch (const std::invalid_argument& error) {
      replies_.add(0, "BAD_OPTION ", printable(error.what()), kEnd);
    }
  });
}

void Session::change_schedule(const Command& c) {
  queue::Engine& engine = service_.engine();
  const queue::Now now = service_.now();
  const auto finish = [&](const queue::Outcome& outcome, std::string_view done,
                          std::string_view action) {
    answer(outcome, done);
    if (outcome.done) audit(action, c.tube, "done");
  };
  if (c.verb == Verb::kDeleteSchedule)
    return finish(engine.remove_schedule(now, c.tube), "DELETED\r\n", "schedule:delete");
  if (c.verb == Verb::kPauseSchedule)
    return finish(engine.pause_schedule(now, c.tube), "PAUSED\r\n", "schedule:pause");
  finish(engine.resume_schedule(now, c.tube), "RESUMED\r\n", "schedule:resume");
}

void Session::trigger_schedule(const Command& c) {
  const queue::Now now = service_.now();
  put_ = {};
  if (const std::string_view reply = refusal(now); !reply.empty()) return replies_.add(0, reply);
  const auto batch = service_.engine().trigger_schedule(now, c.tube);
  if (!batch) return answer_not_found();
  answer_put(batch->jobs.front());
  audit("schedule:trigger", c.tube, "done");
}

void Session::stats_schedule(const Command& c) {
  const auto schedule = service_.engine().schedule(service_.now(), c.tube, kTimesShown);
  if (!schedule) return answer_not_found();
  answer_yaml(service_.engine().last_sequence(), schedule_yaml(*schedule));
}

// Up to 400 KB, if the body has only control characters.
void Session::show_schedule(const Command& c) {
  const auto schedule = service_.engine().schedule(service_.now(), c.tube, 0);
  if (!schedule) return answer_not_found();
  answer_list(schedule_line(schedule->record));
}

// Up to 203 KB.
void Session::list_schedules(const Command& c) {
  answer_list(list_yaml(service_.engine().schedules(c.tube, kNamesAtOnce)));
}

void Session::answer_list(const std::string& list) {
  count_memory();
  if (list.size() > kOwnReplies && list.size() > service_.most_for_one())
    return answer_out_of_memory(kMemoryIsUsed);
  answer_yaml(service_.engine().last_sequence(), list);
}

}  // namespace carillon::server::beanstalk
