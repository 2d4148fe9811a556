// CRC-32C by the processor's own instruction where it has one, else by tables, eight bytes a step
// ("slicing by 8": Kounavis and Berry, ISCC 2005). The instruction is preferred because the tables
// are 8 KiB, which are not in the cache if checksums are rare.

#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace carillon::base {

namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
constexpr std::size_t kSlice = 8;

// kTables[k][b] is the change of the checksum by byte b when k more bytes follow it.
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

// Both functions take and return the checksum with all its bits inverted.
std::uint32_t by_tables(std::uint32_t crc, std::string_view bytes) {
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  if constexpr (std::endian::native == std::endian::little) {
    for (; left >= kSlice; at += kSlice, left -= kSlice) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, sizeof word);
      word ^= crc;
      crc = 0;
      for (std::size_t k = 0; k < kSlice; ++k)
        crc ^= kTables[kSlice - 1 - k][(word >> (8 * k)) & 0xff];
    }
  }
  for (; left > 0; ++at, --left)
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint8_t>(*at)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t crc,
                                                               std::string_view bytes) {
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t wide = crc;
  for (; left >= kSlice; at += kSlice, left -= kSlice) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; left > 0; ++at, --left) crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(*at));
  return crc;
}

const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
#else
constexpr bool kHasInstruction = false;
std::uint32_t by_instruction(std::uint32_t crc, std::string_view bytes) {
  return by_tables(crc, bytes);
}
#endif

}  // namespace

std::uint32_t crc32c(std::uint32_t so_far, std::string_view bytes) {
  return ~(kHasInstruction ? by_instruction(~so_far, bytes) : by_tables(~so_far, bytes));
}

std::uint32_t crc32c_by_tables(std::uint32_t so_far, std::string_view bytes) {
  return ~by_tables(~so_far, bytes);
}

}  // namespace carillon::base
