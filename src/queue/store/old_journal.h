// add_old_journal(): reads the journal that versions before 0.1.0 kept in front of RocksDB, so that
// their data directories can be opened.
//
// The file is a ring of blocks of 4 KiB, and a record begins at a block:
//
//   block 0  := magic:16 identity:u64 blocks:u32 crc32c:u32
//   record   := crc32c:u32 size:u32 number:u64 needs:u64 entry*, then zeros
//   entry    := value_size:u32 key_size:u16 family:u8 is_put:u8 key value
//
// The checksum of a record covers the identity, the number, the block, the size and what follows
// the number. RocksDB stored the identity, and the number of the last record whose entries it has;
// those after it must be there without a gap. Only the last may be cut short: it was not durable.
#pragma once

#include <rocksdb/write_batch.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "queue/store/state_options.h"

namespace carillon::queue {

// Under which key of kMeta RocksDB has the position: version:u8 identity:u64 number:u64.
inline constexpr std::string_view kOldPositionKey = "j";

// Adds to `batch` what each record behind `position` writes, in order. Throws StoreError if the
// file at `path` is missing, belongs to another directory, or lacks a record that was durable; and
// if RocksDB, which has had `count` entries in all its life, has fewer than a record says.
void add_old_journal(const std::string& path, std::string_view position, std::uint64_t count,
                     const std::array<rocksdb::ColumnFamilyHandle*, kFamilies>& families,
                     rocksdb::WriteBatch& batch);

}  // namespace carillon::queue
