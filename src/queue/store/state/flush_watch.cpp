// Finds a flush that does not run (flush_watch.h).

#include "queue/store/state/flush_watch.h"

#include <rocksdb/env.h>

#include <cstdint>

namespace carillon::queue {

void FlushWatch::begin() {
  next_look_ = std::chrono::steady_clock::now() + kBetweenLooks;
  looks_in_vain_ = 0;
}

bool FlushWatch::is_left(rocksdb::DB& database) {
  constexpr int kLooks = 3;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return looks_in_vain_ >= kLooks;
  next_look_ = now + kBetweenLooks;
  std::uint64_t running = 0;
  database.GetIntProperty(rocksdb::DB::Properties::kNumRunningFlushes, &running);
  const bool waits = database.GetEnv()->GetThreadPoolQueueLen(rocksdb::Env::HIGH) > 0;
  looks_in_vain_ = running > 0 || waits ? 0 : looks_in_vain_ + 1;
  return looks_in_vain_ >= kLooks;
}

}  // namespace carillon::queue
