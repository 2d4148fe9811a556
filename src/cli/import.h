// The two halves of `carillon import`. Both print what was done, or would be done, and return the
// exit code. If one of them throws Failure, what it has put stays, and it can be run again: no job
// is lost or doubled.
//
//   ImportRequest request;
//   request.file = "jobs.jsonl";
//   return import_file(request);
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cli/server_address.h"
#include "server/text/address.h"

namespace carillon::cli {

struct ImportRequest {
  ServerAddress server;
  std::optional<std::string> file;  // "-": standard input
  std::optional<server::Address> beanstalkd;
  std::map<std::string, std::string> tubes;  // and their new names; empty: all
  // Names beanstalkd's process instead of its own `id`.
  std::string instance;
  // The user's name for the import of a file; empty: it has no name. Batches that were put with
  // another one, or without one, are not known again, so the same file can be imported anew.
  std::string once;
  bool dry_run = false;  // only checks the lines, or shows which jobs there are
  bool json = false;
};

// Puts the jobs of a file (file_import.cpp). REQUIRES: there is a file.
int import_file(const ImportRequest& request);
// Moves the jobs of a running beanstalkd (beanstalkd_import.cpp). REQUIRES: there is a beanstalkd.
int import_beanstalkd(const ImportRequest& request);

}  // namespace carillon::cli
