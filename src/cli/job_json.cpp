// Writes jobs as JSON.

#include "cli/job_json.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <initializer_list>

#include "server/text/duration.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::cli {

void add_body(boost::json::object& object, const std::string& body) {
  if (server::is_utf8(body)) {
    object["body"] = body;
  } else {
    object["body_base64"] = server::to_base64(body);
  }
}

namespace {

boost::json::object shown_fields(const boost::json::object& job) {
  boost::json::object object;
  for (const char* name : {"id", "tube", "group", "group_base64", "state", "key", "key_base64",
                           "due", "created", "worker", "worker_base64"})
    if (const auto* const value = job.if_contains(name)) object[name] = *value;
  if (const auto* const due = job.if_contains("due"))
    object["due_ms"] = server::parse_timestamp(std::string_view(due->as_string()));
  if (const auto* const priority = job.if_contains("priority")) object["pri"] = *priority;
  const auto* const failed = job.if_contains("failed_attempts");
  if (failed != nullptr && failed->to_number<std::uint64_t>() > 0) object["attempts"] = *failed;
  return object;
}

boost::json::object shown_fields(const StatsFields& shown) {
  boost::json::object object;
  object["id"] = shown.number("id");
  for (const char* name : {"tube", "group", "group_base64", "state", "key", "key_base64", "due",
                           "created", "worker", "worker_base64"})
    if (shown.has(name)) object[name] = shown.text(name);
  if (shown.has("due")) object["due_ms"] = server::parse_timestamp(shown.text("due"));
  object["pri"] = shown.number("pri");
  if (shown.has("attempts")) object["attempts"] = shown.number("attempts");
  if (shown.has("dead") && shown.text("dead") != "no") object["dead"] = shown.text("dead");
  return object;
}

}  // namespace

namespace {

const boost::json::value* find(const boost::json::object& in, std::string_view name) {
  return in.if_contains(name);
}

std::string in_ms(const boost::json::value& duration) {
  const auto ms = server::parse_duration(std::string_view(duration.as_string()));
  return fmt::format("{}ms", ms.count());
}

void add_retry(boost::json::object& line, const boost::json::object& retry) {
  line["max_attempts"] = retry.at("max_attempts");
  const boost::json::object& backoff = retry.at("backoff").as_object();
  const auto* const longest = find(backoff, "max");
  line["backoff"] =
      in_ms(backoff.at("initial")) + (longest != nullptr ? ".." + in_ms(*longest) : "");
  line["jitter"] = fmt::format("{}%", backoff.at("jitter").to_number<unsigned>());
  line["lost"] = retry.at("lost_fails").as_bool() ? "fails" : "returns";
}

// "attributes" has all that a job carries, also what the API shows beside it.
void add_attributes(boost::json::object& line, const boost::json::object& job) {
  boost::json::object kept;
  if (const auto* const others = find(job, "attributes")) kept = others->as_object();
  for (const char* const name : {"content_type", "metadata", "traceparent", "tracestate"})
    if (const auto* const value = find(job, name)) kept[name] = *value;
  if (!kept.empty()) line["attributes"] = std::move(kept);
}

void add_as_it_is(boost::json::object& line, const boost::json::object& from,
                  std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (const auto* const value = find(from, name)) line[name] = *value;
}

}  // namespace

boost::json::object job_line(const boost::json::object& job) {
  boost::json::object line;
  add_as_it_is(line, job, {"id", "tube", "state", "due"});
  if (line.at("state") == "dead") line["state"] = "buried";
  line["pri"] = job.at("priority");
  line["ttr"] = in_ms(job.at("ttr"));
  add_as_it_is(line, job, {"created", "group", "group_base64", "key", "key_base64"});
  if (const auto* const window = find(job, "key_window")) line["key_window"] = in_ms(*window);
  if (const auto* const retry = find(job, "retry")) add_retry(line, retry->as_object());
  if (const auto* const failed = find(job, "failed_attempts"))
    if (failed->to_number<std::uint64_t>() > 0) line["attempts"] = *failed;
  if (job.at("state") == "dead") line["dead"] = job.contains("died") ? job.at("died") : "yes";
  if (job.contains("cancel_requested")) line["cancel_asked"] = true;
  add_attributes(line, job);
  add_as_it_is(line, job,
               {"expires_at", "at_expiry", "reserves", "timeouts", "releases", "buries", "kicks",
                "worker", "worker_base64", "body_bytes"});
  return line;
}

