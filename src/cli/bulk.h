// Changes of many jobs of a tube, for `carillon retry`, `move`, `spread`, `clear` and `cancel`.
//
//   add_bulk_options<server::ChangeJobs>(command, asked, all, {.positionals = "tube"});
//   ... parse ...
//   return change_many<server::ChangeJobs>(
//       server, asked, {.row = "cancelJobs", .done = "deleted", .tube = "mail"});
//
// A change that takes long goes on in the server; the command waits for it, and stops it when it is
// interrupted.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "cli/asked.h"
#include "cli/server_address.h"
#include "server/api/bulk.h"

namespace carillon::cli {

// The options that choose jobs, for errors.
inline constexpr std::string_view kFilterOptions =
    "--state, --group, --key-prefix, --due-after, --due-before or --reason; or --all";

// Adds --all and --dry-run, and the options that choose jobs.
template <class Request>
void add_bulk_options(CLI::App& command, Asked& asked, bool& all, const AskedOptions& options) {
  asked.add_arguments(command, server::kShape<Request>, options);
  add_flag(command, "--all", all, "All of them");
}

// Returns true if an option other than the tube chooses jobs.
bool has_filter(const Asked& asked);

// The operation of the command, and the words of its messages.
struct BulkWords {
  std::string_view row;   // "moveJobs"
  std::string_view done;  // "moved"
  std::string tube;
  bool json = false;
};

// Changes the jobs, prints how many, and says on standard error how far it is, and which were left.
// Returns the exit code: 1 if some were left.
int change_many(const ServerAddress& server, const Asked& asked, const server::Shape& shape,
                const void* request, const BulkWords& words);
template <class Request>
int change_many(const ServerAddress& server, const Asked& asked, const BulkWords& words) {
  const Request request = asked.read<Request>();
  return change_many(server, asked, server::kShape<Request>, &request, words);
}

}  // namespace carillon::cli
