// Escapes what is not seen (visible_text.h).
#include "server/text/visible_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "server/text/json_text.h"

namespace carillon::server {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Characters that nobody sees, or that change how others are seen: the controls of U+007F to
// U+009F, the ends of lines and paragraphs, and all that are Bidi_Control or
// Default_Ignorable_Code_Point in the Unicode Character Database (PropList.txt,
// DerivedCoreProperties.txt). The variation selectors U+FE00 to U+FE0F are left out: many an emoji
// is written with one. The joiners U+200C and U+200D are not, though emoji of families and words in
// Persian and Hindi have them: whether one is seen depends on the font and on both neighbours, and
// to tell names apart is worth more here than to show them well.
constexpr std::array kHidden = {
    Range{0x007F, 0x009F},   Range{0x00AD, 0x00AD},   Range{0x034F, 0x034F},
    Range{0x061C, 0x061C},   Range{0x115F, 0x1160},   Range{0x17B4, 0x17B5},
    Range{0x180B, 0x180F},   Range{0x200B, 0x200F},   Range{0x2028, 0x202E},
    Range{0x2060, 0x206F},   Range{0x3164, 0x3164},   Range{0xFEFF, 0xFEFF},
    Range{0xFFA0, 0xFFA0},   Range{0xFFF0, 0xFFF8},   Range{0x1BCA0, 0x1BCA3},
    Range{0x1D173, 0x1D17A}, Range{0xE0000, 0xE0FFF},
};

bool is_hidden(char32_t c) {
  return c >= kHidden.front().first &&
         std::any_of(kHidden.begin(), kHidden.end(),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
}

// As JSON has it: what is above U+FFFF is written as its two surrogates.
void append_escape(std::string& to, char32_t c) {
  const auto code = static_cast<unsigned>(c);
  if (code > 0xFFFF) {
    fmt::format_to(std::back_inserter(to), "\\u{:04X}\\u{:04X}", 0xD800 + ((code - 0x10000) >> 10),
                   0xDC00 + (code & 0x3FFU));
  } else {
    fmt::format_to(std::back_inserter(to), "\\u{:04X}", code);
  }
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
    } else if (is_hidden(c.code)) {
      append_escape(shown, c.code);
    } else {
      shown += text.substr(0, c.size);
    }
    text.remove_prefix(std::max<std::size_t>(c.size, 1));
  }
  return shown;
}

}  // namespace carillon::server
