// Moves the jobs of a running beanstalkd into Carillon: `carillon import --beanstalkd`.
//
//   BeanstalkdImport import(source, target, {.tubes = {{"mail", "post"}}}, stop, line);
//   if (!import.run()) ...                       // jobs are left that workers hold
//   print(import.moved().jobs());
//
// Each job is put into Carillon first, and deleted from beanstalkd when Carillon has acknowledged
// it. It is put with a key that names beanstalkd's process and the job's id there, and that counts
// for a week after the job is gone. So wherever an import is killed, the next one meets the key of
// each job that it finds again, and deletes it from beanstalkd without putting it twice.
//
// No job changes its state in beanstalkd, whenever the import is killed. Ready jobs are reserved,
// so that no worker of beanstalkd gets them meanwhile; they are ready again when the connection is
// lost. Delayed and buried ones are not reserved, because beanstalkd would make them ready then.
// They are read by peek. beanstalkd cannot list delayed jobs: all ids are asked for, beginning at
// those that it shows, until as many were found as it has. A delayed job that is due in less than
// two seconds is left until it is ready. beanstalkd tells a delay in whole seconds, rounded down; a
// second is added, so that no job is early.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"

namespace carillon::cli {

// Which tubes, and what they are called in Carillon; empty: all, with their own names.
using TubeNames = std::map<std::string, std::string>;

struct BeanstalkdImportOptions {
  TubeNames tubes;
  // Names beanstalkd's process instead of its own `id`.
  std::string instance;
};

// Jobs of one tube or of all.
struct JobCounts {
  std::uint64_t ready = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
  std::uint64_t reserved = 0;  // by workers

  std::uint64_t jobs() const { return ready + delayed + buried; }
};

struct TubeToImport {
  std::string name;
  JobCounts counts;
  std::chrono::seconds paused{0};  // what is left of its pause
};

// Not thread-safe.
class BeanstalkdImport {
 public:
  // All must outlive this. Throws Failure if both servers are the same, or if the target is not
  // Carillon.
  BeanstalkdImport(const server::Address& source, Client& target,
                   const BeanstalkdImportOptions& options, const StopSignals& stop,
                   ProgressLine& line);

  // Returns the tubes that are meant and have jobs.
  std::vector<TubeToImport> tubes();

  // Moves jobs until beanstalkd has no job that is ready, delayed or buried. Throws
  // Interrupted if a signal has come, and Failure if something went wrong; it can be run again.
  void run();

  const std::string& instance() const { return instance_; }
  // How many jobs were put, by the states that they had.
  const JobCounts& moved() const { return moved_; }
  // Jobs that an import before had put already.
  std::uint64_t already() const { return already_; }
  // Jobs that were put, and that a worker of beanstalkd took before they were deleted there.
  std::uint64_t taken() const { return taken_; }

 private:
  struct Found;
  struct DelayedId;
  void drain(const TubeToImport& tube);
  void drain_ready(const std::string& tube);
  void drain_one_by_one(const std::string& tube, PeekState state);
  void drain_delayed(const std::vector<TubeToImport>& tubes);
  std::vector<DelayedId> find_delayed(const std::vector<TubeToImport>& tubes);
  std::uint64_t highest_id_shown(const std::vector<TubeToImport>& tubes);
  std::uint64_t delayed_jobs(const std::vector<TubeToImport>& tubes);
  void move_delayed(const std::string& tube, std::span<const DelayedId> jobs);
  void move(Client& source, const std::string& tube, const std::vector<Found>& jobs);
  const std::string& new_name(const std::string& tube) const;
  void use(const std::string& new_name);
  void look_for_stop();

  const server::Address& address_;
  Client source_;
  Client& target_;
  const BeanstalkdImportOptions& options_;
  const StopSignals& stop_;
  ProgressLine& line_;
  std::string instance_;
  std::string used_;         // the tube of target_
  std::size_t at_once_ = 1;  // jobs
  JobCounts moved_;
  std::uint64_t already_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace carillon::cli
