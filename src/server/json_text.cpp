// JSON strings, UTF-8 and Base64 (json_text.h).
#include "server/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace carillon::server {
namespace {

// Returns the length in bytes of the UTF-8 sequence at the front, or 0 if there is none.
// REQUIRES: `bytes` is not empty.
std::size_t utf8_sequence(std::string_view bytes) {
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

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = utf8_sequence(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(3, bytes.size()))) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= bytes.size() ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

void append_json_string(std::string& to, std::string_view text) {
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
  const bool plain = is_utf8(text);
  fmt::format_to(std::back_inserter(to), "\"{}{}\":", name, plain ? "" : "_base64");
  if (plain) return append_json_string(to, text);
  to.append("\"").append(to_base64(text)).append("\"");
}

}  // namespace carillon::server
