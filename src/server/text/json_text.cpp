// JSON strings, UTF-8, and Base64 by OpenSSL (json_text.h).
#include "server/text/json_text.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "carillon/require.h"

namespace carillon::server {
namespace {

// The bytes of a text as OpenSSL takes them.
unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}
const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Returns the length in bytes of the UTF-8 sequence at the front; 0 if `bytes` begins otherwise.
// REQUIRES: `bytes` is not empty.
std::size_t utf8_sequence(std::string_view bytes) {
  CARILLON_REQUIRE(!bytes.empty());
  const auto at = [bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  // The range of the second byte. It is smaller after some first bytes, to exclude forms that are
  // longer than needed, surrogates and numbers above U+10FFFF.
  unsigned char least = 0x80;
  unsigned char most = 0xBF;
  std::size_t size = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    size = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    size = 3;
    if (first == 0xE0) least = 0xA0;
    if (first == 0xED) most = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    size = 4;
    if (first == 0xF0) least = 0x90;
    if (first == 0xF4) most = 0x8F;
  }
  if (size == 0 || bytes.size() < size || at(1) < least || at(1) > most) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  }
  return size;
}

}  // namespace

Utf8Character first_character(std::string_view bytes) {
  const std::size_t size = utf8_sequence(bytes);
  if (size <= 1) return {.code = static_cast<unsigned char>(bytes[0]), .size = size};
  // The first byte has a bit less of the character with each byte that follows; those have six.
  char32_t code = static_cast<unsigned char>(bytes[0]) & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i)
    code = code << 6 | (static_cast<unsigned char>(bytes[i]) & 0x3FU);
  return {.code = code, .size = size};
}

void append_utf8(std::string& to, char32_t code) {
  CARILLON_REQUIRE(code <= 0x10FFFF, code);
  if (code < 0x80) {
    to += static_cast<char>(code);
    return;
  }
  const int size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  const auto lead = static_cast<unsigned char>(0xF00U >> size);  // as many ones as bytes
  to += static_cast<char>(lead | code >> 6 * (size - 1));
  for (int left = size - 2; left >= 0; --left)
    to += static_cast<char>(0x80U | (code >> 6 * left & 0x3FU));
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = utf8_sequence(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string utf8;
  while (!text.empty()) {
    const std::size_t size = utf8_sequence(text);
    utf8 += size == 0 ? "\uFFFD" : text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return utf8;
}

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // with a zero behind it
  const int size = EVP_EncodeBlock(bytes_of(text), bytes_of(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(bytes_of(bytes), bytes_of(text), static_cast<int>(text.size()));
  if (size < 0 || static_cast<std::size_t>(size) != bytes.size() || bytes.size() < padding)
    return std::nullopt;
  bytes.resize(bytes.size() - padding);
  // OpenSSL passes over spaces around the text, and over bits that belong to no byte.
  return to_base64(bytes) == text ? std::optional(bytes) : std::nullopt;
}

void append_json_string(std::string& to, std::string_view text) {
  CARILLON_REQUIRE_DEBUG(is_utf8(text), text);
  to += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (static_cast<unsigned char>(c) >= ' ') {
      to += c;
    } else {
      fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned char>(c));
    }
  }
  to += '"';
}

void append_json_field(std::string& to, std::string_view name, std::string_view text) {
  CARILLON_REQUIRE_DEBUG(name.find_first_of("\"\\") == std::string_view::npos, name);
  const bool plain = is_utf8(text);
  fmt::format_to(std::back_inserter(to), "\"{}{}\":", name, plain ? "" : kBase64Suffix);
  if (plain) return append_json_string(to, text);
  to.append("\"").append(to_base64(text)).append("\"");
}

}  // namespace carillon::server
