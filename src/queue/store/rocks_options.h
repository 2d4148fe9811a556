// How RocksDB is set up for a queue: its column families and its options.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstddef>
#include <vector>

#include "carillon/queue/rocks_store.h"

namespace carillon::queue {

// The column families, in the order in which they are opened. record_codec.h says what each holds.
enum Family : std::size_t { kMeta, kJobs, kIndex, kBodies };
inline constexpr std::size_t kFamilies = 4;

rocksdb::DBOptions database_options(const RocksStoreOptions& options);
std::vector<rocksdb::ColumnFamilyDescriptor> family_descriptors(const RocksStoreOptions& options);

}  // namespace carillon::queue
