// The version of all that a store writes: of the directory, of the log's files, and of each record.
// There is one number. Records grow by fields with tags (tagged_fields.h); what cannot be read by
// its tags is another version, and a store of another version is refused.
#pragma once

#include <cstdint>
#include <string>

namespace carillon::queue {

inline constexpr std::uint8_t kFormatVersion = 1;

// What the state has under kFormatKey.
inline constexpr const char* kFormatKey = "f";
inline std::string format_name() {
  return "carillon-queue " + std::to_string(kFormatVersion);
}
// The end of a sentence that begins with the place of the store.
inline std::string other_format(const std::string& format) {
  return "was made by another version of Carillon: its format is '" + format +
         "', and this version knows '" + format_name() + "'";
}

}  // namespace carillon::queue
