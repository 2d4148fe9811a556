// Writes jobs as JSON.

#include "cli/job_json.h"

#include <boost/json.hpp>

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

std::string job_json(const Job& job, std::string_view tube, std::string_view state) {
  boost::json::object object;
  object["id"] = job.id;
  object["tube"] = tube;
  if (!state.empty()) object["state"] = state;
  add_body(object, job.body);
  return boost::json::serialize(object) + "\n";
}

}  // namespace carillon::cli
