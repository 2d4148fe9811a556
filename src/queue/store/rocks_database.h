// The database of one data directory: opened or refused, written to with marks, synced, and taken
// up again after a full disk.
//
// Thread safety: one thread, and of `reserve` and `write` one at a time; `sync` may run in others
// at the same time.
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
  // Makes durable what was written.
  ~RocksDatabase();
  RocksDatabase(const RocksDatabase&) = delete;
  RocksDatabase& operator=(const RocksDatabase&) = delete;

  // Takes room in the log for writes of so many bytes, or throws StoreError.
  void reserve(std::uint64_t bytes);
  // The entries (entries.h), behind what each batch begins with. Throws StoreError if they are
  // none.
  rocksdb::WriteBatch batch(std::string_view entries = {}) const;
  // Writes all of such a batch, and of what was added to it, or throws StoreError and has written
  // nothing.
  Sequence write(rocksdb::WriteBatch& batch);
  // Brings all of a family into its sorted files, out of the log. Throws StoreError.
  void flush(Family family);
  // Makes durable what was written before, and returns the last sequence number that is. Throws
  // StoreError.
  Sequence sync();
  // RocksDB's own sequence number: how many entries were written to it in all its life.
  std::uint64_t count() const { return written_number_.load(std::memory_order_acquire); }
  // After this nothing is written any more, and everything that is tried throws.
  void fail_for_good(const StoreError& why);
  void refuse_if_failed() const;

  rocksdb::ColumnFamilyHandle* family(Family family) const { return opened_.families[family]; }

  // The value under `key`, or nothing. With an overlay that is read over the database.
  std::optional<std::string> get(Family family, std::string_view key,
                                 Overlay* overlay = nullptr) const;
  // At the first key >= `from`, if it is < `end`. That and the overlay must outlive the iterator.
  std::unique_ptr<rocksdb::Iterator> scan(Family family, std::string_view from,
                                          const rocksdb::Slice& end,
                                          Overlay* overlay = nullptr) const;
  void check(const rocksdb::Iterator& iterator) const;

  // Puts into a batch the format of a database with a journal, which versions that know of none
  // refuse, or of one without.
  void put_format(bool with_journal, rocksdb::WriteBatch& batch) const;

  const std::string& opening_note() const { return note_; }
  // "data directory PATH WHAT", for errors.
  std::string message(const std::string& what) const { return directory_.message(what); }

 private:
  // What goes wrong in the background.
  class Troubles;

  struct Opened {
    std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families{};
    std::unique_ptr<rocksdb::DB> database;
    ~Opened();
  };

  void open(const RocksStoreOptions& options);
  void refuse_other_families() const;
  void check_format();
  void note_what_was_left_out();
  rocksdb::DB& database() const { return *opened_.database; }

  void seal();
  StoreError error(const std::string& what, const rocksdb::Status& status) const;

  DataDirectory directory_;
  std::shared_ptr<StoreFiles> files_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<Troubles> troubles_;
  Opened opened_;
  std::string note_;

  // Sequence numbers, ours and those of RocksDB: written last, and known to be durable.
  std::atomic<Sequence> appended_ = 0;
  std::atomic<Sequence> durable_ = 0;
  std::atomic<std::uint64_t> written_number_ = 0;
  std::atomic<std::uint64_t> durable_number_ = 0;

  std::atomic<bool> failed_ = false;
  mutable std::mutex failure_mutex_;
  std::string failure_;  // protected by failure_mutex_; set once, before failed_
};

}  // namespace carillon::queue
