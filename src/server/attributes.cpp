// Attributes in one word (attributes.h).
#include "server/attributes.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <stdexcept>

#include "carillon/queue/job.h"

namespace carillon::server {

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

}  // namespace carillon::server
