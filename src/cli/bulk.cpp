// `carillon retry`, `carillon move` and `carillon clear`: change many jobs of a tube.

#include "cli/bulk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kRetryExamples =
    R"(Buried jobs, the dead ones too, become ready, and their attempts begin anew.
So do jobs that wait for their next attempt, if --state names delayed. Prints
how many.

Examples:
  carillon retry mail --state dead
  carillon retry mail --key-prefix invoice- --dry-run
  carillon retry mail --all)";

constexpr const char* kMoveExamples =
    R"(The jobs keep their ids, due times, keys and attempts. Left are jobs that a
worker holds, and those whose key a job of the other tube has. Prints how many
were moved.

Examples:
  carillon move mail slow-mail --due-after 24h
  carillon move mail slow-mail --all --dry-run)";

constexpr const char* kClearExamples =
    R"(Deletes jobs, whatever their state. Jobs that a worker holds are left. Prints
how many were deleted.

Examples:
  carillon clear mail --state dead
  carillon clear mail --all --dry-run)";

// How often the progress is shown.
constexpr auto kShown = std::chrono::seconds(1);

void add(CLI::App& app, int& exit_code, const std::string& name, const char* examples,
         const BulkRequest& usual, std::string_view states) {
  struct Request : BulkRequest {
    Endpoint server;
  };
  auto request = std::make_shared<Request>();
  static_cast<BulkRequest&>(*request) = usual;
  CLI::App& command = add_subcommand(app, name, examples);
  add_value(command, "TUBE", request->tube, parse_tube, "The jobs of this tube")
      .type_name("")
      .required();
  if (usual.verb == "move-jobs") {
    add_value(command, "TO", request->to, parse_tube, "The tube that they move to")
        .type_name("")
        .required();
  }
  add_bulk_options(command, *request, states);
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] {
    if (request->to == request->tube) throw UsageError("the two tubes are the same");
    Client client(Stream::connect(request->server));
    exit_code = change_many(client, *request);
  });
}

}  // namespace

void add_bulk_options(CLI::App& command, BulkRequest& request, std::string_view states) {
  add_filter_options(command, request.filter, states);
  add_flag(command, "--all", request.all, "All of them");
  add_flag(command, "--dry-run", request.dry_run, "Only count them");
}

int change_many(Client& client, const BulkRequest& request) {
  if (request.filter.empty() && !request.all)
    throw UsageError(
        "say which jobs, by --state, --group, --key-prefix, --due-after or "
        "--due-before; or "
        "--all");
  std::string options = request.filter.options();
  if (!request.to.empty()) options += " to=" + request.to;
  if (request.dry_run) options += " dry-run=yes";
  const bool shows = ::isatty(STDERR_FILENO) == 1;
  BulkAnswer all;
  auto shown = Clock::now();
  for (bool more = true; more; more = all.next.has_value()) {
    const auto answer = client.change_jobs(request.verb, request.tube,
                                           all.next ? options + " after=" + *all.next : options);
    if (!answer) {
      throw Failure(fmt::format(
          "tube {} does not exist: it has no jobs, and nobody uses or watches it", request.tube));
    }
    all = {.changed = all.changed + answer->changed,
           .left = all.left + answer->left,
           .next = answer->next};
    if (!shows || !all.next || Clock::now() - shown < kShown) continue;
    shown = Clock::now();
    remark(fmt::format("{} so far", all.changed));
  }
  write_out(fmt::format("{}\n", all.changed));
  if (all.left == 0) return kSuccess;
  remark(fmt::format("{} cannot be {}: a worker holds them{}", all.left, request.done,
                     request.to.empty() ? "" : ", or a job of the other tube has their key"));
  return kFailure;
}

void add_retry(CLI::App& app, int& exit_code) {
  add(app, exit_code, "retry", kRetryExamples,
      {.verb = "retry-jobs", .done = "retried", .tube = {}}, "buried, dead,\ndelayed (buried)");
}

void add_move(CLI::App& app, int& exit_code) {
  add(app, exit_code, "move", kMoveExamples, {.verb = "move-jobs", .done = "moved", .tube = {}},
      "delayed,ready,\nburied,dead");
}

void add_clear(CLI::App& app, int& exit_code) {
  add(app, exit_code, "clear", kClearExamples,
      {.verb = "cancel-jobs", .done = "deleted", .tube = {}}, "delayed,ready,\nburied,dead");
}

}  // namespace carillon::cli
