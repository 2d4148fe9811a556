// Puts the jobs of a file (job_file.h) into a server, and sets what the file says of tubes, groups
// and schedules: `carillon import FILE`.
//
//   FileImport import(&client, "jobs.jsonl", in, options, stop, line);
//   import.run();                         // throws; what was put stays, and run() can come again
//
// The jobs go in batches, each put by one put-jobs: all of it or nothing. A batch has a token, of
// the export's id, its first line and its tube, that counts for a week. So when the same file is
// imported again, the server knows the batches that it has. A name that the user gives the import
// is a part of the token, too: to put the same lines again, or other ones behind the same first
// line. To make that work, where a batch ends
// depends on the file alone: at another tube, after so many jobs or bytes, before a key that it has
// already, and at the end of each page of the export, because an export that was interrupted goes
// on there.
//
// What is set can be set again, in the same way. A tube that is to take no jobs takes them until
// the end of the file.
//
// A body that is too large for a batch is put by itself, with a key in place of the token; it has
// the checksum of the job as well, because the server does not compare what it has with what comes.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client.h"
#include "cli/job_file.h"
#include "cli/progress_line.h"
#include "cli/stop_signals.h"

namespace carillon::cli {

struct FileImportOptions {
  std::map<std::string, std::string> tubes;  // and their new names; empty: all
  bool dry_run = false;                      // only checks the lines
  // The user's name for this import; empty: none. Batches that were put with another one, or
  // without one, are not known again, so the same file can be imported anew.
  std::string once = {};
  std::uint64_t bytes = 0;  // of the file, for the progress; 0: not known
  // No line behind this one is read, from 1: last_line_to_import().
  std::uint64_t last_line = UINT64_MAX;
};

// Returns the number of the last line that may be imported. That is any, unless the file is an
// export that was not finished: when it goes on, it writes other lines behind the last page.
std::uint64_t last_line_to_import(std::istream& in);

// Not thread-safe.
class FileImport {
 public:
  // All must outlive this. `client` may be null for a dry run.
  FileImport(Client* client, std::string name, std::istream& in, const FileImportOptions& options,
             const StopSignals& stop, ProgressLine& line);

  // Throws Interrupted if a signal has come. Throws Failure if a line is wrong, if the server
  // refuses a job, or if the file is an export that was not finished.
  void run();

  std::uint64_t jobs() const { return jobs_; }        // put, or with a dry run, that would be
  std::uint64_t already() const { return already_; }  // put by an import before
  std::uint64_t met() const { return met_; }          // not put: the tube has a job with this key
  // Large bodies without a key, which got one, so that the import can be run again.
  std::uint64_t keyed() const { return keyed_; }
  // Jobs that expire before they are due. Those that would be dead then were buried, the others
  // were left out.
  std::uint64_t never_run() const { return never_run_; }
  std::uint64_t settings() const { return settings_; }    // of tubes and groups
  std::uint64_t schedules() const { return schedules_; }  // that were set
  // Types of lines that were passed over.
  const std::map<std::string, std::uint64_t>& passed_over() const { return passed_over_; }

 private:
  struct Pending {
    std::uint64_t number;  // of its line
    FileJob job;
  };
  void take(const std::string& text);
  void take_job(FileJob job);
  bool is_worth_putting(FileJob& job);
  void set(FileSetting setting);
  void set_tube(const std::string& tube, const std::string& options);
  void hold_back_puts();
  std::size_t most_in_batch(const std::string& tube);
  bool rename(std::string& tube) const;
  // Calls `action`. If the server refuses it, the line is named.
  template <class Action>
  void or_fail(Action action);
  bool has_pending_key(const std::string& key) const;
  void put_batch();
  void put_large(const Pending& large);
  PutAnswer put_one(const Pending& large, const std::string& options);
  void use(const std::string& tube);
  std::string token(const Pending& first) const;
  [[noreturn]] void fail(std::uint64_t line, std::string_view why) const;

  Client* client_;
  std::string name_;
  std::istream& in_;
  const FileImportOptions& options_;
  const StopSignals& stop_;
  ProgressLine& line_;
  std::string export_;            // its id; of a file without one, of its first line
  bool is_export_ = false;        // and not ended
  std::uint64_t number_ = 0;      // of the line
  std::uint64_t export_at_ = 0;   // the number of the export's first line
  std::vector<Pending> pending_;  // of one tube
  std::size_t bytes_ = 0;         // of their bodies and options
  std::string used_;
  std::uint64_t jobs_ = 0;
  std::uint64_t already_ = 0;
  std::uint64_t met_ = 0;
  std::uint64_t keyed_ = 0;
  std::uint64_t never_run_ = 0;
  std::uint64_t settings_ = 0;
  std::uint64_t schedules_ = 0;
  std::vector<FileSetting> at_end_;  // what holds back puts
  std::string batched_;              // the tube for which a batch has `most_` jobs
  std::size_t most_ = 0;
  std::map<std::string, std::uint64_t> passed_over_;
};

}  // namespace carillon::cli
