// TablesApart: reads each table of a family by itself, and what is in memory.
//
//   TablesApart tables;
//   const auto at = tables.scan(database, family, kIndex, from, to);
//   for (; at->Valid(); at->Next()) ...                   // keys rise, each comes once
//
// An iterator of RocksDB's merges all tables, and ends where one of them cannot be read. A damaged
// block of a table with few entries thus hides a wide range of keys of all others. Here each table
// is asked alone, and goes around its own damage.
//
// *What comes may be old.* An erasure does not show, and neither does what the damaged block had
// said: each key comes with the latest value that can be read, if any. A reader must ask elsewhere
// whether the entry is still there.
//
// A table that is too damaged to be opened counts as empty. Any other error ends the iterator.
//
// Memory: for each table that was needed, its index and one block. Thread safety: any thread.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/iterator.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "queue/store/state/state_options.h"

namespace carillon::queue {

class TablesApart {
 public:
  TablesApart();
  ~TablesApart();
  TablesApart(const TablesApart&) = delete;
  TablesApart& operator=(const TablesApart&) = delete;

  // Returns an iterator at the first key >= `from`; it ends before `to`.
  std::unique_ptr<rocksdb::Iterator> scan(rocksdb::DB& database,
                                          rocksdb::ColumnFamilyHandle* handle, Family family,
                                          std::string_view from, std::string_view to);

 private:
  struct Table;
  class Merge;

  rocksdb::Status add_tables(const rocksdb::ColumnFamilyMetaData& files, Family family,
                             std::string_view from, std::string_view to, Merge& merge);
  std::shared_ptr<Table> open(const std::string& path, rocksdb::Status& status);

  std::mutex mutex_;
  // Protected by mutex_: those that were needed by the last scan, by path.
  std::map<std::string, std::shared_ptr<Table>> tables_;
};

}  // namespace carillon::queue
