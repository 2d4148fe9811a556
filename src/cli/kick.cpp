// `carillon kick`: makes buried or delayed jobs ready now.

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Buried jobs first; if the tube has none, delayed ones, the next due first.
Prints how many were made ready.

Examples:
  carillon kick                     one job of tube default
  carillon kick 100 --tube mail     up to 100 jobs of tube mail
  carillon kick --job 7             this one, wherever it is)";

struct Request {
  ServerAddress server;
  std::uint32_t bound = 1;
  std::optional<std::uint64_t> job;
  std::string tube{kDefaultTube};
};

int kick(const Request& request) {
  Client client(Stream::connect(request.server));
  if (!request.job) {
    client.use(request.tube);
    write_out(fmt::format("{}\n", client.kick(request.bound)));
    return kSuccess;
  }
  if (!client.kick_job(*request.job)) {
    throw Failure(
        fmt::format("job {} does not exist, or is neither buried nor delayed", *request.job));
  }
  write_out("1\n");
  return kSuccess;
}

}  // namespace

void add_kick(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "kick", kExamples);
  const auto parse_bound = [](const std::string& text) {
    return parse_number(text, 1, std::numeric_limits<std::uint32_t>::max());
  };
  const Argument bound =
      add_value(command, "N", request->bound, parse_bound, "At most this many jobs (default: 1)")
          .type_name("");
  const Argument tube =
      add_tube_option(command, request->tube, "The jobs of this tube (default: default)");
  add_value(command, "--job", request->job, parse_job_id, "This one job")
      .type_name("ID")
      .excludes(bound)
      .excludes(tube);
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = kick(*request); });
}

}  // namespace carillon::cli
