// Attributes of jobs: a JSON object that clients keep with a job and get back. Four names have a
// meaning for workers and tools (docs/http.md): content_type, metadata, traceparent, tracestate.
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

// The attributes as fields of a job: those with a meaning, and the others in one object.
struct Attributes {
  std::optional<std::string> content_type;
  std::optional<Json> metadata;
  std::optional<std::string> traceparent;
  std::optional<std::string> tracestate;
  std::optional<Json> attributes;
};

template <class Of>
inline constexpr std::array kAttributeFields = {
    field<&Of::content_type, Of>("Kept with the job, and given back."),
    field<&Of::metadata, Of>("The same. All that is kept has at most 512 bytes."),
    field<&Of::traceparent, Of>("W3C Trace Context; the header of this name does the same."),
    field<&Of::tracestate, Of>("Goes with a traceparent."),
    field<&Of::attributes, Of>("More that is kept, under names of any choice.")};

// Returns the attributes as one word for the store; an empty text if there are no attributes. Notes
// what is wrong.
std::string kept_attributes(Reader& reader, const Attributes& attributes);
// Reads the word that kept_attributes() has made.
void show_attributes(const std::string& kept, Attributes& into);
// Returns true if the text has the form 00-TRACE-PARENT-FLAGS, and no id is all zeros.
bool is_traceparent(std::string_view text);

// Returns the object as one word, which put-job takes as an option: spaces become \u0020. Throws
// std::invalid_argument if the text is not a JSON object, or if the word has more than
// queue::kMaxAttributes bytes.
std::string attributes_of(std::string_view json);
std::string attributes_of(const boost::json::object& attributes);

// Returns the attributes after a change (RFC 7396): null removes an attribute, an object is merged,
// any other value replaces the old one. Returns an empty text if no attribute is left. Throws as
// attributes_of().
std::string merged_attributes(std::string_view attributes, const boost::json::object& change);

}  // namespace carillon::server
