// Changes of many jobs: cancelled, retried, moved, spread, cleared and kicked (routes.h). A change
// goes in steps, and others are served in between. One that takes long becomes an operation.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/api/long_changes.h"
#include "server/api/names.h"
#include "server/api/problem.h"
#include "server/http/filters.h"
#include "server/http/job_fields.h"
#include "server/http/routes.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::server::http {

namespace {

namespace json = boost::json;

using beanstalk::ListOptionsOf;
using queue::JobBulk;

// A change that takes longer becomes an operation.
constexpr std::uint64_t kPatienceNs = 200'000'000;

std::string_view name_of(JobBulk::Action action) {
  switch (action) {
    case JobBulk::Action::kCancel:
      return "cancel";
    case JobBulk::Action::kRetry:
      return "retry";
    case JobBulk::Action::kMove:
      return "move";
    case JobBulk::Action::kSpread:
      return "spread";
  }
  return "unknown";
}

json::object json_of(const JobBulk& bulk) {
  json::object told{{"action", name_of(bulk.action)},
                    {"tube", bulk.list.tube},
                    {"dry_run", bulk.dry_run},
                    {"changed", bulk.changed},
                    {"left", bulk.left},
                    {"looked_at", bulk.list.looked_at}};
  if (!bulk.to.empty()) told["to"] = bulk.to;
  if (bulk.over > 0) told["over"] = shown_duration(bulk.over);
  if (bulk.list.incomplete) told["incomplete"] = true;
  const bool is_over = bulk.list.done;
  told["next_page_token"] = is_over ? json::value(nullptr) : json::value(to_text(bulk.list.next));
  return told;
}

json::object json_of(std::uint64_t id, const LongChange& operation) {
  json::object told = json_of(operation.bulk);
  told["id"] = id;
  told["state"] = operation.ended == 0       ? "running"
                  : operation.stopped        ? "stopped"
                  : !operation.error.empty() ? "failed"
                                             : "done";
  told["began"] = format_timestamp(operation.began);
  if (operation.ended != 0) told["ended"] = format_timestamp(operation.ended);
  if (!operation.error.empty()) told["error"] = to_utf8(operation.error);
  return told;
}

// What was changed is told, whatever happens then.
void answer_bulk(RequestContext& x, const JobBulk& bulk, std::string_view error = {}) {
  json::object told = json_of(bulk);
  if (!error.empty()) told["error"] = to_utf8(error);
  if (bulk.dry_run) x.audited_as.clear();
  x.outcome = error.empty() ? fmt::format("changed {}, left {}", bulk.changed, bulk.left)
                            : fmt::format("changed {}, then: {}", bulk.changed, error);
  x.answer({.body = json::serialize(told), .durable_at = x.engine().last_sequence()});
}

void go_on(RequestContext& x, const std::shared_ptr<JobBulk>& bulk, std::uint64_t until_ns) {
  try {
    x.engine().change_jobs(x.now(), *bulk);
  } catch (const std::runtime_error& error) {  // StoreError, OverLimit
    if (bulk->changed == 0) throw;
    return answer_bulk(x, *bulk, error.what());
  }
  if (bulk->ended()) return answer_bulk(x, *bulk);
  LongChanges& changes = x.service().long_changes();
  if (x.now().mono_ns < until_ns || changes.are_full())
    return x.later([bulk, until_ns](RequestContext& then) { go_on(then, bulk, until_ns); });
  if (bulk->dry_run) x.audited_as.clear();
  const std::uint64_t id = changes.begin(std::move(*bulk), x.now());
  x.outcome = fmt::format("goes on as operation {}", id);
  x.answer({.status = 202,
            .body = json::serialize(json_of(id, *changes.find(id))),
            .headers = {{"Location", fmt::format("/v1/operations/{}", id)}},
            .durable_at = x.engine().last_sequence()});
}

void begin(RequestContext& x, JobBulk bulk) {
  if (!x.engine().tube_stats(x.now(), bulk.list.tube))
    throw Problem(kNotFound, fmt::format("there is no tube \"{}\"", bulk.list.tube));
  const auto shared = std::make_shared<JobBulk>(std::move(bulk));
  go_on(x, shared, x.now().mono_ns + kPatienceNs);
}

std::string read_tube(Fields& fields, std::string_view name) {
  const auto text = fields.text(name);
  if (!text) {
    fields.fault(name, "write the name of a tube");
  } else if (!is_tube_name(*text)) {
    fields.fault(name, fmt::format("\"{}\": not the name of a tube", *text));
  }
  return std::string(text.value_or(""));
}

// {"dry_run":true,"limit":10,"page_token":"..."}
void read_bounds(Fields& fields, JobBulk& bulk) {
  bulk.dry_run = fields.flag("dry_run").value_or(false);
  bulk.bound = fields.number("limit", 1, UINT64_MAX >> 1).value_or(UINT64_MAX);
  const auto token = fields.text("page_token");
  if (!token) return;
  if (const auto next = queue::to_cursor(*token)) {
    bulk.list.next = *next;
  } else {
    fields.fault("page_token", "not what an answer calls next_page_token");
  }
}

// {"filter":{"tube":"mail","state":"buried"}, ...} and the bounds.
void change(RequestContext& x, JobBulk::Action action, ListOptionsOf of) {
  const json::object object = parse_object(x.request.body);
  FieldFaults faults;
  Fields fields(object, "", faults);
  JobBulk bulk;
  bulk.action = action;
  if (of == ListOptionsOf::kMove) bulk.to = read_tube(fields, "to");
  if (of == ListOptionsOf::kSpread) bulk.over = fields.duration("over").value_or(0);
  read_bounds(fields, bulk);
  if (const json::object* const filter = fields.object("filter")) {
    Fields of_filter(*filter, "/filter", faults);
    bulk.list.tube = read_tube(of_filter, "tube");
    bulk.list.filter = read_filter(of_filter, of, bulk.to).filter;
    if (of != ListOptionsOf::kSpread)
      bulk.reason = read_text(of_filter, "reason", "reason_base64").value_or("");
    of_filter.finish();
  } else if (faults.empty()) {
    fields.fault("filter", "which jobs? {\"tube\":\"mail\"} are all of a tube");
  }
  if (!bulk.to.empty() && bulk.to == bulk.list.tube)
    fields.fault("to", "the jobs are in this tube");
  if (of == ListOptionsOf::kSpread && faults.empty()) {
    if (const std::string why = bulk.fault(); !why.empty()) fields.fault("over", why);
  }
  fields.finish();
  faults.throw_if_any();
  x.target = bulk.list.tube;
  x.require_tube(bulk.list.tube);
  if (!bulk.to.empty()) x.require_tube(bulk.to);
  begin(x, std::move(bulk));
}

std::uint64_t operation_id(const RequestContext& x) {
  const std::string& text = x.names.front();
  std::uint64_t id = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, id);
  if (error == std::errc() && rest == end) return id;
  throw Problem(kBadRequest, fmt::format("\"{}\": not the number of an operation", text));
}

