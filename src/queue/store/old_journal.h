// read_old_journal(): reads the journal that versions before 0.1.0 kept in front of RocksDB, so
// that their data directories can be opened.
//
// The file is a ring of blocks of 4 KiB, and a record begins at a block:
//
//   block 0  := magic:16 identity:u64 blocks:u32 crc32c:u32
//   record   := crc32c:u32 size:u32 number:u64 needs:u64 entries, then zeros
//
// The checksum of a record covers the identity, the number, the block, the size and what follows
// the number. RocksDB stored the number of the last record whose entries it has; those after it
// must be there without a gap. Only the last may be cut short: it was not durable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "queue/store/record_codec.h"

namespace carillon::queue {

// Returns the entries (entries.h) of each record behind `position`, in order. Throws StoreError if
// the file is missing, belongs to another directory, or lacks a record that was durable; and if
// RocksDB, which has had `count` entries in all its life, has fewer than a record says.
std::vector<std::string> read_old_journal(const std::string& path, const JournalPosition& position,
                                          std::uint64_t count);

}  // namespace carillon::queue