boost::json::object schedule_line(const boost::json::object& job) {
  boost::json::object line;
  add_as_it_is(line, job, {"tube"});
  line["pri"] = job.at("priority");
  line["ttr"] = in_ms(job.at("ttr"));
  add_as_it_is(line, job, {"group", "group_base64"});
  if (const auto* const retry = find(job, "retry")) add_retry(line, retry->as_object());
  add_attributes(line, job);
  if (const auto* const span = find(job, "expires_in")) line["expires_in"] = in_ms(*span);
  add_as_it_is(line, job, {"at_expiry"});
  return line;
}

boost::json::object group_line(const boost::json::object& group) {
  boost::json::object line{{"tube", group.at("tube")}};
  for (const char* const end : {"", "_base64"})
    if (const auto* const name = find(group, std::string("name") + end))
      line[std::string("group") + end] = *name;
  const boost::json::object& jobs = group.at("jobs").as_object();
  add_as_it_is(line, jobs, {"ready", "reserved", "delayed", "buried"});
  line["weight"] = group.at("weight");
  const boost::json::object& limits = group.at("limits").as_object();
  add_as_it_is(line, limits, {"max_running"});
  if (const auto* const found = find(limits, "rate")) {
    const boost::json::object& rate = found->as_object();
    line["rate"] =
        fmt::format("{}/{}", rate.at("jobs").to_number<std::uint64_t>(), in_ms(rate.at("per")));
    line["burst"] = rate.at("burst");
  }
  return line;
}

std::string put_json(std::uint64_t id, std::string_view tube, std::optional<std::uint64_t> due_ms) {
  boost::json::object object;
  object["id"] = id;
  object["tube"] = tube;
  object["due"] = nullptr;
  if (due_ms) object["due"] = server::format_timestamp(*due_ms);
  return boost::json::serialize(object) + "\n";
}

std::string met_json(std::uint64_t id, std::string_view tube, std::string_view result,
                     std::string_view state) {
  boost::json::object object;
  object["id"] = id;
  if (!tube.empty()) object["tube"] = tube;
  object["result"] = result;
  if (!state.empty()) object["state"] = state;
  return boost::json::serialize(object) + "\n";
}

std::string changed_json(const StatsFields& shown) {
  return boost::json::serialize(shown_fields(shown)) + "\n";
}

std::string changed_json(const boost::json::object& job) {
  return boost::json::serialize(shown_fields(job)) + "\n";
}

std::string shown_job_json(const Job& job, const StatsFields& shown,
                           const std::vector<StatsFields>& story) {
  boost::json::object object = shown_fields(shown);
  boost::json::array attempts;
  for (const StatsFields& attempt : story) {
    boost::json::object fields;
    for (const StatsField& field : attempt) fields[field.name] = field.value;
    attempts.push_back(std::move(fields));
  }
  if (!attempts.empty()) object["story"] = std::move(attempts);
  add_body(object, job.body);
  return boost::json::serialize(object) + "\n";
}

std::string job_json(const Job& job, std::string_view tube, std::string_view state) {
  boost::json::object object;
  object["id"] = job.id;
  object["tube"] = tube;
  if (!state.empty()) object["state"] = state;
  add_body(object, job.body);
  return boost::json::serialize(object) + "\n";
}

}  // namespace carillon::cli
