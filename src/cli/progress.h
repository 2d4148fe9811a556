// Numbers of bytes for people, and the line that shows how far a copy is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace carillon::cli {

// Returns "0 bytes", "1 byte", "1023 bytes", "1.0 KiB", "2.7 GiB".
std::string size_text(std::uint64_t bytes);

// Returns "45 %, 1.2 GiB of 2.7 GiB, 310.0 MiB/s, 4s left", from the average speed so far. Speed
// and time are left out in the first half second.
std::string progress_text(std::uint64_t done, std::uint64_t total,
                          std::chrono::milliseconds elapsed);

}  // namespace carillon::cli
