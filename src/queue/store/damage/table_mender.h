// Makes a table readable again that RocksDB cannot open, though its blocks are whole.
//
//   if (const auto mended = mend_table(bytes, 70'000, "work/000012.sst")) ...
//
// Such a table has lost a block of its index, its properties, or its end, without which RocksDB
// reads none of its data. But the blocks of data stand one behind the other at the beginning of the
// file, and each ends with its checksum: the size of a block is that for which the checksum is
// right, and its entries are in the order of their keys. So the copy gets a new index, which has
// each block that was found, new properties and a new end. Each block is proved by its checksum.
//
// Only behind a damaged block nothing says where the next one begins, so each place of the next 32
// KiB is tried: if none is found there, what stands behind it is lost. A block that a client has
// planted in a body could be taken there. That needs a damaged index and this damaged block.
//
// What RocksDB writes is in its format.h and block_based_table_builder.cc:
//   block := entry* restart:u32* restarts:u32     compressed or not, then type:u8 crc:u32
//   entry := varint(shared) varint(added) varint(size) key value      `shared`: of the key before
//   key   := bytes sequence:u64
// A table with other checksums than CRC-32C (state_options.cpp) is not mended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace carillon::queue {

struct MendedTable {
  // First and last key of the blocks found. The MANIFEST knows what the table had.
  std::string first;
  std::string last;
  // Blocks between two others are damaged: keys behind the first and before the second may be lost.
  std::vector<std::pair<std::string, std::string>> gaps;
};

// Writes `to`, a mended copy of the table, which had `written` bytes and may have others now.
// Returns nothing, and writes nothing, if no block of data is found. Throws StoreError if the file
// cannot be written.
std::optional<MendedTable> mend_table(std::string table, std::uint64_t written,
                                      const std::string& to);

}  // namespace carillon::queue
