// Attributes of events, and their data (cloud_event.h).
#include "server/push/cloud_event.h"

#include <fmt/format.h>

#include <boost/beast/core/string.hpp>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <cstdint>
#include <string_view>

#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::server::push {

namespace {

namespace json = boost::json;

// Encodes as CloudEvents requires for HTTP (section 3.1.3.2): everything except printable ASCII,
// and also " and %.
std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char byte : text) {
    const bool stays = byte > ' ' && byte <= '~' && byte != '"' && byte != '%';
    if (stays) {
      encoded += byte;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
  }
  return encoded;
}

using Error = boost::system::error_code;

// A handler for the parser that keeps nothing: so a body is checked without memory for it.
struct Nothing {
  // NOLINTBEGIN(readability-identifier-naming): the parser's names
  constexpr static std::size_t max_object_size = SIZE_MAX;
  constexpr static std::size_t max_array_size = SIZE_MAX;
  constexpr static std::size_t max_key_size = SIZE_MAX;
  constexpr static std::size_t max_string_size = SIZE_MAX;
  // NOLINTEND(readability-identifier-naming)
  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return true; }
  bool on_object_end(std::size_t, Error&) { return true; }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_key_part(json::string_view, std::size_t, Error&) { return true; }
  bool on_key(json::string_view, std::size_t, Error&) { return true; }
  bool on_string_part(json::string_view, std::size_t, Error&) { return true; }
  bool on_string(json::string_view, std::size_t, Error&) { return true; }
  bool on_number_part(json::string_view, Error&) { return true; }
  bool on_int64(std::int64_t, json::string_view, Error&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, Error&) { return true; }
  bool on_double(double, json::string_view, Error&) { return true; }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(json::string_view, Error&) { return true; }
  bool on_comment(json::string_view, Error&) { return true; }
};

bool is_json(std::string_view text) {
  json::basic_parser<Nothing> parser(json::parse_options{});
  boost::system::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  return !error && used == text.size();
}

// Returns true if the type is one of JSON, by RFC 6839: application/json, text/json, or with +json.
bool is_json_type(std::string_view type) {
  type = type.substr(0, type.find_first_of("; "));
  return boost::beast::iequals(type, "application/json") ||
         boost::beast::iequals(type, "text/json") ||
         (type.size() > 5 && boost::beast::iequals(type.substr(type.size() - 5), "+json"));
}

void add_field(std::string& object, std::string_view name, std::string_view text) {
  object += fmt::format(R"({}"{}":)", object.empty() ? "{" : ",", name);
  append_json_string(object, to_utf8(text));
}

std::string source_of(const Event& event) {
  return "/tubes/" + percent_encoded(event.tube);
}

}  // namespace

std::string in_json(const Event& event) {
  std::string object;
  add_field(object, "specversion", "1.0");
  add_field(object, "id", event.id);
  add_field(object, "source", source_of(event));
  add_field(object, "type", event.type);
  add_field(object, "time", format_timestamp(event.time));
  if (!event.key.empty()) add_field(object, "subject", event.key);
  add_field(object, "datacontenttype", event.content_type);
  const bool is_text = boost::beast::iequals(event.content_type.substr(0, 5), "text/");
  if (is_json_type(event.content_type) && is_json(event.body)) {
    object += ",\"data\":" + event.body;
  } else if (is_text && is_utf8(event.body)) {
    add_field(object, "data", event.body);
  } else {
    object += ",\"data_base64\":\"" + to_base64(event.body) + '"';
  }
  return object + '}';
}

void add_event_headers(std::vector<std::pair<std::string, std::string>>& headers,
                       const Event& event) {
  headers.emplace_back("ce-specversion", "1.0");
  headers.emplace_back("ce-id", event.id);
  headers.emplace_back("ce-source", source_of(event));
  headers.emplace_back("ce-type", event.type);
  headers.emplace_back("ce-time", format_timestamp(event.time));
  if (!event.key.empty()) headers.emplace_back("ce-subject", percent_encoded(event.key));
}

}  // namespace carillon::server::push
