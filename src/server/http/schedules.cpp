// Schedules: set, shown, paused, triggered and deleted (routes.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/schedule.h"
#include "server/api/names.h"
#include "server/api/problem.h"
#include "server/http/filters.h"
#include "server/http/idempotency.h"
#include "server/http/job_fields.h"
#include "server/http/one_job.h"
#include "server/http/preconditions.h"
#include "server/http/routes.h"
#include "server/text/calendar.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::server::http {

namespace {

namespace json = boost::json;

using queue::CatchUp;
using queue::Overlap;
using queue::Schedule;

// The next occurrences that a schedule shows.
constexpr std::size_t kTimesShown = 5;

constexpr std::array<std::string_view, 3> kOverlaps = {"allow", "skip", "queue"};
constexpr std::array<std::string_view, 3> kCatchUps = {"none", "last", "all"};

const std::string& schedule_name_of(const RequestContext& x) {
  const std::string& name = x.names.front();
  if (is_tube_name(name)) return name;
  throw Problem(
      kBadRequest,
      fmt::format("\"{}\": the name of a schedule is like that of a tube: 1 to {} letters, "
                  "digits and any of -+/;.$_(), and no - in front",
                  name, kMaxTubeName));
}

[[noreturn]] void throw_no_schedule(const RequestContext& x) {
  throw Problem(kNotFound, fmt::format("there is no schedule {}", x.names.front()));
}

// --- what is asked for

void read_job_of(const json::object& object, FieldFaults& faults, Schedule& schedule) {
  Fields fields(object, "/job", faults);
  if (const auto tube = fields.text("tube")) {
    if (!is_tube_name(*tube))
      fields.fault("tube", fmt::format("\"{}\": not the name of a tube", *tube));
    schedule.tube = *tube;
  }
  const auto priority = fields.number("priority", 0, UINT32_MAX);
  schedule.priority = static_cast<queue::Priority>(priority.value_or(kUsualPriority));
  schedule.ttr = read_ttr(fields).value_or(schedule.ttr);
  if (const auto group = fields.text("group")) {
    if (!is_key(*group)) fields.fault("group", key_fault("group", *group));
    schedule.group = *group;
  }
  read_own_retry(fields, faults, schedule.retry);
  schedule.expires_in = read_expires_in(fields).value_or(0);
  const auto at_expiry = fields.choice("at_expiry", {"drop", "dead"});
  if (at_expiry) schedule.at_expiry = static_cast<queue::AtExpiry>(*at_expiry);
  if (at_expiry && !fields.has("expires_in")) fields.fault("at_expiry", "needs expires_in");
  schedule.attributes = read_attributes(fields);
  schedule.body = read_text(fields, "body", "body_base64").value_or("");
  fields.finish();
}

void read_times(Fields& fields, Schedule& schedule) {
  schedule.cron = fields.text("cron").value_or("");
  const auto zone = fields.text("time_zone");
  const auto gap = fields.choice("gap", {"skip", "after"});
  if (zone) schedule.zone = *zone;
  schedule.run_after_gap = gap != std::size_t{0};
  const auto every = fields.duration("every");
  schedule.every = every.value_or(0);
  const auto start = fields.moment("start");
  schedule.start = start;
  if (schedule.cron.empty() && !every) fields.fault("cron", "write it, or every");
  if (!schedule.cron.empty() && every) fields.fault("every", "does not go with cron");
  if (every && *every < queue::kMinEvery)
    fields.fault("every", fmt::format("{} ms: at least {}", *every, queue::kMinEvery));
  if (start && !every) fields.fault("start", "needs every");
  for (const std::string_view name : {"time_zone", "gap"})
    if (fields.has(name) && schedule.cron.empty()) fields.fault(name, "needs cron");
}

// Notes it if the expression or the zone cannot be read, each for itself.
void check_times(Fields& fields, const Schedule& schedule) {
  if (schedule.cron.empty()) return;
  const auto check = [&](std::string_view name, const std::string& cron, const std::string& zone) {
    try {
      cron_calendar()(cron, zone);
    } catch (const std::invalid_argument& error) {
      constexpr std::string_view kLibrary = "carillon: ";
      std::string_view why = error.what();
      if (why.starts_with(kLibrary)) why.remove_prefix(kLibrary.size());
      fields.fault(name, std::string(why));
    }
  };
  check("cron", schedule.cron, "UTC");
  check("time_zone", "@daily", schedule.zone);
}

Schedule read_schedule(const json::object& object) {
  FieldFaults faults;
  Fields fields(object, "", faults);
  Schedule schedule{.priority = kUsualPriority};
  read_times(fields, schedule);
  check_times(fields, schedule);
  const auto catch_up = fields.choice("catch_up", {"none", "last", "all"});
  if (catch_up) schedule.catch_up = static_cast<CatchUp>(*catch_up);
  const auto window = fields.duration("catch_up_window");
  schedule.catch_up_window = window.value_or(0);
  if ((schedule.catch_up == CatchUp::kAll) != window.has_value())
    fields.fault("catch_up_window", "goes with \"catch_up\":\"all\", which needs it");
  if (const auto overlap = fields.choice("overlap", {"allow", "skip", "queue"}))
    schedule.overlap = static_cast<Overlap>(*overlap);
  schedule.spread = fields.duration("spread").value_or(0);
  if (const json::object* const job = fields.object("job")) read_job_of(*job, faults, schedule);
  fields.finish();
  faults.throw_if_any();
  return schedule;
}

// --- what there is

json::object times_of(const Schedule& schedule) {
  if (schedule.cron.empty())
    return {{"every", shown_duration(schedule.every)},
            {"start", format_timestamp(schedule.start.value_or(0))}};
  return {{"cron", to_utf8(schedule.cron)},
          {"time_zone", to_utf8(schedule.zone)},
          {"gap", schedule.run_after_gap ? "after" : "skip"}};
}

json::object job_of(const Schedule& schedule, bool with_body) {
  json::object job{{"tube", schedule.tube},
                   {"priority", schedule.priority},
                   {"ttr", shown_duration(schedule.ttr)}};
  if (!schedule.group.empty()) set_text(job, "group", schedule.group);
  if (schedule.retry != queue::RetryPolicy()) job["retry"] = json_of(schedule.retry);
  if (schedule.expires_in > 0) {
    job["expires_in"] = shown_duration(schedule.expires_in);
    job["at_expiry"] = schedule.at_expiry == queue::AtExpiry::kDrop ? "drop" : "dead";
  }
  if (!schedule.attributes.empty()) show_attributes(schedule.attributes, job);
  if (with_body) set_text(job, "body", schedule.body);
  return job;
}

// In lists the body is left out.
json::object json_of(const queue::ScheduleView& view, bool with_body = true) {
  const queue::ScheduleRecord& record = view.record;
  const Schedule& schedule = record.schedule;
  const auto in_zone = [&](queue::UtcMs at) { return format_in_zone(at, schedule.zone); };
  json::object told{{"name", to_utf8(record.name)}};
  for (const auto& [name, value] : times_of(schedule)) told[name] = value;
  told["catch_up"] = kCatchUps[static_cast<std::size_t>(schedule.catch_up)];
  if (schedule.catch_up == CatchUp::kAll)
    told["catch_up_window"] = shown_duration(schedule.catch_up_window);
  told["overlap"] = kOverlaps[static_cast<std::size_t>(schedule.overlap)];
  told["spread"] = shown_duration(schedule.spread);
  told["job"] = job_of(schedule, with_body);
  told["paused"] = record.paused;
  if (!view.broken.empty()) told["broken"] = to_utf8(view.broken);
  told["fired"] = record.fired;
  told["skipped"] = record.skipped;
  if (record.last_job != 0) told["last_job"] = record.last_job;
  if (record.last_occurrence != 0) told["last"] = in_zone(record.last_occurrence);
  if (record.waiting != 0) told["waiting"] = in_zone(record.waiting);
  told["created"] = format_timestamp(record.created);
  json::array next;
  for (const queue::UtcMs at : view.next) next.emplace_back(in_zone(at));
  told["next"] = std::move(next);
  return told;
}

void answer_with(RequestContext& x, unsigned status, queue::Sequence durable_at) {
  const auto view = x.engine().schedule(x.now(), x.names.front(), kTimesShown);
  if (!view) throw_no_schedule(x);
  x.answer({.status = status,
            .body = json::serialize(json_of(*view)),
            .durable_at = std::max(durable_at, x.engine().last_sequence())});
}

void answer_done(RequestContext& x, const queue::Outcome& outcome) {
  if (!outcome.done) throw_no_schedule(x);
  x.answer({.status = 204, .durable_at = outcome.durable_at});
}

// The schedules that come next and that the caller may see.
struct ScheduleList {
  Page page;
  std::string last = {};  // that was looked at
  json::array schedules = {};
};

void answer_list(RequestContext& x, ScheduleList& list, json::value next_page_token) {
  json::object page{{"schedules", std::move(list.schedules)}};
  page["next_page_token"] = std::move(next_page_token);
  x.answer({.body = json::serialize(page), .durable_at = x.engine().last_sequence()});
}

// A step shows a few, because to find the next times of a schedule may take part of a millisecond.
// The list ends when one more may be seen than the page has: so the page's token is the name of a
// schedule that it shows.
void show_some(RequestContext& x, const std::shared_ptr<ScheduleList>& list) {
  constexpr std::size_t kLookedAt = 16;
  constexpr std::size_t kShown = 4;
  const std::vector<std::string> names = x.engine().schedules(list->last, kLookedAt);
  if (names.empty()) return answer_list(x, *list, nullptr);
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kShown) break;
    const auto found = x.engine().schedule(x.now(), name, 0);
    if (found && x.may_use(found->record.schedule.tube)) {
      if (list->schedules.size() == list->page.size)
        return answer_list(x, *list, list->schedules.back().at("name"));
      const auto view = x.engine().schedule(x.now(), name, kTimesShown);
      list->schedules.push_back(json_of(*view, false));
      x.hold(1 << 10);
      ++shown;
    }
    list->last = name;
  }
  x.later([list](RequestContext& then) { show_some(then, list); });
}

}  // namespace

