// CRC-32C (Castagnoli; RFC 3720, appendix B.4), the checksum in the records of RocksDB's log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace carillon::base {

// The checksum of all bytes so far and then `bytes`, given that of those so far (0 at first). About
// 2 bytes per ns by tables, several times as many by the processor's own instruction.
std::uint32_t crc32c(std::uint32_t so_far, std::string_view bytes);

// The same on every processor.
std::uint32_t crc32c_by_tables(std::uint32_t so_far, std::string_view bytes);

}  // namespace carillon::base
