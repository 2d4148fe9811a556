// `carillon stats`: shows the counters of the server, of one tube or of one job.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stats_fields.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples = R"(Times are in seconds.

Examples:
  carillon stats                    the server
  carillon stats --tube mail
  carillon stats --job 7
  carillon stats --json | jq '."current-jobs-ready"')";

struct Request {
  ServerAddress server;
  std::optional<std::uint64_t> job;
  std::optional<std::string> tube;
  bool json = false;
};

StatsFields fetch(const Request& request, Client& client) {
  if (request.job) {
    if (auto stats = client.stats_job(*request.job)) return *std::move(stats);
    throw Failure(fmt::format("job {} does not exist", *request.job));
  }
  if (request.tube) {
    if (auto stats = client.stats_tube(*request.tube)) return *std::move(stats);
    throw Failure(fmt::format(
        "tube {} does not exist: it has no jobs, and nobody uses or watches it", *request.tube));
  }
  return client.stats();
}

int show_stats(const Request& request) {
  Client client(Stream::connect(request.server));
  const StatsFields stats = fetch(request, client);
  write_out(request.json ? to_json(stats) : to_table(stats));
  return kSuccess;
}

}  // namespace

void add_stats(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "stats", kExamples);
  const Argument job =
      add_value(command, "--job", request->job, parse_job_id, "Of this job").type_name("ID");
  add_value(command, "--tube", request->tube, parse_tube, "Of this tube")
      .type_name("TUBE")
      .excludes(job);
  add_flag(command, "--json", request->json, "Print one JSON object");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = show_stats(*request); });
}

}  // namespace carillon::cli
