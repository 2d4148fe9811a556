// FlushWatch: finds out that RocksDB has left a flush in its queue.
//
//   watch.begin();                             // when a flush was asked for
//   ...
//   if (watch.is_left(database)) ...           // from time to time, while the flush has not ended
//
// Once a flush has failed, RocksDB may carry out a later one only when it is told of one more. Who
// waits for it waits for ever, and a flush that is asked for beside it may end the process by an
// assertion. So it is a failure. Seen in 7.8 of Debian 12.
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
  // Looks whether a flush runs or is about to, but at most each kBetweenLooks. Returns true when
  // three looks one after the other have found none: not at the first one, because a process that
  // was stopped and goes on needs a moment. A flush that waits for RocksDB's thread, which also
  // deletes files and serves all databases of the process, is not left.
  bool is_left(rocksdb::DB& database);

 private:
  std::chrono::steady_clock::time_point next_look_;
  int looks_in_vain_ = 0;
};

}  // namespace carillon::queue
