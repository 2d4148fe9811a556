// FlushWatch: finds out that RocksDB has left a flush in its queue.
//
//   watch.begin();                             // when a flush was asked for
//   ...
//   if (watch.is_left(database)) ...           // from time to time, while the flush has not ended
//
// After a failed flush, RocksDB may leave a later flush in its queue until one more is asked for. A
// thread that waits for the flush waits for ever, and asking for one more may end the process by an
// assertion. So this counts as a failure. Seen in 7.8 of Debian 12.
//
// Thread safety: none.
#pragma once

#include <rocksdb/db.h>

#include <chrono>

namespace carillon::queue {

class FlushWatch {
 public:
  static constexpr std::chrono::seconds kBetweenLooks{5};

  FlushWatch() { begin(); }
  void begin();
  // Checks whether a flush runs or will soon run, at most once each kBetweenLooks. Returns true
  // when three checks in a row have found no flush. One check is not enough: a process that was
  // stopped and goes on needs a moment. A flush that waits for RocksDB's thread, which also deletes
  // files and serves all databases of the process, is not left.
  bool is_left(rocksdb::DB& database);

 private:
  std::chrono::steady_clock::time_point next_look_;
  int looks_in_vain_ = 0;
};

}  // namespace carillon::queue
