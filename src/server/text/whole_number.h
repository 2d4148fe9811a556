// Numbers in texts: all digits, or no number.
//
//   whole_number<std::uint16_t>("11300") == 11300        whole_number<unsigned>("1f", 16) == 31
//   no number: whole_number<std::uint16_t>("65536"), ("7x"), (" 7"), ("+7"), ("-7") and ("")
//
// Thread safety: pure.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace carillon::server {

// Returns the number whose digits are the whole text. Returns none if the text has anything else,
// a sign and blanks included, or if the number does not fit.
template <std::unsigned_integral Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace carillon::server
