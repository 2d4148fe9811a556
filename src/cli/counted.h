// Numbers in sentences, with their nouns in the singular or the plural.
//
//   counted(1, "job") == "1 job"
//   counted(2, "job") == "2 jobs"
//   line_numbers(3, 3) == "line 3"
//   line_numbers(3, 5) == "lines 3 to 5"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace carillon::cli {

// REQUIRES: the plural of the noun is the noun with an s.
inline std::string counted(std::uint64_t number, std::string_view noun) {
  std::string text = std::to_string(number) + " ";
  text += noun;
  if (number != 1) text += 's';
  return text;
}

inline std::string line_numbers(std::uint64_t first, std::uint64_t last) {
  if (first == last) return "line " + std::to_string(first);
  return "lines " + std::to_string(first) + " to " + std::to_string(last);
}

}  // namespace carillon::cli
