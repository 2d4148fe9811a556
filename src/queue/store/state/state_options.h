// How RocksDB is set up to keep the state of a queue: its column families and its options.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "carillon/queue/disk_store.h"

namespace carillon::queue {

// The column families, in the order in which they are opened. record_keys.h says what each holds.
enum Family : std::size_t { kMeta, kJobs, kIndex, kBodies, kKeys, kSchedules };
inline constexpr std::size_t kFamilies = 6;

// The same bytes, as RocksDB's type and as the standard library's.
inline rocksdb::Slice slice(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}
inline std::string_view view(const rocksdb::Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

// A compaction copies the living large bodies from this share of their files, the oldest ones.
inline constexpr double kBodiesCopied = 0.5;
// With this share of their bytes dead, a compaction is begun for that.
inline constexpr double kBodiesDead = 0.5;

// Where all files of a state are read and written (no_wait_files.h).
rocksdb::Env* state_environment();
rocksdb::DBOptions state_options(const DiskStoreOptions& options);
std::vector<rocksdb::ColumnFamilyDescriptor> state_families(const DiskStoreOptions& options);

}  // namespace carillon::queue
