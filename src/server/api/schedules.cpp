// Schedules: set, shown, paused, resumed, triggered, listed and deleted (schedules.h).
#include "server/api/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "carillon/queue/engine.h"
#include "server/api/idempotency.h"
#include "server/api/operations.h"
#include "server/api/preconditions.h"
#include "server/api/problem.h"
#include "server/api/puts.h"
#include "server/api/request.h"
#include "server/text/calendar.h"

namespace carillon::server {

namespace {

// A schedule shows this many next occurrences.
constexpr std::size_t kTimesShown = 5;

Problem no_such_schedule(const std::string& name) {
  return Problem(kNotFound, fmt::format("there is no schedule {}", name));
}

// --- From a request to what the engine takes.

// Notes an expression or a zone that cannot be read.
void check_calendar(Reader& reader, std::string_view field, const std::string& cron,
                    const std::string& zone) {
  try {
    cron_calendar()(cron, zone);
  } catch (const std::invalid_argument& error) {
    constexpr std::string_view kLibrary = "carillon: ";
    std::string_view why = error.what();
    if (why.starts_with(kLibrary)) why.remove_prefix(kLibrary.size());
    reader.fault(field, std::string(why));
  }
}

void check_times(Reader& reader, const NewSchedule& asked) {
  const bool is_wrong = std::any_of(
      reader.faults().begin(), reader.faults().end(),
      [](const FieldFault& one) { return one.pointer == "/cron" || one.pointer == "/every"; });
  if (!asked.cron && !asked.every && !is_wrong) reader.fault("cron", "write it, or `every`");
  if (asked.cron && asked.every) reader.fault("every", "does not go with `cron`");
  if (asked.start && !asked.every) reader.fault("start", "needs `every`");
  if (asked.time_zone && !asked.cron) reader.fault("time_zone", "needs `cron`");
  if (asked.gap && !asked.cron) reader.fault("gap", "needs `cron`");
  if (asked.cron) {
    check_calendar(reader, "cron", *asked.cron, "UTC");
    check_calendar(reader, "time_zone", "@daily", asked.time_zone.value_or("UTC"));
  }
  if ((asked.catch_up == queue::CatchUp::kAll) != asked.catch_up_window.has_value())
    reader.fault("catch_up_window", "goes with \"catch_up\":\"all\", which needs it");
}

void apply_job(Reader& reader, const ScheduledJob& asked, queue::Schedule& schedule) {
  schedule.tube = asked.tube;
  schedule.priority = asked.priority;
  schedule.ttr = asked.ttr.ms;
  schedule.group = asked.group.value_or(Bytes()).bytes;
  if (asked.retry) {
    reader.within("retry", [&] { apply(reader, *asked.retry, schedule.retry); });
    schedule.retry.counts_empty = schedule.retry == queue::RetryPolicy();
  }
  schedule.expires_in = asked.expires_in.value_or(Duration()).ms;
  schedule.at_expiry = asked.at_expiry.value_or(queue::AtExpiry::kDrop);
  if (asked.at_expiry && !asked.expires_in) reader.fault("at_expiry", "needs `expires_in`");
  const JobBody body = asked.body.value_or(JobBody());
  schedule.attributes = kept_attributes(reader, with_type_of(body, asked));
  schedule.body = body.bytes;
}

}  // namespace

queue::Schedule schedule_of(Reader& reader, const NewSchedule& asked) {
  check_times(reader, asked);
  queue::Schedule schedule{.cron = asked.cron.value_or(""),
                           .zone = asked.time_zone.value_or("UTC"),
                           .run_after_gap = asked.gap != Gap::kSkip,
                           .every = asked.every.value_or(Duration()).ms,
                           .catch_up = asked.catch_up,
                           .catch_up_window = asked.catch_up_window.value_or(Duration()).ms,
                           .overlap = asked.overlap,
                           .spread = asked.spread.ms};
  if (asked.start) schedule.start = asked.start->at;
  reader.within("job", [&] { apply_job(reader, asked.job, schedule); });
  return schedule;
}

namespace {

void require_schedule_size(const RequestContext& x, std::string_view body) {
  const std::size_t most =
      std::min<std::size_t>(x.service().options().max_job_size, queue::kMaxScheduleBody);
  if (body.size() > most)
    throw Problem(kTooLarge, fmt::format("the body of the job has {} bytes; the limit is {}",
                                         body.size(), most));
}

// --- From what the engine has to the answer.

ScheduledJob job_of(const queue::Schedule& schedule, bool with_body) {
  ScheduledJob job;
  show_attributes(schedule.attributes, job);
  job.tube = schedule.tube;
  job.priority = schedule.priority;
  job.ttr.ms = schedule.ttr;
  if (!schedule.group.empty()) job.group = Bytes{schedule.group};
  if (schedule.retry != queue::RetryPolicy()) job.retry = retry_of(schedule.retry);
  if (schedule.expires_in > 0) {
    job.expires_in = Duration{schedule.expires_in};
    job.at_expiry = schedule.at_expiry;
  }
  if (with_body) job.body = JobBody{.bytes = schedule.body};
  return job;
}

// Returns the body of a PUT that would set the schedule as it is.
NewSchedule settings_of(const queue::ScheduleRecord& record, bool with_body) {
  const queue::Schedule& schedule = record.schedule;
  NewSchedule told;
  told.name = record.name;
  told.paused = record.paused;
  if (schedule.cron.empty()) {
    told.every = Duration{schedule.every};
    told.start = Moment{schedule.start.value_or(0)};
  } else {
    told.cron = schedule.cron;
    told.time_zone = schedule.zone;
    told.gap = schedule.run_after_gap ? Gap::kAfter : Gap::kSkip;
  }
  told.catch_up = schedule.catch_up;
  if (schedule.catch_up == queue::CatchUp::kAll)
    told.catch_up_window = Duration{schedule.catch_up_window};
  told.overlap = schedule.overlap;
  told.spread.ms = schedule.spread;
  told.job = job_of(schedule, with_body);
  return told;
}

Schedule shown(const queue::ScheduleView& view, bool with_body) {
  const queue::ScheduleRecord& record = view.record;
  const auto in_zone = [&](queue::UtcMs at) { return format_in_zone(at, record.schedule.zone); };
  Schedule told{settings_of(record, with_body)};
  if (!view.broken.empty()) told.broken = view.broken;
  told.fired = record.fired;
  told.skipped = record.skipped;
  if (record.last_job != 0) told.last_job = record.last_job;
  if (record.last_occurrence != 0) told.last = in_zone(record.last_occurrence);
  if (record.waiting != 0) told.waiting = in_zone(record.waiting);
  told.created.at = record.created;
  for (const queue::UtcMs at : view.next) told.next.push_back(in_zone(at));
  return told;
}

// What the tag of a schedule is made of. One that was made anew has another tag.
std::string tagged_settings(const queue::ScheduleRecord& record) {
  return fmt::format("{} {}", record.created, text_of(settings_of(record, true)));
}

std::string name_of_schedule(const std::string& schedule) {
  return "the schedule " + schedule;
}

// Returns the schedule if it is there, and the request's If-Match holds.
queue::ScheduleView found_schedule(RequestContext& x, const std::string& name,
                                   std::size_t times = 0) {
  auto view = x.engine().schedule(x.now(), name, times);
  if (!view) throw no_such_schedule(name);
  require_match(x.request, tagged_settings(view->record), name_of_schedule(name));
  return *std::move(view);
}

void answer_schedule(RequestContext& x, const std::string& name, unsigned status = 200) {
  const auto view = x.engine().schedule(x.now(), name, kTimesShown);
  answer_tagged(x, status, text_of(shown(view.value(), true)), tagged_settings(view->record));
}

// --- The functions.

void get_schedule(RequestContext& x, const ScheduleName& asked) {
  found_schedule(x, asked.name);
  answer_schedule(x, asked.name);
}

// Makes or changes a schedule. A changed schedule keeps its counts and the jobs that it has put.
void set(RequestContext& x, const NewSchedule& asked, Reader& reader, unsigned status) {
  const queue::Schedule schedule = schedule_of(reader, asked);
  reader.throw_if_any();
  require_schedule_size(x, schedule.body);
  x.require_room();
  x.require_tube(schedule.tube);
  x.engine().set_schedule(x.now(), asked.name, schedule, asked.paused.value_or(false));
  if (!asked.paused.value_or(true)) x.engine().resume_schedule(x.now(), asked.name);
  answer_schedule(x, asked.name, status);
}

void put_schedule(RequestContext& x, const NewSchedule& asked, Reader& reader) {
  const auto before = x.engine().schedule(x.now(), asked.name, 0);
  if (before) {
    x.require_tube_of(name_of_schedule(asked.name), before->record.schedule.tube);
    require_match(x.request, tagged_settings(before->record), name_of_schedule(asked.name));
  } else {
    require_no_match(x.request, name_of_schedule(asked.name));
  }
  require_new(x.request, before.has_value(), name_of_schedule(asked.name));
  set(x, asked, reader, before ? 200 : 201);
}

// Takes away the settings that do not go with those that the change names.
void make_way(const boost::json::object& change, boost::json::object& settings) {
  const auto names = [&](std::string_view field) {
    const auto* const value = change.if_contains(field);
    return value != nullptr && !value->is_null();
  };
  if (names("every"))
    for (const char* const field : {"cron", "time_zone", "gap"}) settings.erase(field);
  if (names("cron"))
    for (const char* const field : {"every", "start"}) settings.erase(field);
}

// The change is merged into the body of a PUT that would set the schedule as it is.
void patch_schedule(RequestContext& x, const NewSchedule& asked, Reader& reader) {
  const queue::ScheduleView before = found_schedule(x, asked.name);
  boost::json::object settings = write(settings_of(before.record, true));
  make_way(x.json, settings);
  NewSchedule merged;
  merged.name = asked.name;
  read_merged(x, reader, std::move(settings), kShape<NewSchedule>, &merged);
  set(x, merged, reader, 200);
}

void delete_schedule(RequestContext& x, const ScheduleName& asked) {
  found_schedule(x, asked.name);
  const queue::Outcome outcome = x.engine().remove_schedule(x.now(), asked.name);
  x.answer({.status = 204, .durable_at = outcome.durable_at});
}

void pause_schedule(RequestContext& x, const ScheduleName& asked) {
  found_schedule(x, asked.name);
  x.engine().pause_schedule(x.now(), asked.name);
  answer_schedule(x, asked.name);
}

void resume_schedule(RequestContext& x, const ScheduleName& asked) {
  found_schedule(x, asked.name);
  x.engine().resume_schedule(x.now(), asked.name);
  answer_schedule(x, asked.name);
}

// Puts its job now. The answer is that of a put. A request that has put it before is answered again
// though the schedule is gone or has changed since then.
void trigger_schedule(RequestContext& x, const ScheduleName& asked) {
  x.require_room();
  auto once = once_of(x);
  if (!once || !x.engine().knows_token(once->own_key)) found_schedule(x, asked.name);
  const auto batch = x.engine().trigger_schedule(x.now(), asked.name, order_of(once));
  if (!batch) throw no_such_schedule(asked.name);
  note_answer(once, *batch);
  if (batch->result == queue::BatchOutcome::Result::kAlready) x.outcome = "answered again";
  x.answer(reply_to_put(x, *batch));
}

// The schedules that the caller may see, as far as the steps have come.
struct ScheduleList {
  std::size_t most;
  std::string last;  // the name of the last schedule that a step has read
  SchedulePage page = {};
};

// A step shows few schedules, because the next times of one may take part of a millisecond. The
// list ends when it finds one schedule more than the page has: so the page's token is the name of a
// schedule that it shows.
void show_some(RequestContext& x, const std::shared_ptr<ScheduleList>& list) {
  constexpr std::size_t kLookedAt = 16;
  constexpr std::size_t kShown = 4;
  std::vector<Schedule>& schedules = list->page.schedules;
  const std::vector<std::string> names = x.engine().schedules(list->last, kLookedAt);
  if (names.empty()) return answer(x, list->page);
  std::size_t shown_now = 0;
  for (const std::string& name : names) {
    if (shown_now == kShown) break;
    const auto found = x.engine().schedule(x.now(), name, 0);
    if (found && x.may_use(found->record.schedule.tube)) {
      if (schedules.size() == list->most) {
        list->page.next_page_token = schedules.back().name;
        return answer(x, list->page);
      }
      schedules.push_back(shown(*x.engine().schedule(x.now(), name, kTimesShown), false));
      x.hold(1 << 10);
      ++shown_now;
    }
    list->last = name;
  }
  x.later([list](RequestContext& then) { show_some(then, list); });
}

void list_schedules(RequestContext& x, const ListByName& asked) {
  show_some(x, std::make_shared<ScheduleList>(
                   ScheduleList{.most = asked.page_size, .last = asked.page_token}));
}

// --- The rows.

constexpr Rights kPutSchedule{Needs::kPut, Reach::kSchedule};

constexpr auto kScheduleRows = rows(
    "schedules",
    operation<list_schedules, SchedulePage>("GET /v1/schedules", {Needs::kRead, Reach::kChecked},
                                            "Lists schedules by name."),
    operation<put_schedule, Schedule>("PUT /v1/schedules/{name}", {Needs::kPut, Reach::kChecked},
                                      "Makes a schedule, or puts another in its place.",
                                      {.appends = Appends::kYes,
                                       .audited_as = "schedule:put",
                                       .problems = "413 503",
                                       .headers = "If-Match If-None-There",
                                       .answer_headers = kTold,
                                       .also = {201, "It is new.", &kShape<Schedule>}}),
    operation<get_schedule, Schedule>("GET /v1/schedules/{name}", {Needs::kRead, Reach::kSchedule},
                                      "Shows a schedule with its next five times.", kShowsTagged),
    operation<patch_schedule, Schedule>("PATCH /v1/schedules/{name}", kPutSchedule,
                                        "Changes what it names, and keeps the rest (RFC 7396).",
                                        {.appends = Appends::kYes,
                                         .merges = true,
                                         .audited_as = "schedule:patch",
                                         .problems = "404 413 503",
                                         .headers = "If-Match",
                                         .answer_headers = kTold}),
    operation<pause_schedule, Schedule>("POST /v1/schedules/{name}:pause", kPutSchedule,
                                        "What comes meanwhile is skipped.",
                                        changes("schedule:pause")),
    operation<resume_schedule, Schedule>("POST /v1/schedules/{name}:resume", kPutSchedule,
                                         "It fires again.", changes("schedule:resume")),
    operation<trigger_schedule, Job>("POST /v1/schedules/{name}:trigger", kPutSchedule,
                                     "Puts its job now.",
                                     {.appends = Appends::kYes,
                                      .first_answer = FirstAnswer::kStored,
                                      .audited_as = "schedule:trigger",
                                      .status = 201,
                                      .problems = "404 409 503",
                                      .headers = "If-Match",
                                      .brief = &kShape<KnownJob>,
                                      .answer_headers = "Location ETag"}),
    operation<delete_schedule>("DELETE /v1/schedules/{name}", kPutSchedule,
                               "Deletes it. Its jobs stay.",
                               {.appends = Appends::kYes,
                                .audited_as = "schedule:delete",
                                .problems = "404",
                                .headers = "If-Match"}));

}  // namespace

std::span<const Operation> schedule_operations() {
  return kScheduleRows;
}

}  // namespace carillon::server