// Makes it, or changes what it is: what it has put and counted stays.
void put_schedule(RequestContext& x) {
  const std::string& name = schedule_name_of(x);
  const Schedule schedule = read_schedule(parse_object(x.request.body));
  if (const std::string why = size_fault(x, schedule.body); !why.empty())
    throw Problem(kTooLarge, why);
  x.require_room();
  const auto before = x.engine().schedule(x.now(), name, 0);
  const bool is_new = !before;
  x.require_tube(schedule.tube);
  if (before) x.require_tube_of("the schedule " + name, before->record.schedule.tube);
  require_preconditions(x.request, !is_new, "the schedule " + name);
  try {
    answer_with(x, is_new ? 201 : 200, x.engine().set_schedule(x.now(), name, schedule).durable_at);
  } catch (const std::invalid_argument& error) {
    // "spread: ...": the field, and what is wrong.
    const std::string text = error.what();
    throw Problem(kBadField, text,
                  {{"/" + text.substr(0, std::min(text.find(':'), text.size())), text}});
  }
}

void answer_schedule(RequestContext& x) {
  answer_with(x, 200, 0);
}

void delete_schedule(RequestContext& x) {
  answer_done(x, x.engine().remove_schedule(x.now(), x.names.front()));
}

void pause_schedule(RequestContext& x) {
  answer_done(x, x.engine().pause_schedule(x.now(), x.names.front()));
}

void resume_schedule(RequestContext& x) {
  answer_done(x, x.engine().resume_schedule(x.now(), x.names.front()));
}

void trigger_schedule(RequestContext& x) {
  x.require_room();
  auto once = once_of(x);
  const auto batch = x.engine().trigger_schedule(x.now(), x.names.front(), order_of(once));
  if (!batch) throw_no_schedule(x);
  note_answer(once, *batch);
  if (batch->result == queue::BatchOutcome::Result::kAlready) x.outcome = "answered again";
  x.answer(reply_to_put(x, *batch));
}

void list_schedules(RequestContext& x) {
  const auto list = std::make_shared<ScheduleList>();
  list->page = read_page(x.request);
  list->last = list->page.after;
  show_some(x, list);
}

}  // namespace carillon::server::http
