#pragma once
// Entries that the database cannot take at the moment, laid over it: reads go on while a full disk keeps changes out.
//
//   Overlay overlay(database);
//   overlay.add(batch);
//   database.get(kJobs, key, &overlay);
//
// Thread safety: none.

#include <rocksdb/utilities/write_batch_with_index.h>
#include <rocksdb/write_batch.h>

namespace carillon::queue {

class RocksDatabase;

class Overlay {
 public:
  explicit Overlay(const RocksDatabase& database) : database_(database) {}

  // Lays the batch over what there is already.
  void add(const rocksdb::WriteBatch& batch);

  rocksdb::WriteBatchWithIndex& entries() { return entries_; }

 private:
  class Adder;

  const RocksDatabase& database_;
  rocksdb::WriteBatchWithIndex entries_{rocksdb::BytewiseComparator(), 0, true};
};

}  // namespace carillon::queue
