// Texts in JSON: strings, and bytes that are no UTF-8.
//
//   append_json_field(line, "body", bytes);    // "body":"a\\nb", or "body_base64":"/w=="
//
// Thread safety: pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace carillon::server {

// A character, and how many bytes it has in UTF-8.
struct Utf8Character {
  char32_t code = 0;
  std::size_t size = 0;
};

// Returns the character at the front; one of 0 bytes if what stands there is not UTF-8. REQUIRES:
// `bytes` is not empty.
Utf8Character first_character(std::string_view bytes);

// REQUIRES: `code` is at most U+10FFFF.
void append_utf8(std::string& to, char32_t code);

// Returns true if the bytes are UTF-8 as RFC 3629 defines it: shortest forms, no surrogates,
// nothing above U+10FFFF.
bool is_utf8(std::string_view bytes);

// Returns the text with U+FFFD in the place of each byte that belongs to no UTF-8.
std::string to_utf8(std::string_view text);

// What follows the name of a text in JSON that is not UTF-8: NAME_base64 is its Base64.
inline constexpr std::string_view kBase64Suffix = "_base64";

// Returns the bytes in Base64 with padding (RFC 4648, section 4).
std::string to_base64(std::string_view bytes);
// Returns none if the text is not what to_base64() returns for some bytes.
std::optional<std::string> from_base64(std::string_view text);

// Appends the text as a string of JSON (RFC 8259), in quotes. REQUIRES: it is UTF-8.
void append_json_string(std::string& to, std::string_view text);

// Appends "name":"text"; if the text is not UTF-8, as JSON strings must be, "name_base64":"Base64".
// REQUIRES: the name needs no escape.
void append_json_field(std::string& to, std::string_view name, std::string_view text);

}  // namespace carillon::server
