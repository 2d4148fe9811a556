// Entries that the database cannot take at the moment, laid over it: reads go on while a full disk
// keeps changes out.
//
//   Overlay overlay(database);
//   overlay.add(batch.entries());
//   database.get(kJobs, key, &overlay);
//
// Thread safety: none.
#pragma once

#include <rocksdb/utilities/write_batch_with_index.h>

#include <string_view>

namespace carillon::queue {

class RocksDatabase;

class Overlay {
 public:
  explicit Overlay(const RocksDatabase& database) : database_(database) {}

  // Lays them over what there is already.
  void add(std::string_view entries);

  rocksdb::WriteBatchWithIndex& entries() { return entries_; }

 private:
  const RocksDatabase& database_;
  rocksdb::WriteBatchWithIndex entries_{rocksdb::BytewiseComparator(), 0, true};
};

}  // namespace carillon::queue