[[noreturn]] void throw_no_operation(std::uint64_t id) {
  throw Problem(kNotFound,
                fmt::format("there is no operation {}; a restart of the server ends them", id));
}

const LongChange& find_operation(const RequestContext& x, std::uint64_t id) {
  const LongChange* const found = x.service().long_changes().find(id);
  if (found == nullptr) throw_no_operation(id);
  const std::string what = fmt::format("operation {}", id);
  x.require_tube_of(what, found->bulk.list.tube);
  if (!found->bulk.to.empty()) x.require_tube_of(what, found->bulk.to);
  return *found;
}

}  // namespace

void cancel_jobs(RequestContext& x) {
  change(x, JobBulk::Action::kCancel, ListOptionsOf::kCancel);
}

void retry_jobs(RequestContext& x) {
  change(x, JobBulk::Action::kRetry, ListOptionsOf::kRetry);
}

void move_jobs(RequestContext& x) {
  change(x, JobBulk::Action::kMove, ListOptionsOf::kMove);
}

void spread_jobs(RequestContext& x) {
  change(x, JobBulk::Action::kSpread, ListOptionsOf::kSpread);
}

// Cancels all jobs of the tube that nobody has reserved, or those of {"filter":{...}}.
void clear_tube(RequestContext& x) {
  const json::object object = x.object();
  FieldFaults faults;
  Fields fields(object, "", faults);
  JobBulk bulk{.action = JobBulk::Action::kCancel, .list = {.tube = x.tube()}};
  read_bounds(fields, bulk);
  if (const json::object* const filter = fields.object("filter")) {
    Fields of_filter(*filter, "/filter", faults);
    bulk.list.filter = read_filter(of_filter, ListOptionsOf::kCancel).filter;
    of_filter.finish();
  }
  fields.finish();
  faults.throw_if_any();
  begin(x, std::move(bulk));
}

void answer_operation(RequestContext& x) {
  const std::uint64_t id = operation_id(x);
  x.answer({.body = json::serialize(json_of(id, find_operation(x, id))),
            .durable_at = x.engine().last_sequence()});
}

// What was changed stays so.
void stop_operation(RequestContext& x) {
  const std::uint64_t id = operation_id(x);
  find_operation(x, id);
  x.service().long_changes().stop(id, x.now());
  x.answer({.status = 204, .durable_at = x.engine().last_sequence()});
}

}  // namespace carillon::server::http
