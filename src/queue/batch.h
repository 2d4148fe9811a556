#pragma once
// Changes as the entries of one write to the database, which they enter all together.
//
//   Batch batch(database);
//   batch.begin();
//   batch.add(changes);
//   database.write(batch.entries());
//
// Thread safety: none.

#include <rocksdb/write_batch.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/rocks_database.h"

namespace carillon::queue {

class Batch {
 public:
  explicit Batch(const RocksDatabase& database) : database_(&database) {}

  // Empties it, and puts in what each write to the database begins with.
  void begin();
  void add(const Changes& changes);

  bool empty() const { return changes_ == 0; }
  // Calls of `add`.
  std::size_t changes() const { return changes_; }
  std::size_t bytes() const { return entries_.GetDataSize(); }
  rocksdb::WriteBatch& entries() { return entries_; }

  // The body of a job that is new in it.
  std::optional<std::string_view> body(JobId id) const;

  // More bytes than `add` would add.
  static std::size_t bytes_at_most(const Changes& changes);

 private:
  struct Body {
    JobId id;
    std::size_t begin;
    std::size_t size;
  };

  void put(Family family, const rocksdb::Slice& key, const rocksdb::Slice& value);
  void erase(Family family, const rocksdb::Slice& key);
  void add(const JobChange& change);
  void add(const TubeRecord& tube);

  const RocksDatabase* database_;
  rocksdb::WriteBatch entries_;
  std::size_t changes_ = 0;
  std::vector<Body> bodies_;  // within the entries
};

}  // namespace carillon::queue
