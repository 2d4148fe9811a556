// Writes jobs as JSON.

#include "cli/job_json.h"

#include <boost/json.hpp>

#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::cli {

namespace {

void add_body(boost::json::object& object, const std::string& body) {
  if (server::is_utf8(body)) {
    object["body"] = body;
  } else {
    object["body_base64"] = server::to_base64(body);
  }
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
