// WorkerPool: the threads of TimerExecutor::pool(). They take due timers in the order in
// which they were pushed.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "timer/block_list.h"
#include "timer/run_stats.h"

namespace carillon::detail {

class TimerCore;

// Thread-safe. The threads hold the core while they run, and the core holds the pool.
class WorkerPool {
 public:
  explicit WorkerPool(unsigned threads) : workers_(threads) {}

  // Returns how many threads it has started. Throws std::system_error if no thread can be started.
  // If some can, the pool works with those.
  unsigned start(const std::shared_ptr<TimerCore>& core);

  // Takes all of `due`. Returns false if the pool is closed; `due` is unchanged then.
  bool push(BlockList& due) noexcept;

  // From here on no task begins. Returns the timers whose tasks have not begun.
  BlockList close() noexcept;

  // Waits until the threads have finished their present tasks and ended, except for the calling
  // thread. REQUIRES: close() was called.
  void join() noexcept;

  void add_to(TimerStats& sum) const noexcept;

 private:
  struct Worker {
    RunStats stats;
    std::thread thread;
  };

  void work(TimerCore& core, RunStats& stats) noexcept;

  std::vector<Worker> workers_;
  std::mutex mutex_;  // protects the following
  std::condition_variable work_;
  BlockList queue_;
  bool closed_ = false;
};

}  // namespace carillon::detail
