// Where a text may be cut (text.h).
#include "base/text.h"

namespace carillon::base {

std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const auto is_inside = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; };
  constexpr int kMostInside = 3;  // bytes of a sign behind its first one
  std::size_t end = most;
  for (int i = 0; i < kMostInside && end > 0 && is_inside(text[end]); ++i) --end;
  return text.substr(0, is_inside(text[end]) ? most : end);
}

}  // namespace carillon::base
