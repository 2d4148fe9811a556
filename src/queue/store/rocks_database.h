// The RocksDB database of one data directory. It refuses a store that is not ours, writes batches
// with a durability mark (log_check.h), syncs its log, and resumes RocksDB after a full disk.
//
// Errors: every method that reads or writes throws StoreError. After a full disk the next write
// tries again. After a failed sync, or a failed write into space that the log had taken, all later
// writes and syncs throw.
//
// Thread safety: one thread, except that `reserve` and `write` may be called by several threads,
// one at a time, and `sync` by any thread at any time.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/rocks_store.h"
#include "queue/store/data_directory.h"
#include "queue/store/overlay.h"
#include "queue/store/record_codec.h"
#include "queue/store/rocks_options.h"
#include "queue/store/store_files.h"

namespace carillon::queue {

inline rocksdb::Slice slice(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}
template <std::size_t size>
rocksdb::Slice slice(const Bytes<size>& bytes) {
  return {bytes.data(), size};
}

class RocksDatabase {
 public:
  RocksDatabase(const std::string& path, const RocksStoreOptions& options);
  // Makes durable all that was written. It cannot report an error.
  ~RocksDatabase();
  RocksDatabase(const RocksDatabase&) = delete;
  RocksDatabase& operator=(const RocksDatabase&) = delete;

  // Takes disk space in the log for writes of this many bytes.
  void reserve(std::uint64_t bytes);
  // Returns a RocksDB batch of the durability mark and these entries (entries.h). Throws StoreError
  // if the bytes are no entries.
  rocksdb::WriteBatch batch(std::string_view entries = {}) const;
  // Writes a batch that `batch` has made, perhaps with more added to it. When it throws, nothing
  // has been written.
  Sequence write(rocksdb::WriteBatch& batch);
  // Writes all of a family to its sorted files, so that it needs the log no more.
  void flush(Family family);
  // Makes durable all that was written before the call, and returns the last sequence number that
  // is durable.
  Sequence sync();
  // Returns RocksDB's own sequence number: how many entries were ever written to it.
  std::uint64_t count() const { return written_number_.load(std::memory_order_acquire); }
  // After this call all writes and syncs throw.
  void fail_for_good(const StoreError& why);
  void refuse_if_failed() const;

  rocksdb::ColumnFamilyHandle* family(Family family) const { return opened_.families[family]; }

  // Returns the value under `key`, or none if there is none. Entries of the overlay hide those of
  // the database.
  std::optional<std::string> get(Family family, std::string_view key,
                                 Overlay* overlay = nullptr) const;
  // Returns an iterator at the first key >= `from`. It ends before `end`. `end` and the overlay
  // must outlive it.
  std::unique_ptr<rocksdb::Iterator> scan(Family family, std::string_view from,
                                          const rocksdb::Slice& end,
                                          Overlay* overlay = nullptr) const;
  // Throws StoreError if the iterator ended because of an error.
  void check(const rocksdb::Iterator& iterator) const;

  // Adds to a batch the format of a database with a journal, or of one without. Versions of
  // Carillon that know no journal refuse the former.
  void put_format(bool with_journal, rocksdb::WriteBatch& batch) const;

  const std::string& opening_warning() const { return opening_warning_; }
  // Returns "data directory PATH WHAT", for errors.
  std::string message(const std::string& what) const { return directory_.message(what); }

 private:
  // Watches for errors in RocksDB's own threads.
  class Troubles;

  struct Opened {
    std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families{};
    std::unique_ptr<rocksdb::DB> database;
    ~Opened();
  };

  void open(const RocksStoreOptions& options);
  void refuse_other_families() const;
  void check_format();
  void warn_of_cut_log();
  rocksdb::DB& database() const { return *opened_.database; }

  void seal();
  StoreError error(const std::string& what, const rocksdb::Status& status) const;

  DataDirectory directory_;
  std::shared_ptr<StoreFiles> files_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<Troubles> troubles_;
  Opened opened_;
  std::string opening_warning_;

  // The last numbers written, and the last ones known to be durable: the first two count our
  // appends, the other two are RocksDB's sequence numbers.
  std::atomic<Sequence> appended_ = 0;
  std::atomic<Sequence> durable_ = 0;
  std::atomic<std::uint64_t> written_number_ = 0;
  std::atomic<std::uint64_t> durable_number_ = 0;

  std::atomic<bool> failed_ = false;
  mutable std::mutex failure_mutex_;
  std::string failure_;  // protected by failure_mutex_; set once, before failed_
};

}  // namespace carillon::queue
