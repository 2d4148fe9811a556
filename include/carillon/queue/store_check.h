// Reads a store that no process has open, verifies every checksum in it, and saves what is whole.
//
//   const StoreReport report = check_store("carillon-data", progress);
//   for (const std::string& line : report.damages) ...
//   if (!report.damages.empty()) salvage_store("carillon-data", "new", progress, note_lost_job);
//
// Both change nothing in the store. Damage may be anywhere: in a block of a table, its index, its
// filters, in the body of a job, in the log, or in the files that name the others. The rest is read
// around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/job.h"

namespace carillon::queue {

// A job with a part that cannot be read.
struct LostJob {
  JobId id = 0;
  std::string tube = {};          // empty: not known
  std::optional<UtcMs> due = {};  // none: it is buried, or not known
  std::string why = {};
  std::optional<std::string> body = {};  // if it can be read
};

struct StoreReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t jobs = 0;  // whole ones; check_store() does not count jobs that are only in the log
  std::uint64_t lost_jobs = 0;            // other jobs that are known
  std::vector<JobId> some_lost = {};      // the first kSome lost jobs
  std::vector<std::string> damages = {};  // a line each
  // Filled by salvage_store(): a line for each thing that is lost and is no job, with advice.
  std::vector<std::string> left_out = {};
  // Set by check_store(): false if the state cannot be opened. A salvage throws then, and only a
  // backup helps.
  bool can_be_salvaged = true;
  // A line for each run of changes that the log had and that cannot be read. Nobody knows what they
  // did: jobs that they put are missing, and a job that they deleted or moved may count as whole.
  std::vector<std::string> lost_changes = {};
  std::vector<std::string> dropped =
      {};  // changes that a crash has cut short before they were durable
  static constexpr std::size_t kSome = 10;
};

// Called often with the bytes that were read, and with all bytes. It may return false to end the
// work, which then throws StoreError.
using StoreProgress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

// Throws StoreError if there is no store in `path`, if another process has it open, or if it cannot
// be read at all. Memory: a few MiB, whatever the number of jobs, and the largest table whose index
// or end is damaged. The jobs are counted only if something is damaged. While it runs, there is a
// directory of links, with copies of the files whose index or end is damaged. Its name begins with
// `work`; if that is empty, it is among the system's temporary files.
StoreReport check_store(const std::string& path, const StoreProgress& progress,
                        const std::string& work = {});

// Makes a store in the directory `to`, which does not exist, with everything that is whole: each
// job that has its record and its body. Calls `lost` for the other jobs. Throws as check_store(),
// or what `lost` throws as StoreError; nothing is left of `to` then.
StoreReport salvage_store(const std::string& path, const std::string& to,
                          const StoreProgress& progress,
                          const std::function<void(const LostJob&)>& lost);

}  // namespace carillon::queue
