// JSON as text (json_value.h).
#include "server/text/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <iterator>

namespace carillon::server {

namespace json = boost::json;

namespace {

bool has_real(const json::value& value) {
  if (value.is_double()) return true;
  if (const json::array* const array = value.if_array())
    return std::any_of(array->begin(), array->end(), has_real);
  if (const json::object* const object = value.if_object())
    return std::any_of(object->begin(), object->end(),
                       [](const auto& member) { return has_real(member.value()); });
  return false;
}

void append(std::string& to, const json::value& value) {
  if (value.is_double()) {
    fmt::format_to(std::back_inserter(to), "{}", value.get_double());
  } else if (const json::array* const array = value.if_array()) {
    to += '[';
    for (const json::value& item : *array) {
      if (to.back() != '[') to += ',';
      append(to, item);
    }
    to += ']';
  } else if (const json::object* const object = value.if_object()) {
    to += '{';
    for (const auto& member : *object) {
      if (to.back() != '{') to += ',';
      to.append(json::serialize(json::string(member.key()))).append(":");
      append(to, member.value());
    }
    to += '}';
  } else {
    to += json::serialize(value);
  }
}

}  // namespace

// Most values have no such number, and the library is faster.
std::string json_text(const json::value& value) {
  if (!has_real(value)) return json::serialize(value);
  std::string text;
  append(text, value);
  return text;
}

}  // namespace carillon::server
