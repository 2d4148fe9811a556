// Numbers and checksums as RocksDB writes them, and whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "carillon/queue/store.h"
#include "carillon/require.h"

namespace carillon::queue {

// REQUIRES: the number is within `bytes`.
template <typename Number>
Number number_at(std::string_view bytes, std::size_t at) {
  CARILLON_REQUIRE(at <= bytes.size() && bytes.size() - at >= sizeof(Number), at, bytes.size());
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <typename Number>
void append_number(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// A CRC-32C that stands among bytes that have a CRC-32C of their own.
constexpr std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Throws StoreError.
inline std::string file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw StoreError("cannot read " + path.string() + ": " + error.message());
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size)))
    throw StoreError("cannot read " + path.string());
  return bytes;
}

// Throws StoreError.
inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes << std::flush;
  if (!file) throw StoreError("cannot write " + path.string());
}

}  // namespace carillon::queue
