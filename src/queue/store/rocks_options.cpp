// RocksDB's options, each with its reason where it is not the usual one.

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

// A queue is a put and an erase at the head of an order: its dead entries lie together, where scans
// begin. A file in which half of any 1'024 neighbours are erasures is compacted soon, not when its
// turn by size comes.
constexpr std::size_t kErasureWindow = 1'024;
constexpr std::size_t kErasuresInIt = 512;

ColumnFamilyOptions family_options(const RocksStoreOptions& options, double share,
                                   const std::shared_ptr<rocksdb::Cache>& cache) {
  ColumnFamilyOptions family;
  family.write_buffer_size =
      static_cast<std::size_t>(static_cast<double>(options.write_buffer) * share);
  family.max_write_buffer_number = 3;
  family.compression = rocksdb::kLZ4Compression;
  // Writers are made to wait by these only when compaction is far behind: a put must not pay for a
  // passing burst.
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
  // Their memory counts against the cache, so that it is bounded, too.
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

  // What of the log may be replayed has been found out before, by log_check.h. In this mode RocksDB
  // replays just that, and refuses to if some families have later changes in their files already.
  database.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  database.max_total_wal_size = 2 * options.write_buffer;

  // One thread writes: what is for many costs time and brings nothing.
  database.allow_concurrent_memtable_write = false;
  database.enable_write_thread_adaptive_yield = false;

  // Little in the background, and its writes trickled to the disk, so that a sync of the log does
  // not wait behind them.
  database.max_background_jobs = 2;
  database.bytes_per_sync = 1 << 20;
  database.avoid_unnecessary_blocking_io =
      true;  // files are deleted in the background, not by a reader
  database.max_open_files = 512;
  database.max_file_opening_threads = 1;

  // Files are deleted slowly, and bit by bit: where a deleted block is discarded at once (the mount
  // option `discard`), the removal of 32 MB kept every sync waiting for 40 ms. None is deleted
  // faster because there are many (the ratio).
  constexpr std::int64_t kBytesPerSecond = 128 << 20;
  constexpr double kAnyRatio = 1e6;
  constexpr std::uint64_t kBit = 1 << 20;
  database.sst_file_manager.reset(rocksdb::NewSstFileManager(
      rocksdb::Env::Default(), nullptr, "", kBytesPerSecond, true, nullptr, kAnyRatio, kBit));

  // A failed write in the background is tried again by the store, when there is something to
  // append.
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
  // Files of which half is dead are rewritten, the older half of them at the most.
  bodies.enable_blob_garbage_collection = true;
  bodies.blob_garbage_collection_age_cutoff = 0.5;
  bodies.blob_garbage_collection_force_threshold = 0.5;
  return {{rocksdb::kDefaultColumnFamilyName, family_options(options, 0.125, cache)},
          {"jobs", family_options(options, 0.125, cache)},
          {"index", family_options(options, 0.25, cache)},
          {"bodies", bodies}};
}

}  // namespace carillon::queue
