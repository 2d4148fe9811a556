// RocksDB's options, with the reason for each that is not the usual one.

#include "queue/store/rocks_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_manager.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace carillon::queue {

namespace {

using rocksdb::ColumnFamilyOptions;

// A queue erases at the head of its order. So its dead entries lie together, just where scans
// begin. A file in which 512 of any 1'024 neighbours are erasures is compacted soon, not only when
// RocksDB would choose it by its size.
constexpr std::size_t kErasureWindow = 1'024;
constexpr std::size_t kErasuresInIt = 512;

ColumnFamilyOptions family_options(const RocksStoreOptions& options, double share,
                                   const std::shared_ptr<rocksdb::Cache>& cache) {
  ColumnFamilyOptions family;
  family.write_buffer_size =
      static_cast<std::size_t>(static_cast<double>(options.write_buffer) * share);
  family.max_write_buffer_number = 3;
  family.compression = rocksdb::kLZ4Compression;
  // Writers wait only if compaction is far behind: a put must not pay for a short burst.
  family.level0_slowdown_writes_trigger = 40;
  family.level0_stop_writes_trigger = 80;
  family.level_compaction_dynamic_level_bytes = true;
  family.target_file_size_base = std::max<std::size_t>(family.write_buffer_size, 1 << 20);
  family.max_bytes_for_level_base = 4 * family.target_file_size_base;
  family.table_properties_collector_factories = {
      rocksdb::NewCompactOnDeletionCollectorFactory(kErasureWindow, kErasuresInIt)};

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = 8 << 10;
  table.format_version = 5;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.optimize_filters_for_memory = true;
  // Index and filter blocks count against the cache, so that their memory is bounded too.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return family;
}

}  // namespace

rocksdb::DBOptions database_options(const RocksStoreOptions& options) {
  rocksdb::DBOptions database;
  database.create_if_missing = true;
  database.create_missing_column_families = true;

  // log_check.h has already found out which part of the log may be replayed. In this mode RocksDB
  // replays just that part. It refuses to if some families have later changes in their files.
  database.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  database.max_total_wal_size = 2 * options.write_buffer;

  // Only one thread writes, so the means for several writers would only cost time.
  database.allow_concurrent_memtable_write = false;
  database.enable_write_thread_adaptive_yield = false;

  // Little work in the background, and its writes go to the disk bit by bit, so that a sync of the
  // log does not wait behind them.
  database.max_background_jobs = 2;
  database.bytes_per_sync = 1 << 20;
  // Files are deleted in the background, not by a reader.
  database.avoid_unnecessary_blocking_io = true;
  database.max_open_files = 512;
  database.max_file_opening_threads = 1;

  // Files are deleted slowly, 1 MiB at a time: on a file system that discards deleted blocks at
  // once (the mount option `discard`), the removal of 32 MB kept every sync waiting for 40 ms. The
  // large ratio means: also if there is much to delete.
  constexpr std::int64_t kBytesPerSecond = 128 << 20;
  constexpr double kAnyRatio = 1e6;
  constexpr std::uint64_t kBit = 1 << 20;
  database.sst_file_manager.reset(rocksdb::NewSstFileManager(
      rocksdb::Env::Default(), nullptr, "", kBytesPerSecond, true, nullptr, kAnyRatio, kBit));

  // After a failed write in the background the store itself tries again, at the next append.
  database.max_bgerror_resume_count = 0;

  // Opening reads no statistics from the files, and nothing is kept for RocksDB's own observers.
  database.skip_stats_update_on_db_open = true;
  database.stats_dump_period_sec = 0;
  database.stats_persist_period_sec = 0;
  return database;
}

std::vector<rocksdb::ColumnFamilyDescriptor> family_descriptors(const RocksStoreOptions& options) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.read_cache);
  ColumnFamilyOptions bodies = family_options(options, 0.5, cache);
  bodies.enable_blob_files = true;
  bodies.min_blob_size = options.large_body;
  bodies.blob_compression_type = rocksdb::kLZ4Compression;
  bodies.blob_file_size = std::max<std::size_t>(options.write_buffer, 1 << 20);
  // Files with half of their bytes dead are rewritten; at most the older half of all files.
  bodies.enable_blob_garbage_collection = true;
  bodies.blob_garbage_collection_age_cutoff = 0.5;
  bodies.blob_garbage_collection_force_threshold = 0.5;
  return {{rocksdb::kDefaultColumnFamilyName, family_options(options, 0.125, cache)},
          {"jobs", family_options(options, 0.125, cache)},
          {"index", family_options(options, 0.25, cache)},
          {"bodies", bodies}};
}

}  // namespace carillon::queue
