// Attributes of jobs: what clients keep with a job and get back, as a JSON object. Four names have
// a meaning to those who read them (docs/http.md): content_type, metadata, traceparent, tracestate.
//
//   attributes_of(R"({ "traceparent": "00-..." })") == R"({"traceparent":"00-..."})"
//
// Thread safety: pure.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/field.h"

namespace carillon::server {

// Those with a meaning, as fields of a job.
struct Attributes {
  std::optional<std::string> content_type;
  std::optional<Json> metadata;
  std::optional<std::string> traceparent;
  std::optional<std::string> tracestate;
};
// As a job shows them.
struct AllAttributes : Attributes {
  std::optional<Json> attributes;  // the others, which a client of the other protocol has named
};

template <class Of>
inline constexpr std::array kAttributeFields = {
    field<&Of::content_type, Of>("content_type", "Kept with the job, and given back."),
    field<&Of::metadata, Of>("metadata", "The same. All that is kept has at most 512 bytes."),
    field<&Of::traceparent, Of>("traceparent",
                                "W3C Trace Context; the header of this name does the same."),
    field<&Of::tracestate, Of>("tracestate", "Goes with a traceparent.")};

// Returns what is kept, as one word; an empty one if there is nothing. Notes what is wrong.
std::string kept_attributes(Reader& reader, const Attributes& attributes);
// The same backwards.
void show_attributes(const std::string& kept, AllAttributes& into);
// Returns true if the text has the form 00-TRACE-PARENT-FLAGS, and no id is all zeros.
bool is_traceparent(std::string_view text);

// Returns the object in one word, as an option of put-job has it: its spaces are written \u0020.
// Throws std::invalid_argument if the text is no JSON object, or has more than
// queue::kMaxAttributes bytes then.
std::string attributes_of(std::string_view json);
std::string attributes_of(const boost::json::object& attributes);

// Returns attributes after a change, as RFC 7396 has it: what is null goes, objects are changed in
// their turn, and all else is replaced. Empty if nothing is left. Throws as attributes_of().
std::string merged_attributes(std::string_view attributes, const boost::json::object& change);

}  // namespace carillon::server
