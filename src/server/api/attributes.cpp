// Attributes in one word (attributes.h).
#include "server/api/attributes.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <stdexcept>

#include "carillon/queue/job.h"

namespace carillon::server {

namespace {

void merge(const boost::json::object& change, boost::json::object& into) {
  for (const auto& member : change) {
    if (member.value().is_null()) {
      into.erase(member.key());
    } else if (const auto* const inner = member.value().if_object()) {
      boost::json::value& old = into[member.key()];
      if (!old.is_object()) old.emplace_object();
      merge(*inner, old.get_object());
    } else {
      into[member.key()] = member.value();
    }
  }
}

}  // namespace

std::string attributes_of(std::string_view json) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(json, error);
  if (error) throw std::invalid_argument("not JSON: " + error.message());
  if (!value.is_object()) throw std::invalid_argument("not a JSON object");
  std::string word;
  for (const char c : boost::json::serialize(value)) {
    if (c == ' ') {
      word += "\\u0020";
    } else {
      word += c;
    }
  }
  if (word.size() > queue::kMaxAttributes) {
    throw std::invalid_argument(
        fmt::format("{} bytes as JSON; the most is {}", word.size(), queue::kMaxAttributes));
  }
  return word;
}

std::string merged_attributes(std::string_view attributes, const boost::json::object& change) {
  boost::json::object merged;
  if (!attributes.empty()) merged = boost::json::parse(attributes).as_object();
  merge(change, merged);
  return merged.empty() ? std::string() : attributes_of(boost::json::serialize(merged));
}

}  // namespace carillon::server
