// Attributes of jobs: what clients keep with a job and get back, as a JSON object. Four names have
// a meaning to those who read them (docs/http.md): content_type, metadata, traceparent, tracestate.
//
//   attributes_of(R"({ "traceparent": "00-..." })") == R"({"traceparent":"00-..."})"
//
// Thread safety: pure.
#pragma once

#include <string>
#include <string_view>

namespace carillon::server {

// Returns the object in one word, as an option of put-job has it: its spaces are written \u0020.
// Throws std::invalid_argument if the text is no JSON object, or has more than
// queue::kMaxAttributes bytes then.
std::string attributes_of(std::string_view json);

}  // namespace carillon::server
