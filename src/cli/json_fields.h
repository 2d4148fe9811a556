// Fields of JSON objects as texts, for people and for command lines.
//
//   text_in({{"id", 7}, {"state", "ready"}}, "id") == "7"
//   bytes_in({{"key_base64", "/w=="}}, "key") == "\xFF"
//
// Thread safety: pure.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

namespace carillon::cli {

// Returns the value as JSON writes it; a text without its quotes.
std::string text_of(const boost::json::value& value);
// Returns a field as text_of() does. Empty: there is no such field.
std::string text_in(const boost::json::object& object, std::string_view name);
// Returns the bytes that a client has named: from NAME, or if they are no UTF-8, NAME_base64.
std::string bytes_in(const boost::json::object& object, std::string_view name);

// Adds "body" if the bytes are UTF-8, else "body_base64" (RFC 4648): JSON has no other bytes.
void add_body(boost::json::object& object, const std::string& body);

}  // namespace carillon::cli
