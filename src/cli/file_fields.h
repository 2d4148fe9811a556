// The names that fields of the API have in files of jobs, in the output of commands and as their
// options, as a table that is read both ways:
//
//   file_fields(FileObject::kTube, {"retry":{"backoff":{"initial":"1s"}}})   {"backoff":"1000ms"}
//   api_fields(FileObject::kTube, {"backoff":"1000ms"})   {"retry":{"backoff":{"initial":…}}}
//
// Files have flat objects, and durations in milliseconds. Thread safety: pure.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::cli {

enum class FileObject : std::uint8_t {
  kJob = 1,
  kTube = 2,
  kGroup = 4,
  kScheduledJob = 8,  // what a schedule puts
  kSchedule = 16,     // its times, and with api_fields() also its job
};

// Returns an object that the API shows as one of a file.
boost::json::object file_fields(FileObject of, const boost::json::value& shown);

// Returns an object of a file as a request to the API has it. Throws std::invalid_argument if there
// is no such field, or if its value has no good form; the server's rows check the rest.
boost::json::object api_fields(FileObject of, const boost::json::object& from);

// Returns what the text is as a value of this field of a request: pointers, and what stands there.
// Mostly that is one; "all:1h" of catch_up are two. Throws std::invalid_argument.
// REQUIRES: there is such a field.
std::vector<std::pair<std::string, boost::json::value>> api_field(FileObject of,
                                                                  std::string_view name,
                                                                  const std::string& text);

// Returns the file's name for the field with this pointer: "rate" for "/limits/rate/per".
std::string file_name_of(FileObject of, std::string_view pointer);

}  // namespace carillon::cli
