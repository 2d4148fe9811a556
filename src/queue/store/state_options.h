// How RocksDB is set up to keep the state of a queue: its column families and its options.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstddef>
#include <vector>

#include "queue/store/rocks_options.h"

namespace carillon::queue {

struct StateOptions {
  std::size_t read_cache = 64 << 20;  // bytes of blocks read from files
  std::size_t file_bytes = 32 << 20;  // of a sorted file, about
  std::size_t large_body = 4 << 10;   // bodies of at least so many bytes are kept apart
};

rocksdb::DBOptions state_options();
std::vector<rocksdb::ColumnFamilyDescriptor> state_families(const StateOptions& options);

}  // namespace carillon::queue
