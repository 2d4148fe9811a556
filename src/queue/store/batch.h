// Changes as entries, which are to enter the database all together.
//
//   Batch batch;
//   batch.add(changes);
//   rocksdb::WriteBatch all = database.batch(batch.entries());
//   database.write(all);
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/store.h"

namespace carillon::queue {

class Batch {
 public:
  void clear();
  void add(const Changes& changes);

  bool empty() const { return changes_ == 0; }
  // Calls of `add`.
  std::size_t changes() const { return changes_; }
  // As entries.h has them. The database's log takes no more bytes for them.
  std::string_view entries() const { return entries_; }

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

  void add(const JobChange& change);
  void add(const TubeRecord& tube);

  std::string entries_;
  std::size_t changes_ = 0;
  std::vector<Body> bodies_;  // within the entries
};

}  // namespace carillon::queue
