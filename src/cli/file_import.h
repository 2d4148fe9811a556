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

#include <map>
#include <optional>
#include <string>

#include "cli/server_address.h"

namespace carillon::cli {

struct FileImportRequest {
  ServerAddress server;
  std::optional<std::string> file;           // "-": standard input
  std::map<std::string, std::string> tubes;  // and their new names; empty: all
  // The user's name for this import; empty: it has no name. Batches that were put with another one,
  // or without one, are not known again, so the same file can be imported anew.
  std::string once;
  bool dry_run = false;  // only checks the lines
  bool json = false;
};

// Imports the file and prints what was done. Returns the exit code. Throws Failure if a line is
// wrong, if the server refuses a job, or if the file is an export that was not finished. What was
// put stays, and the import can be run again.
int import_file(const FileImportRequest& request);

}  // namespace carillon::cli
