// `carillon retry`, `carillon move`, `carillon spread` and `carillon clear`: change many jobs of a
// tube.

#include "cli/bulk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/counted.h"
#include "cli/job_export.h"
#include "cli/output.h"
#include "server/text/duration.h"

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

constexpr const char* kSpreadExamples =
    R"(A storm is less of one: the delayed jobs that are due from --due-after on and
before --due-before are dealt out evenly over the time of --over, which begins
with --due-after. No job comes earlier than before. Done again it changes
nothing. Left are jobs that would have expired by then. Prints how many jobs
have another time.

Examples:
  carillon due mail
  carillon spread mail --due-after 2030-01-01T09:00:00Z \
    --due-before 2030-01-01T09:01:00Z --over 1h --dry-run)";

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
    ServerAddress server;
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

std::string why_left(const BulkRequest& request, std::uint64_t jobs) {
  const bool is_one = jobs == 1;
  if (request.over.count() > 0) return is_one ? "it would have expired" : "they would have expired";
  std::string held = is_one ? "a worker holds it" : "a worker holds them";
  if (request.to.empty()) return held;
  return held + ", or a job of the other tube has " + (is_one ? "its key" : "their key");
}

// Goes on where `all` ended. Says how far it came if that fails: what a reply that was lost would
// have told of is not counted.
std::optional<BulkAnswer> change_some(Client& client, const BulkRequest& request,
                                      const std::string& options, const BulkAnswer& all) try {
  return client.change_jobs(request.verb, request.tube,
                            all.next ? options + " after=" + *all.next : options);
} catch (const Unavailable& error) {
  if (request.dry_run) throw;
  throw Failure(fmt::format("{}; at least {} {} so far, run it again to go on", error.what(),
                            counted(all.changed, "job"), request.done));
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
  if (request.over.count() > 0) options += fmt::format(" over={}ms", request.over.count());
  if (request.dry_run) options += " dry-run=yes";
  const bool shows = ::isatty(STDERR_FILENO) == 1;
  BulkAnswer all;
  auto shown = Clock::now();
  for (bool more = true; more; more = all.next.has_value()) {
    const auto answer = change_some(client, request, options, all);
    if (!answer) {
      throw Failure(fmt::format(
          "tube {} does not exist: it has no jobs, and nobody uses or watches it", request.tube));
    }
    all = {.changed = all.changed + answer->changed,
           .left = all.left + answer->left,
           .next = answer->next,
           .incomplete = all.incomplete || answer->incomplete};
    if (!shows || !all.next || Clock::now() - shown < kShown) continue;
    shown = Clock::now();
    remark(fmt::format("{} so far", all.changed));
  }
  write_out(fmt::format("{}\n", all.changed));
  if (all.incomplete) remark(missing_jobs(request.tube));
  if (all.left == 0) return all.incomplete ? kFailure : kSuccess;
  remark(fmt::format("{} cannot be {}: {}", all.left, request.done, why_left(request, all.left)));
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

void add_spread(CLI::App& app, int& exit_code) {
  struct Request : BulkRequest {
    ServerAddress server;
  };
  auto request = std::make_shared<Request>();
  request->verb = "spread-jobs";
  request->done = "spread";
  CLI::App& command = add_subcommand(app, "spread", kSpreadExamples);
  add_value(command, "TUBE", request->tube, parse_tube, "The jobs of this tube")
      .type_name("")
      .required();
  add_value(command, "--over", request->over, server::parse_duration,
            "Deal them out over this long")
      .type_name("DURATION")
      .required();
  add_filter_options(command, request->filter);
  add_flag(command, "--dry-run", request->dry_run, "Only count them");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] {
    if (!request->filter.due_after || !request->filter.due_before)
      throw UsageError("say which jobs, by --due-after and --due-before");
    Client client(Stream::connect(request->server));
    exit_code = change_many(client, *request);
  });
}

void add_clear(CLI::App& app, int& exit_code) {
  add(app, exit_code, "clear", kClearExamples,
      {.verb = "cancel-jobs", .done = "deleted", .tube = {}}, "delayed,ready,\nburied,dead");
}

}  // namespace carillon::cli
