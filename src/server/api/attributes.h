// Attributes of jobs: what clients keep with a job and get back, as a JSON object. Four names have
// a meaning to those who read them (docs/http.md): content_type, metadata, traceparent, tracestate.
//
//   attributes_of(R"({ "traceparent": "00-..." })") == R"({"traceparent":"00-..."})"
//
// Thread safety: pure.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

namespace carillon::server {

// Returns the object in one word, as an option of put-job has it: its spaces are written \u0020.
// Throws std::invalid_argument if the text is no JSON object, or has more than
// queue::kMaxAttributes bytes then.
std::string attributes_of(std::string_view json);

// Returns attributes after a change, as RFC 7396 has it: what is null goes, objects are changed in
// their turn, and all else is replaced. Empty if nothing is left. Throws as attributes_of().
std::string merged_attributes(std::string_view attributes, const boost::json::object& change);

}  // namespace carillon::server
