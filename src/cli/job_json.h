// Jobs as JSON, for `--json`: {"id":7,"tube":"mail","body":"hello"} on one line.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/client.h"

namespace carillon::cli {

// Returns the JSON line of a job that was put: "id", "tube" and "due", the due time in UTC; null if
// it is not known.
std::string put_json(std::uint64_t id, std::string_view tube, std::optional<std::uint64_t> due_ms);
// Returns the JSON line of a put that has met a job: "id", "tube", "result" and "state". An empty
// tube or state is left out.
std::string met_json(std::uint64_t id, std::string_view tube, std::string_view result,
                     std::string_view state = {});

// Returns the JSON line of a job with its body: in "body" if it is UTF-8, else in "body_base64"
// (RFC 4648), because JSON strings cannot hold other bytes. An empty `state` is left out.
std::string job_json(const Job& job, std::string_view tube, std::string_view state);

// Adds "body" or "body_base64".
void add_body(boost::json::object& object, const std::string& body);

}  // namespace carillon::cli
