// The bytes of a file, for tests that cut and damage them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace carillon::queue {

// All of a file, read at once: byte by byte a sanitizer makes it slow.
inline std::string contents(const std::filesystem::path& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// Where the zeros begin that are at its end.
inline std::size_t end_of(const std::string& bytes) {
  return bytes.find_last_not_of('\0') + 1;
}

}  // namespace carillon::queue
