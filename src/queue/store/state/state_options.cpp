// RocksDB's options, each with its reason where it is not the usual one.

#include "queue/store/state/state_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "queue/store/state/kept_manifest.h"
#include "queue/store/state/no_wait_files.h"
#include "queue/store/state/written_files.h"

namespace carillon::queue {

namespace {

using rocksdb::ColumnFamilyOptions;

// A queue is a put and an erase at the head of an order: its dead entries lie together, where scans
// begin. A file in which half of any 1'024 neighbours are erasures is compacted soon, not when its
// turn by size comes.
constexpr std::size_t kErasureWindow = 1'024;
constexpr std::size_t kErasuresInIt = 512;

// No memtable is ever full by itself: the store decides when they are flushed, because only changes
// that are durable in the log may reach a file (rocks_state.h).
constexpr std::size_t kNeverFull = std::size_t{64} << 30;
constexpr int kNoLimit = 1 << 30;
constexpr int kManyMemtables = 1 << 10;  // times kNeverFull it must fit into 64 bits

ColumnFamilyOptions family_options(const DiskStoreOptions& options,
                                   const std::shared_ptr<rocksdb::Cache>& cache) {
  ColumnFamilyOptions family;
  family.write_buffer_size = kNeverFull;
  family.arena_block_size = 1 << 20;
  family.compression = rocksdb::kLZ4Compression;
  // RocksDB must never make a writer wait, because the writer is the server's loop. While
  // compaction is far behind, the store begins no flush (RocksState::behind).
  family.level0_slowdown_writes_trigger = family.level0_stop_writes_trigger = kNoLimit;
  // With room for 4 of them, Flush() waits when two memtables of failed flushes are there.
  family.max_write_buffer_number = kManyMemtables;
  family.soft_pending_compaction_bytes_limit = family.hard_pending_compaction_bytes_limit = 0;
  family.level_compaction_dynamic_level_bytes = true;
  const std::size_t file_bytes = std::max<std::size_t>(options.recent / 2, 1 << 20);
  family.target_file_size_base = file_bytes;
  family.max_bytes_for_level_base = 4 * file_bytes;
  family.table_properties_collector_factories = {
      rocksdb::NewCompactOnDeletionCollectorFactory(kErasureWindow, kErasuresInIt)};

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = 8 << 10;
  table.format_version = 5;
  table.checksum = rocksdb::kCRC32c;  // ours, too: table_mender.h
  // Index and filter in small parts: a look-up in a large file reads two blocks of them, not
  // megabytes.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.metadata_block_size = 8 << 10;
  table.optimize_filters_for_memory = true;
  // Their memory counts against the cache, so that it is bounded, too.
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_top_level_index_and_filter = true;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return family;
}

}  // namespace

// It lives as long as the process.
rocksdb::Env* state_environment() {
  static rocksdb::Env* const made =
      rocksdb::NewCompositeEnv(no_wait_files(keep_manifest(rocksdb::FileSystem::Default())))
          .release();
  return made;
}

rocksdb::DBOptions state_options(const DiskStoreOptions& options) {
  rocksdb::DBOptions database;
  database.env = state_environment();
  database.create_if_missing = true;
  database.create_missing_column_families = true;

  // The log is the truth. The families are flushed together, with the number of the last change in
  // them, and only when the store says so.
  database.atomic_flush = true;
  database.avoid_flush_during_shutdown = true;
  database.avoid_flush_during_recovery = true;

  // Only one thread writes: support for more costs time and gains nothing.
  database.allow_concurrent_memtable_write = false;
  database.enable_write_thread_adaptive_yield = false;

  // Little in the background, and its writes trickled to the disk, so that a write of the log does
  // not wait behind them.
  database.max_background_jobs = 2;
  database.bytes_per_sync = 1 << 20;
  database.avoid_unnecessary_blocking_io = true;  // files are deleted in the background
  database.max_open_files = static_cast<int>(options.max_open_files);
  database.max_file_opening_threads = 1;

  // RocksDB's own log is empty. If there is something in it, the start is refused: the usual mode
  // skips everything after the first damage.
  database.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  // RocksDB would allocate it ahead, in the size of a memtable.
  database.allow_fallocate = false;

  // A failed write in the background is tried again by the store, when there is something to
  // append.
  database.max_bgerror_resume_count = 0;

  database.file_checksum_gen_factory = file_sums();

  // Opening reads no statistics from the files, and nothing is kept for RocksDB's own observers.
  database.skip_stats_update_on_db_open = true;
  database.stats_dump_period_sec = 0;
  database.stats_persist_period_sec = 0;
  return database;
}

std::vector<rocksdb::ColumnFamilyDescriptor> state_families(const DiskStoreOptions& options) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.read_cache);
  const ColumnFamilyOptions plain = family_options(options, cache);
  ColumnFamilyOptions bodies = plain;
  bodies.enable_blob_files = true;
  bodies.min_blob_size = options.large_body;
  bodies.blob_compression_type = rocksdb::kLZ4Compression;
  bodies.blob_file_size = 2 * bodies.target_file_size_base;
  // Files of which half is dead are rewritten, the older half of them at the most.
  bodies.enable_blob_garbage_collection = true;
  bodies.blob_garbage_collection_age_cutoff = kBodiesCopied;
  bodies.blob_garbage_collection_force_threshold = kBodiesDead;
  ColumnFamilyOptions keys = plain;
  // A put asks for its key, which is mostly new: the filter of a memtable answers that without a
  // search. A full memtable has some 9 bits of it for each key of a small job, and fewer if there
  // are tokens and stories, too.
  keys.memtable_whole_key_filtering = true;
  keys.memtable_prefix_bloom_size_ratio =
      static_cast<double>(options.recent) / 512 / static_cast<double>(kNeverFull);
  return {{rocksdb::kDefaultColumnFamilyName, plain},
          {"jobs", plain},
          {"index", plain},
          {"bodies", bodies},
          {"keys", keys},
          {"schedules", plain}};
}

}  // namespace carillon::queue
