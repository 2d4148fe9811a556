// Which bytes a name may have (names.h).
#include "server/api/names.h"

#include <algorithm>
#include <array>

namespace carillon::server {

namespace {

constexpr std::array<bool, 256> kNameBytes = [] {
  std::array<bool, 256> is{};
  constexpr std::string_view kAll =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()";
  for (char c : kAll) is[static_cast<unsigned char>(c)] = true;
  return is;
}();

}  // namespace

bool is_name_byte(char c) {
  return kNameBytes[static_cast<unsigned char>(c)];
}

bool is_word(std::string_view text) {
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f;
  };
  return !text.empty() && text.size() <= queue::kMaxKey &&
         std::all_of(text.begin(), text.end(), is_plain);
}

bool is_tube_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxTubeName && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), is_name_byte);
}

bool is_content_type(std::string_view type) {
  return !type.empty() &&
         std::all_of(type.begin(), type.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool is_key(std::string_view key) {
  return is_word(key) && key.front() != '"';
}

}  // namespace carillon::server
