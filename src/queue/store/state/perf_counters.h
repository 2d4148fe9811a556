// Turns off what RocksDB counts of this thread's work, while an object of this class lives.
//
//   const Counting off(rocksdb::kDisable);
//
// By default RocksDB counts comparisons, blocks and much more for each thread. That costs a queue a
// tenth of its speed, and nobody reads the counts. The thread belongs to the owner of the queue,
// who may count for another purpose: so the destructor restores the level.
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
