// `carillon cancel`: deletes jobs that nobody works on.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/bulk.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_names.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Works on ready, delayed and buried jobs. One that a worker holds is left alone;
with --ask it is deleted when its worker is done with it, whatever comes of it.
The exit code is 1 if any of them is left; the others are cancelled.

Examples:
  carillon cancel 7 8
  carillon cancel --key invoice-7 --tube mail
  carillon cancel --key-prefix invoice- --tube mail --dry-run
  carillon cancel --ask 7)";

struct Request {
  ServerAddress server;
  JobNames jobs;
  bool ask = false;
  BulkRequest many{.verb = "cancel-jobs", .done = "cancelled", .tube = {}};
};

// Cancels one job, and says what came of it. Returns false if it is left.
bool cancel(Client& client, const NamedJob& job, bool ask) {
  switch (client.cancel(job.word, ask)) {
    case CancelAnswer::kCancelled:
      write_out(fmt::format("cancelled {}\n", job.name));
      return true;
    case CancelAnswer::kAsked:
      write_out(fmt::format("asked for {}\n", job.name));
      return true;
    case CancelAnswer::kReserved:
      remark(fmt::format("carillon cancel: a worker holds {}; see --ask", job.name));
      return false;
    case CancelAnswer::kNone:
      remark(fmt::format("carillon cancel: there is no {}", job.name));
      return false;
  }
  return false;
}

int cancel_many(const Request& request) {
  if (!request.jobs.ids.empty() || !request.jobs.key.empty() || request.ask)
    throw UsageError("give IDs or a --key, or say by a filter which jobs, not both");
  BulkRequest many = request.many;
  many.tube = request.jobs.tube;
  Client client(Stream::connect(request.server));
  return change_many(client, many);
}

int cancel(const Request& request) {
  if (!request.many.filter.empty() || request.many.all) return cancel_many(request);
  if (request.many.dry_run) throw UsageError("--dry-run is for many jobs: say which by a filter");
  request.jobs.check();
  Client client(Stream::connect(request.server));
  bool all = true;
  for (const NamedJob& job : request.jobs.all(client))
    all = cancel(client, job, request.ask) && all;
  return all ? kSuccess : kFailure;
}

}  // namespace

void add_cancel(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "cancel", kExamples);
  add_job_names(command, request->jobs, "The jobs to cancel");
  add_flag(command, "--ask", request->ask, "Of a job that a worker holds: when it is done");
  add_bulk_options(command, request->many, "delayed,ready,\nburied,dead");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = cancel(*request); });
}

}  // namespace carillon::cli
