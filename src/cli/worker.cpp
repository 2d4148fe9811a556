// Starts a worker's slots, and stops them at a signal.

#include "cli/worker.h"

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <thread>

#include "cli/exit_status.h"
#include "cli/output.h"
#include "cli/stop_signals.h"
#include "cli/wait.h"
#include "cli/worker_slot.h"

namespace carillon::cli {
namespace {

class Worker {
 public:
  explicit Worker(const WorkerOptions& options) : state_(options.tubes) {
    // All connections are made before the first slot works: if the server is not there, the user
    // gets one error, and no job has been taken.
    for (std::uint32_t i = 0; i < options.slots; ++i)
      slots_.emplace_back(options, state_, connect_worker(options, -1));
  }

  int run() {
    StopSignals signals;
    std::atomic<std::size_t> left{slots_.size()};
    std::vector<std::thread> threads;
    for (WorkerSlot& slot : slots_) {
      threads.emplace_back([this, &slot, &left] {
        slot.run();
        if (--left == 0) all_ended_.set();
      });
    }
    obey(signals);
    for (std::thread& thread : threads) thread.join();
    return state_.failed ? kFailure : kSuccess;
  }

 private:
  // Handles signals until all slots have ended.
  void obey(StopSignals& signals) {
    try {
      signals.wait(all_ended_.fd());
      state_.stop.set();
      const int running = state_.running;
      remark(
          running == 0
              ? std::string("carillon work: stopping")
              : fmt::format(
                    "carillon work: stopping when {} running job{} done; a second signal kills {}",
                    running, running == 1 ? " is" : "s are", running == 1 ? "it" : "them"));
      signals.wait(all_ended_.fd());
      state_.kill.set();
      while (true) signals.wait(all_ended_.fd());
    } catch (const Interrupted&) {
      // All slots have ended.
    }
  }

  WorkerState state_;
  Event all_ended_;
  std::deque<WorkerSlot> slots_;  // emplace_back() does not move earlier slots
};

}  // namespace

int run_worker(const WorkerOptions& options) {
  return Worker(options).run();
}

}  // namespace carillon::cli
