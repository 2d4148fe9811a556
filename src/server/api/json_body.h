// The JSON that is the body of a request, within limits.
//
//   boost::json::object job = parse_object(request.body);
//
// Thread safety: pure.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <string_view>

namespace carillon::server {

// The most values in the JSON of a request, and in that of a batch of jobs.
inline constexpr std::size_t kMostParts = 1'000;
inline constexpr std::size_t kMostPartsOfBatch = 20'000;

// Returns the object that the text is. Throws Problem.
boost::json::object parse_object(std::string_view text, std::size_t most_parts = kMostParts);

// Changes `into` as a JSON Merge Patch says (RFC 7396): null takes a member away, an object is
// merged, and any other value replaces the old one.
void merge(const boost::json::object& change, boost::json::object& into);

}  // namespace carillon::server
