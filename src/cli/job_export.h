// Writes the jobs of a running server, what is set for its tubes and groups, and its schedules, as
// lines of JSON (job_file.h): `carillon export`.
//
//   ExportFile file("jobs.jsonl", /*resume=*/false);
//   JobExport job_export(client, file, {.server = "127.0.0.1:11300"}, stop, line);
//   job_export.run();
//
// The tubes come in the order of their names: of each what is set for it and its groups, and the
// pages of list-jobs. After the jobs of a page stands a line that tells where the next one begins.
// So an export that was interrupted goes on from the last such line of its file. A job that a
// worker moves on meanwhile may be listed twice; it is written once. The schedules come last, so
// that no schedule of a file that is imported comes before the jobs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"
#include "cli/client.h"
#include "cli/progress_line.h"
#include "cli/stop_signals.h"

namespace carillon::cli {

// What to say of a tube of which the server cannot read all records.
std::string missing_jobs(std::string_view tube);

// A set of ids of jobs: a bit for each in the stretches of ids that it has any of.
class IdSet {
 public:
  // Returns false if the set has it.
  bool insert(std::uint64_t id);

 private:
  std::unordered_map<std::uint64_t, std::vector<bool>> stretches_;
};

// Where the lines go: a file, or standard output.
class ExportFile {
 public:
  // Throws Failure: a file must not exist, or with `resume` it must, and be an export. Without a
  // name it is standard output.
  ExportFile(const std::optional<std::string>& name, bool resume);

  // Throws Failure.
  void write(std::string_view lines);
  // Everything is on the disk when this returns. Throws Failure.
  void finish();

  // What an export before has written.
  bool begun() const { return !id_.empty(); }
  bool ended() const { return ended_; }
  const std::string& tube() const { return tube_; }  // of the last page; empty: there was none
  const std::optional<std::string>& after() const { return after_; }
  std::uint64_t jobs() const { return jobs_; }
  IdSet& ids() { return ids_; }
  // Jobs that are not in it, because the server cannot read their bodies; and tubes of which it
  // cannot read all records, so that jobs may be missing.
  std::set<std::uint64_t>& damaged() { return damaged_; }
  std::set<std::string>& incomplete() { return incomplete_; }
  bool is_whole() const { return damaged_.empty() && incomplete_.empty(); }

 private:
  void read_on();
  bool take(const std::string& line, std::vector<std::uint64_t>& unconfirmed);

  std::string name_;  // in messages
  base::FileDescriptor fd_;
  bool is_file_ = false;
  std::string id_;
  bool ended_ = false;
  std::string tube_;
  std::optional<std::string> after_;
  std::uint64_t jobs_ = 0;
  IdSet ids_;
  std::set<std::uint64_t> damaged_;
  std::set<std::string> incomplete_;
};

struct JobExportOptions {
  std::string server;              // for the first line
  std::vector<std::string> tubes;  // empty: all
};

// Not thread-safe.
class JobExport {
 public:
  // All must outlive this.
  JobExport(Client& client, ExportFile& file, const JobExportOptions& options,
            const StopSignals& stop, ProgressLine& line);

  // Throws Interrupted if a signal has come, and Failure.
  void run();

  // In the whole file.
  std::uint64_t jobs() const { return jobs_; }
  std::uint64_t tubes() const { return tubes_; }
  std::uint64_t schedules() const { return schedules_; }
  // Why schedules, or what is set for groups, are not in it; empty: they are.
  const std::string& left_out() const { return left_out_; }

 private:
  bool is_wanted(const std::string& tube) const;
  void export_settings(const std::string& tube);
  void export_tube(const std::string& tube, std::optional<std::string> after);
  void export_schedules();
  std::string line_of(const std::string& listed, std::vector<std::uint64_t>& damaged);

  Client& client_;
  ExportFile& file_;
  const JobExportOptions& options_;
  const StopSignals& stop_;
  ProgressLine& line_;
  std::uint64_t jobs_ = 0;
  std::uint64_t tubes_ = 0;
  std::uint64_t there_were_ = 0;  // jobs at the beginning
  std::uint64_t schedules_ = 0;
  std::string left_out_;
};

}  // namespace carillon::cli
