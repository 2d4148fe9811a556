// Writes jobs as JSON.

#include "cli/job_json.h"

#include <boost/json.hpp>

#include "server/json_text.h"
#include "server/timestamp.h"

namespace carillon::cli {

std::string put_json(std::uint64_t id, std::string_view tube, std::uint64_t due_ms) {
  boost::json::object object;
  object["id"] = id;
  object["tube"] = tube;
  object["due"] = server::format_timestamp(due_ms);
  return boost::json::serialize(object) + "\n";
}

std::string met_json(std::uint64_t id, std::string_view tube, std::string_view result) {
  boost::json::object object;
  object["id"] = id;
  object["tube"] = tube;
  object["result"] = result;
  return boost::json::serialize(object) + "\n";
}

std::string job_json(const Job& job, std::string_view tube, std::string_view state) {
  boost::json::object object;
  object["id"] = job.id;
  object["tube"] = tube;
  if (!state.empty()) object["state"] = state;
  if (server::is_utf8(job.body)) {
    object["body"] = job.body;
  } else {
    object["body_base64"] = server::to_base64(job.body);
  }
  return boost::json::serialize(object) + "\n";
}

}  // namespace carillon::cli
