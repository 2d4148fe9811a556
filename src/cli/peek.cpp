// `carillon peek`: shows a job without taking it.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_json.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Prints the body byte for byte on standard output, on a terminal with a line end,
and where the job is on standard error.

Examples:
  carillon peek 7
  carillon peek --delayed              the next one due in tube default
  carillon peek --buried --tube mail --json)";

struct Request {
  server::Address server;
  std::optional<std::uint64_t> id;
  bool ready = false;
  bool delayed = false;
  bool buried = false;
  std::string tube{kDefaultTube};
  bool json = false;
};

PeekState state_of(const Request& request) {
  if (request.ready) return PeekState::kReady;
  return request.delayed ? PeekState::kDelayed : PeekState::kBuried;
}

const char* name_of(PeekState state) {
  switch (state) {
    case PeekState::kReady:
      return "ready";
    case PeekState::kDelayed:
      return "delayed";
    case PeekState::kBuried:
      return "buried";
  }
  return "";
}

Job find_job(const Request& request, Client& client) {
  if (request.id) {
    if (auto job = client.peek(*request.id)) return *std::move(job);
    throw Failure(fmt::format("job {} does not exist", *request.id));
  }
  const PeekState state = state_of(request);
  client.use(request.tube);
  if (auto job = client.peek(state)) return *std::move(job);
  throw Failure(fmt::format("no {} job in tube {}", name_of(state), request.tube));
}

// Returns the job's state, for example "delayed, 12 s left": the seconds until a delayed job is
// due, or until the ttr of a reserved one runs out.
std::string describe(const StatsFields& stats) {
  const std::string& state = stats.text("state");
  const bool counts_down = state == "delayed" || state == "reserved";
  return counts_down ? fmt::format("{}, {} s left", state, stats.number("time-left")) : state;
}

int peek(const Request& request) {
  const int selectors = (request.id ? 1 : 0) + (request.ready ? 1 : 0) + (request.delayed ? 1 : 0) +
                        (request.buried ? 1 : 0);
  if (selectors == 0)
    throw UsageError("give a job's ID, or one of --ready, --delayed and --buried");
  if (selectors > 1)
    throw UsageError("give only one of a job's ID, --ready, --delayed and --buried");

  Client client(Stream::connect(request.server));
  const Job job = find_job(request, client);
  const auto stats = client.stats_job(job.id);
  if (!stats) throw Failure(fmt::format("job {} was deleted while it was looked at", job.id));
  if (request.json) {
    write_out(job_json(job, stats->text("tube"), stats->text("state")));
    return kSuccess;
  }
  write_body(job.body);
  remark(fmt::format("job {} in tube {}: {}", job.id, stats->text("tube"), describe(*stats)));
  return kSuccess;
}

}  // namespace

void add_peek(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "peek", kExamples);
  const Argument id = add_value(command, "ID", request->id, parse_job_id, "This job").type_name("");
  add_flag(command, "--ready", request->ready, "The next job to be handed out");
  add_flag(command, "--delayed", request->delayed, "The next job to become due");
  add_flag(command, "--buried", request->buried, "The next job to be kicked");
  add_tube_option(command, request->tube, "In this tube (default: default)").excludes(id);
  add_flag(command, "--json", request->json,
           "Print {\"id\":...,\"tube\":...,\"state\":...,\"body\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = peek(*request); });
}

}  // namespace carillon::cli
