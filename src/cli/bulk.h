// Changes of many jobs of a tube, for `carillon retry`, `move`, `spread`, `clear` and `cancel`.
//
//   return change_many(client, {.verb = "cancel-jobs", .tube = "mail", .filter = filter});
#pragma once

#include <chrono>
#include <string>

#include "cli/client.h"
#include "cli/job_filter.h"

namespace carillon::cli {

struct BulkRequest {
  std::string verb;  // of the protocol: "retry-jobs"
  std::string done;  // of a message: "retried"
  std::string tube;
  std::string to = {};                // of move-jobs
  std::chrono::milliseconds over{0};  // of spread-jobs
  JobFilter filter = {};
  bool all = false;
  bool dry_run = false;
};

// Adds the options that say which jobs: the filter, --all and --dry-run.
void add_bulk_options(CLI::App& command, BulkRequest& request, std::string_view states);

// Changes the jobs, prints how many, and says on standard error how far it is, and which were left.
// Returns the exit code: 1 if some were left. Throws UsageError if neither a filter nor --all says
// which jobs.
int change_many(Client& client, const BulkRequest& request);

}  // namespace carillon::cli
