// One slot of a worker: the thread that takes one job after the other and runs the command for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "cli/child_process.h"
#include "cli/client.h"
#include "cli/wait.h"
#include "cli/worker.h"

namespace carillon::cli {

/// What the slots of one worker share. Every member may be used from any thread.
struct WorkerState {
  Event stop;                        // take no more jobs
  Event kill;                        // and do not wait for those that run
  std::atomic<int> running{0};       // commands
  std::atomic<int> disconnected{0};  // slots without a server
  std::atomic<bool> failed{false};   // the worker's exit code is to say so
};

/// Connects to the server and watches the tubes of `options`. Throws Unavailable.
Client connect_worker(const WorkerOptions& options, int interrupt_fd);

class WorkerSlot {
 public:
  /// `options` and `state` have to outlive it.
  WorkerSlot(const WorkerOptions& options, WorkerState& state, Client client)
      : options_(options), state_(state), client_(std::move(client)) {}

  /// Works until the worker is stopped or there is nothing more to do. Reports what goes wrong;
  /// throws nothing.
  void run() noexcept;

 private:
  struct Task;    // a reserved job and what the server knows of it
  struct Result;  // what came of its command
  struct Ending;  // what the server is to do with the job then

  void work();
  void reconnect();
  bool take_job();
  void perform(const Task& task);
  Result run_command(const Task& task);
  std::optional<std::string> attend(ChildProcess& child, const Task& task);
  Ending ending_of(const Task& task, bool succeeded);
  std::string settle(const Task& task, const Result& result);
  void hold(const Task& task, std::chrono::milliseconds pause);

  const WorkerOptions& options_;
  WorkerState& state_;
  std::optional<Client> client_;  // none: disconnected
  std::uint64_t reconnects_ = 0;  // tries since a job was finished, or a connection lasted
  std::chrono::steady_clock::time_point connected_at_ = std::chrono::steady_clock::now();
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace carillon::cli
