// `carillon retry`, `carillon move`, `carillon spread` and `carillon clear`: change many jobs of a
// tube. Each is made from the row of its operation (server/api/bulk.h).

#include "cli/bulk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/wait.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

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

constexpr std::chrono::seconds kShowEach{1};  // how often it shows how many jobs were changed

std::string why_left(const server::ChangeInSteps& told) {
  const bool is_one = told.left == 1;
  if (told.over) return is_one ? "it would have expired" : "they would have expired";
  std::string held = is_one ? "a worker holds it" : "a worker holds them";
  if (!told.to) return held;
  return held + ", or a job of the other tube has " + (is_one ? "its key" : "their key");
}

// A change as the server reports it: a change that goes on has a state.
struct Told : server::ChangeInSteps {
  bool goes_on = false;
};

Told told_of(const json::object& answer) {
  Told told;
  server::Reader reader(server::Source::kAnswer);
  server::ChangeInSteps& fields = told;
  server::read_fields(reader, server::kShape<server::ChangeInSteps>, answer, &fields);
  if (!reader.faults().empty())
    throw Failure("the server answers a change with " + reader.faults().front().detail);
  told.goes_on = answer.contains("state") && told.state == server::ChangeState::kRunning;
  return told;
}

// Returns the failure of a change that has ended early, with the number of jobs it has changed.
Failure unfinished(const Told& told, std::string_view why, const BulkWords& words) {
  if (told.dry_run) return Failure(std::string(why));
  return Failure(fmt::format("{}; at least {} {} so far, run it again to go on", why,
                             counted(told.changed, "job"), words.done));
}

// Waits for the end of a change that goes on without this client.
Told wait_for_end(Api& api, Told told, const BulkWords& words, const StopSignals& signals) try {
  const std::string path = fmt::format("/v1/operations/{}", told.id);
  const bool shows = ::isatty(STDERR_FILENO) == 1;
  auto shown = std::chrono::steady_clock::now();
  while (told.goes_on) {
    wait_for(-1, 0, kLook, signals.fd());
    told = told_of(api.get(path));
    if (!shows || !told.goes_on || std::chrono::steady_clock::now() - shown < kShowEach) continue;
    shown = std::chrono::steady_clock::now();
    remark(fmt::format("{} so far", told.changed));
  }
  return told;
} catch (const Interrupted&) {
  try {
    Api(api.server()).ask("DELETE", fmt::format("/v1/operations/{}", told.id));
  } catch (const Failure& error) {  // it may have ended just now
    throw unfinished(told, fmt::format("interrupted, and not stopped: {}", error.what()), words);
  }
  throw unfinished(told, "interrupted", words);
} catch (const Failure& error) {
  throw unfinished(told, error.what(), words);
}

struct BulkRequest : ApiRequest {
  bool all = false;
};

// Adds the arguments of a command whose row takes `Asks`.
template <class Asks>
void add_bulk(CLI::App& command, int& exit_code, const char* examples, const BulkWords& usual,
              std::string_view positionals, bool needs_filter = true) {
  const auto request = std::make_shared<BulkRequest>();
  set_action(command, examples, [request, usual, needs_filter, &exit_code] {
    const bool has_bounds =
        request->asked.has("/filter/due_after") && request->asked.has("/filter/due_before");
    if (!needs_filter && !has_bounds)
      throw UsageError("say which jobs, by --due-after and --due-before");
    const auto asked = request->asked.template read<Asks>();
    if constexpr (requires { asked.to; })
      if (asked.to == asked.filter.tube) throw UsageError("the two tubes are the same");
    if (needs_filter && !request->all && !has_filter(request->asked))
      throw UsageError(fmt::format("say which jobs, by {}", kFilterOptions));
    BulkWords words = usual;
    words.tube = asked.filter.tube;
    words.json = request->json;
    exit_code = change_many<Asks>(request->server, request->asked, words);
  });
  const AskedOptions options{.positionals = positionals, .without = "max page_token"};
  if (needs_filter) {
    add_bulk_options<Asks>(command, request->asked, request->all, options);
  } else {
    request->asked.add_arguments(command, server::kShape<Asks>, options);
  }
  add_json_and_server(command, *request,
                      fmt::format("Print {{\"tube\":...,\"{}\":...,\"left\":...}}", usual.done));
}

}  // namespace

bool has_filter(const Asked& asked) {
  for (const char* const field :
       {"state", "group", "key_prefix", "due_after", "due_before", "reason"})
    if (asked.has(std::string("/filter/") + field)) return true;
  return false;
}

int change_many(const ServerAddress& server, const Asked& asked, const server::Shape& shape,
                const void* request, const BulkWords& words) {
  const StopSignals signals;
  Api api(server, signals.fd());
  Told told;
  try {
    told = told_of(api.ask_row(words.row, shape, request));
  } catch (const Refusal& refusal) {
    if (refusal.status != 404) asked.throw_usage(refusal);
    throw_no_tube(refusal, words.tube);
  }
  if (told.goes_on) told = wait_for_end(api, std::move(told), words, signals);
  if (told.error) throw unfinished(told, *told.error, words);
  write_result(words.json, {{"tube", words.tube}, {words.done, told.changed}, {"left", told.left}},
               std::to_string(told.changed));
  const bool is_incomplete = told.incomplete.value_or(false);
  if (is_incomplete) remark_missing_jobs(words.tube);
  if (told.left == 0) return is_incomplete ? kFailure : kSuccess;
  remark(fmt::format("{} cannot be {}: {}", told.left, words.done, why_left(told)));
  return kFailure;
}

void add_retry(CLI::App& command, int& exit_code) {
  add_bulk<server::ChangeJobs>(command, exit_code, kRetryExamples,
                               {.row = "retryJobs", .done = "retried", .tube = {}}, "tube");
}

void add_move(CLI::App& command, int& exit_code) {
  add_bulk<server::MoveJobs>(command, exit_code, kMoveExamples,
                             {.row = "moveJobs", .done = "moved", .tube = {}}, "tube to");
}

void add_spread(CLI::App& command, int& exit_code) {
  constexpr bool kNeedsFilter = false;  // its bounds are needed
  add_bulk<server::SpreadJobs>(command, exit_code, kSpreadExamples,
                               {.row = "spreadJobs", .done = "spread", .tube = {}}, "tube",
                               kNeedsFilter);
}

void add_clear(CLI::App& command, int& exit_code) {
  add_bulk<server::ChangeJobs>(command, exit_code, kClearExamples,
                               {.row = "cancelJobs", .done = "deleted", .tube = {}}, "tube");
}

}  // namespace carillon::cli
