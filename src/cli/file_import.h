// Puts the jobs of a file (job_file.h) into a server, and sets what the file says about tubes,
// groups and schedules: `carillon import FILE`.
//
// The jobs go in batches over the line protocol, each put by one put-jobs: the server puts all of a
// batch or nothing. A batch has a token, made of the export's id, its first line and its tube. The
// token counts for a week, so when the same file is imported again, the server knows the batches
// that it has. A name that the user gives the import is a part of the token, too: to put the same
// lines again, or other ones behind the same first line. To make that work, where a batch ends
// depends on the file alone: at another tube, after a number of jobs or bytes, before a key that it
// has already, and at the end of each page of the export, because an export that was interrupted
// goes on there.
//
// Settings and schedules go over HTTP. They can be set again, in the same way. A tube that must
// take no jobs takes them until the end of the file.
//
// A body that is too large for a batch is put by itself, with a key in place of the token; it has
// the checksum of the job as well, because the server does not compare what it has with what comes.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>

#include "cli/api.h"
#include "cli/client.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"

namespace carillon::cli {

struct FileImportOptions {
  std::string name;                          // the file, in messages
  std::map<std::string, std::string> tubes;  // and their new names; empty: all
  // The user's name for this import; empty: it has no name. Batches that were put with another one,
  // or without one, are not known again, so the same file can be imported anew.
  std::string once = {};
  std::uint64_t bytes = 0;  // the size of the file, for the progress; 0: not known
  // No line behind this one is read, from 1: last_line_to_import().
  std::uint64_t last_line = UINT64_MAX;
};

// What an import has done so far.
struct FileImported {
  std::uint64_t jobs = 0;     // put, or with a dry run, that would be
  std::uint64_t already = 0;  // put by an import before
  std::uint64_t met = 0;      // not put: the tube has a job with this key
  // Large bodies without a key, which got one, so that the import can be run again.
  std::uint64_t keyed = 0;
  // Jobs that expire before they are due. Those that would be dead then were buried, the others
  // were left out.
  std::uint64_t never_run = 0;
  std::uint64_t settings = 0;                             // for tubes and groups
  std::uint64_t schedules = 0;                            // that were set
  std::map<std::string, std::uint64_t> passed_over = {};  // lines, by their type
};

// Returns the number of the last line that may be imported. An export that was not finished will
// have other lines behind its last page; from any other file all lines may be imported.
std::uint64_t last_line_to_import(std::istream& in);

// Without a client it only checks the lines. Throws Interrupted if a signal has come. Throws
// Failure if a line is wrong, if the server refuses a job, or if the file is an export that was not
// finished. What was put stays, and the import can be run again.
void import_lines(Client* client, Api& api, std::istream& in, const FileImportOptions& options,
                  const StopSignals& stop, ProgressLine& line, FileImported& done);

}  // namespace carillon::cli
