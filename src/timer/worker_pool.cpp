#include "timer/worker_pool.h"

#include <system_error>
#include <utility>

#include "carillon/require.h"
#include "timer/thread_setup.h"
#include "timer/timer_core.h"

namespace carillon::detail {

unsigned WorkerPool::start(const std::shared_ptr<TimerCore>& core) {
  unsigned started = 0;
  unsigned number = 0;
  for (Worker& worker : workers_) {
    std::string name = core->options().name + "-" + std::to_string(number++);
    try {
      worker.thread = start_thread(std::move(name), [core, this, &stats = worker.stats] {
        work(*core, stats);
        core->thread_ended();
      });
      ++started;
    } catch (const std::system_error&) {
      if (started == 0) throw;
    }
  }
  return started;
}

bool WorkerPool::push(BlockList& due) noexcept {
  const bool many = due.holds_several();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    queue_.append(due);
  }
  many ? work_.notify_all() : work_.notify_one();
  return true;
}

void WorkerPool::work(TimerCore& core, RunStats& stats) noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return closed_ || !queue_.empty(); });
    if (closed_) return;
    TimerBlock& block = queue_.pop();
    lock.unlock();
    std::int64_t now = core.steady_now();
    core.run(block, stats, now);
    lock.lock();
  }
}

BlockList WorkerPool::close() noexcept {
  BlockList rest;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    std::swap(rest, queue_);
  }
  work_.notify_all();
  return rest;
}

void WorkerPool::join() noexcept {
  {
    const std::lock_guard lock(mutex_);
    CARILLON_REQUIRE(closed_);
  }
  for (Worker& worker : workers_) {
    if (!worker.thread.joinable()) continue;
    if (worker.thread.get_id() == std::this_thread::get_id()) {
      worker.thread.detach();
    } else {
      worker.thread.join();
    }
  }
}

void WorkerPool::add_to(TimerStats& sum) const noexcept {
  for (const Worker& worker : workers_) worker.stats.add_to(sum);
}

}  // namespace carillon::detail
