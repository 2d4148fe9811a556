// Texts of JSON fields (json_fields.h).
#include "cli/json_fields.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "server/text/json_text.h"
#include "server/text/json_value.h"

namespace carillon::cli {

namespace json = boost::json;

std::string text_of(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : server::json_text(value);
}

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? std::string() : text_of(*value);
}

std::string bytes_in(const json::object& object, std::string_view name) {
  if (object.contains(name)) return text_in(object, name);
  return server::from_base64(text_in(object, fmt::format("{}{}", name, server::kBase64Suffix)))
      .value_or("");
}

void add_body(json::object& object, const std::string& body) {
  if (server::is_utf8(body)) {
    object["body"] = body;
  } else {
    object["body_base64"] = server::to_base64(body);
  }
}

}  // namespace carillon::cli
