// One slot of a worker: takes one job after the other and runs the command for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "cli/child_process.h"
#include "cli/client.h"
#include "cli/error_output.h"
#include "cli/process_guard.h"
#include "cli/wait.h"
#include "cli/worker.h"
#include "cli/worker_tubes.h"

namespace carillon::cli {

// State that the slots of one worker share. Every member may be used from any thread.
struct WorkerState {
  explicit WorkerState(const std::vector<std::string>& of) : tubes(of) {}

  ProcessGuard guard;                      // of the running commands; made first: it forks
  WorkerTubes tubes;                       // to take jobs from
  Event stop;                              // take no more jobs
  Event kill;                              // kill the running commands
  std::atomic<int> running{0};             // number of running commands
  std::atomic<int> disconnected{0};        // number of slots without a connection
  std::atomic<bool> told{false};           // that ready jobs are held back for a time
  std::atomic<bool> told_for_good{false};  // that they are until somebody resumes the tube
  std::atomic<bool> failed{false};         // run_worker() returns kFailure
};

// Adds 1 to `count` while the object exists.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

// Connects to the server. Throws Unavailable.
Client connect_worker(const WorkerOptions& options, int interrupt_fd);

class WorkerSlot {
 public:
  // `options` and `state` must outlive the slot.
  WorkerSlot(const WorkerOptions& options, WorkerState& state, Client client);

  // Works until the worker is stopped, or `options.until` ends it. Writes errors to standard error;
  // throws nothing.
  void run() noexcept;

 private:
  struct Task;    // a reserved job and its counters at the server
  struct Result;  // how its command ended
  struct Ending;  // the command to the server that ends the reservation

  void work();
  void introduce(Client& client);
  void reconnect();
  bool take_job();
  bool wait_for_held_back();
  void perform(const Task& task);
  Result run_command(const Task& task);
  void wait_and_touch(ChildProcess& child, const Task& task, Result& result);
  bool touch(const Task& task, Result& result);
  Ending ending_of(const Task& task, const Result& result);
  Ending failed(const Task& task, const Result& result);
  Ending failed_uncounted(const Task& task);
  std::chrono::milliseconds delay_after(std::uint64_t failures);
  std::string settle(const Task& task, const Result& result);
  void hold(const Task& task, std::chrono::milliseconds pause);

  const WorkerOptions& options_;
  WorkerState& state_;
  ErrorOutput errors_;              // of its commands
  std::optional<Client> client_;    // none: disconnected
  std::optional<TubeWatch> watch_;  // of that connection; none: it has sent no command yet
  bool held_back_ = false;          // the tubes have ready jobs that a reserve does not get now
  std::uint64_t reconnects_ = 0;    // tries since the last finished job or lasting connection
  std::chrono::steady_clock::time_point connected_at_ = std::chrono::steady_clock::now();
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace carillon::cli
