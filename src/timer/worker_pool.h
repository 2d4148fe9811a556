// WorkerPool: the threads of Executor::pool(), which run due timers in the order in which they
// come.
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

// Thread-safe. While its threads run they hold the core, which holds the pool.
class WorkerPool {
 public:
  explicit WorkerPool(unsigned threads) : workers_(threads) {}

  // Throws std::system_error if no thread can be started; one is enough to go on with.
  void start(const std::shared_ptr<TimerCore>& core);

  // Takes all of `due`. False: the pool is closed, and `due` as it was.
  bool push(BlockList& due) noexcept;

  // No task is begun from here on. Returns those that were not.
  BlockList close() noexcept;

  // Waits until the threads have ended their present tasks, and themselves; except for the calling
  // thread. REQUIRES: closed.
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
