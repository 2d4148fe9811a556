// Escapes control characters (visible_text.h).
#include "server/visible_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "server/json_text.h"

namespace carillon::server {
namespace {

bool is_bidi_control(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string visible(std::string_view text, std::string_view kept) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    const bool is_control = c.code < ' ' && kept.find(text.front()) == std::string_view::npos;
    if (c.size == 0 || is_control) {
      fmt::format_to(std::back_inserter(shown), "\\x{:02X}",
                     static_cast<unsigned char>(text.front()));
    } else if ((c.code >= 0x7F && c.code < 0xA0) || is_bidi_control(c.code)) {
      fmt::format_to(std::back_inserter(shown), "\\u{:04X}", static_cast<unsigned>(c.code));
    } else {
      shown += text.substr(0, c.size);
    }
    text.remove_prefix(std::max<std::size_t>(c.size, 1));
  }
  return shown;
}

}  // namespace carillon::server
