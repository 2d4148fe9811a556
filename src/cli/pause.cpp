// `carillon pause`: lets workers get no jobs of a tube for a time.

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Puts go on, and jobs become due; workers get none of them until the pause ends.
What workers hold is not touched. A pause is rounded up to whole seconds. It is
not stored: a restart of the server ends it.

Examples:
  carillon pause mail                     until carillon resume mail
  carillon pause mail 10m)";

struct Request {
  ServerAddress server;
  std::string tube;
  std::optional<std::chrono::milliseconds> duration;
  bool json = false;
};

std::chrono::milliseconds parse_pause(const std::string& text) {
  const auto duration = server::parse_duration(text);
  if (duration.count() == 0)
    throw std::invalid_argument(fmt::format("\"{}\": see carillon resume", text));
  if (duration <= std::chrono::seconds(Client::kPauseForGood)) return duration;
  throw std::invalid_argument(
      fmt::format("\"{}\": the longest is {}s", text, Client::kPauseForGood));
}

int pause(const Request& request) {
  Client client(Stream::connect(request.server));
  std::uint32_t seconds = Client::kPauseForGood;
  if (request.duration) {
    const auto whole = std::chrono::ceil<std::chrono::seconds>(*request.duration);
    seconds = static_cast<std::uint32_t>(whole.count());
  }
  if (!client.pause_tube(request.tube, seconds)) {
    throw Failure(fmt::format(
        "tube {} does not exist: it has no jobs, and nobody uses or watches it", request.tube));
  }
  const std::string until = request.duration
                                ? "for " + server::short_duration(std::chrono::seconds(seconds))
                                : "until carillon resume " + request.tube;
  write_out(request.json
                ? fmt::format("{{\"tube\":\"{}\",\"pause_s\":{}}}\n", request.tube, seconds)
                : fmt::format("paused tube {} {}\n", request.tube, until));
  return kSuccess;
}

}  // namespace

void add_pause(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "pause", kExamples);
  add_value(command, "TUBE", request->tube, parse_tube, "The tube").type_name("").required();
  add_value(command, "DURATION", request->duration, parse_pause, "How long: 250ms, 3s, 1h30m, 40d")
      .type_name("");
  add_flag(command, "--json", request->json, "Print {\"tube\":...,\"pause_s\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = pause(*request); });
}

}  // namespace carillon::cli
