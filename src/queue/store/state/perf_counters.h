// What RocksDB counts of this thread's work while an object of these lives.
//
//   const Counting off(rocksdb::kDisable);
//
// RocksDB counts comparisons, blocks and much more for each thread, if nobody says otherwise. That
// costs a queue a tenth of its speed, and nobody reads it. The thread is its owner's, who may count
// for purposes of his own: so the level before comes back.
#pragma once

#include <rocksdb/perf_level.h>

namespace carillon::queue {

class Counting {
 public:
  explicit Counting(rocksdb::PerfLevel level) : before_(rocksdb::GetPerfLevel()) {
    rocksdb::SetPerfLevel(level);
  }
  ~Counting() { rocksdb::SetPerfLevel(before_); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  rocksdb::PerfLevel before_;
};

}  // namespace carillon::queue
