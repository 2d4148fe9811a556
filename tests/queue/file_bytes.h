// The bytes of a file, for tests that cut or damage files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace carillon::queue {

// Returns all of a file. It is read at once, because byte by byte is slow under a sanitizer.
inline std::string contents(const std::filesystem::path& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline void flip(const std::filesystem::path& file, std::size_t at, int bit = 0) {
  std::string bytes = contents(file);
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
  write(file, bytes);
}

// Copies the directory of an open store, as a crash would leave it. The log may get another file
// meanwhile: then it is copied again.
inline void copy_open_store(const std::filesystem::path& from, const std::filesystem::path& to) {
  constexpr int kTries = 100;
  std::error_code error;
  for (int i = 0; i < kTries; ++i) {
    std::filesystem::remove_all(to);
    std::filesystem::copy(from, to, error);
    if (!error) return;
  }
  throw std::filesystem::filesystem_error("copy", from, to, error);
}

// Returns the size without the zeros at the end.
inline std::size_t end_of(const std::string& bytes) {
  return bytes.find_last_not_of('\0') + 1;
}

}  // namespace carillon::queue
