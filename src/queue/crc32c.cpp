// CRC-32C by tables, eight bytes a step ("slicing by 8": Kounavis and Berry, ISCC 2005).

#include "queue/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace carillon::queue {

namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
constexpr std::size_t kSlice = 8;

// kTables[k][b]: what byte b does to the checksum once k more bytes have followed it.
using Tables = std::array<std::array<std::uint32_t, 256>, kSlice>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < kSlice; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::uint32_t so_far, std::string_view bytes) {
  std::uint32_t crc = ~so_far;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  if constexpr (std::endian::native == std::endian::little) {
    for (; left >= kSlice; at += kSlice, left -= kSlice) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, sizeof word);
      word ^= crc;
      crc = 0;
      for (std::size_t k = 0; k < kSlice; ++k) crc ^= kTables[kSlice - 1 - k][(word >> (8 * k)) & 0xff];
    }
  }
  for (; left > 0; ++at, --left) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint8_t>(*at)) & 0xff];
  return ~crc;
}

}  // namespace carillon::queue
