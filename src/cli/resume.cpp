// `carillon resume`: ends the pause of a tube.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples = R"(A tube that is not paused stays as it is.

Examples:
  carillon resume mail)";

struct Request {
  ServerAddress server;
  std::string tube;
  bool json = false;
};

int resume(const Request& request) {
  Client client(Stream::connect(request.server));
  if (!client.pause_tube(request.tube, 0)) {
    throw Failure(fmt::format(
        "tube {} does not exist: it has no jobs, and nobody uses or watches it", request.tube));
  }
  write_out(request.json ? fmt::format("{{\"tube\":\"{}\",\"pause_s\":0}}\n", request.tube)
                         : fmt::format("resumed tube {}\n", request.tube));
  return kSuccess;
}

}  // namespace

void add_resume(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "resume", kExamples);
  add_value(command, "TUBE", request->tube, parse_tube, "The tube").type_name("").required();
  add_flag(command, "--json", request->json, "Print {\"tube\":...,\"pause_s\":0}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = resume(*request); });
}

}  // namespace carillon::cli
