// How RocksDB is set up to keep the state of a queue: its column families and its options.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstddef>
#include <vector>

namespace carillon::queue {

// The column families, in the order in which they are opened. record_keys.h says what each holds.
enum Family : std::size_t { kMeta, kJobs, kIndex, kBodies };
inline constexpr std::size_t kFamilies = 4;

struct StateOptions {
  std::size_t read_cache = 64 << 20;  // bytes of blocks read from files
  std::size_t file_bytes = 32 << 20;  // of a sorted file, about
  std::size_t large_body = 4 << 10;   // bodies of at least so many bytes are kept apart
  std::size_t max_open_files = 512;   // sorted files and files of bodies
};

rocksdb::DBOptions state_options(const StateOptions& options);
std::vector<rocksdb::ColumnFamilyDescriptor> state_families(const StateOptions& options);

}  // namespace carillon::queue
