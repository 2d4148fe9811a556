// Makes a table readable again that RocksDB cannot open, though its blocks are whole.
//
//   if (const auto mended = mend_table("data/000012.sst", "work/000012.sst")) ...
//
// Such a table has lost a block of its index, its properties, or its end, without which RocksDB
// reads none of its data. But the blocks of data stand one behind the other at the beginning of the
// file, and each ends with its checksum: the size of a block is that for which the checksum is
// right, and its entries are in the order of their keys. So the copy gets a new index, which has
// each block that was found, new properties and a new end. Nothing is taken that is not proved by a
// checksum.
//
// What RocksDB writes is in its format.h and block_based_table_builder.cc:
//   block := entry* restart:u32* restarts:u32     compressed or not, then type:u8 crc:u32
//   entry := varint(shared) varint(added) varint(size) key value      `shared`: of the key before
//   key   := bytes sequence:u64
// A table with other checksums than CRC-32C (state_options.cpp) is not mended.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace carillon::queue {

struct MendedTable {
  // Of the blocks that were found. The MANIFEST knows what the table had.
  std::string first;
  std::string last;
  // Blocks between two others are damaged: keys behind the first and before the second may be lost.
  std::vector<std::pair<std::string, std::string>> gaps;
};

// Writes `to`, a mended copy of `from`. Returns nothing, and writes nothing, if no block of data is
// found. Memory: the table. Throws StoreError if a file cannot be read or written.
std::optional<MendedTable> mend_table(const std::string& from, const std::string& to);

}  // namespace carillon::queue
