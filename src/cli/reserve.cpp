// `carillon reserve`: waits for a job and prints its body.

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_json.h"
#include "cli/output.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Prints the body byte for byte on standard output, on a terminal with a line end
and with \x1B for control characters,
and what happened on standard error. The job goes back to ready when the command
ends, unless --delete was given: then it is deleted once its body is printed.
To run a command for each job, see: carillon work --help

Examples:
  carillon reserve                                  any job of tube default
  carillon reserve --delete --timeout 5s            exit code 1 if none in 5 s
  carillon reserve --tube mail --tube sms --json    from two tubes)";

struct Request {
  ServerAddress server;
  std::vector<std::string> tubes;
  std::optional<std::chrono::milliseconds> timeout;
  bool delete_it = false;
  bool json = false;
};

// The protocol's limit: 2^31-1 s.
constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::seconds(2'147'483'647);

std::chrono::milliseconds parse_timeout(const std::string& text) {
  const auto timeout = server::parse_duration(text);
  if (timeout <= kLongestTimeout) return timeout;
  throw std::invalid_argument(fmt::format(
      "\"{}\": the longest time-out is 2147483647s; without one it waits for ever", text));
}

std::string nothing_within(std::chrono::milliseconds timeout) {
  return timeout.count() == 0 ? "no job is ready"
                              : fmt::format("no job within {}", server::short_duration(timeout));
}

// Returns the job's tube. The reply to a reserve does not name it, so if several tubes are watched,
// asks the server.
std::string tube_of(const Job& job, const Request& request, Client& client) {
  if (request.tubes.empty()) return std::string(kDefaultTube);
  if (request.tubes.size() == 1) return request.tubes.front();
  const auto stats = client.stats_job(job.id);
  if (!stats) throw Failure(fmt::format("job {} is gone: its ttr ran out", job.id));
  return stats->text("tube");
}

int reserve(const Request& request) {
  Client client(Stream::connect(request.server));
  if (!request.tubes.empty()) client.watch_only(request.tubes);
  const std::optional<Job> job = client.reserve(request.timeout);
  if (!job) throw Failure(nothing_within(*request.timeout));

  const std::string tube = tube_of(*job, request, client);
  if (request.json) {
    write_out(job_json(*job, tube, ""));
  } else {
    write_body(job->body);
  }
  if (!request.delete_it) {
    remark(
        fmt::format("job {} from tube {}: it goes back to ready when this command ends (use "
                    "--delete to finish it)",
                    job->id, tube));
    return kSuccess;
  }
  if (!client.delete_job(job->id)) {
    throw Failure(
        fmt::format("job {} was printed but not deleted: its ttr ran out meanwhile", job->id));
  }
  remark(fmt::format("job {} from tube {}: deleted", job->id, tube));
  return kSuccess;
}

}  // namespace

void add_reserve(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "reserve", kExamples);
  add_value(command, "--tube", request->tubes, parse_tube,
            "From this tube (default: default); may be repeated")
      .type_name("TUBE");
  add_value(command, "--timeout", request->timeout, parse_timeout,
            "Give up after this long; 0: do not wait")
      .type_name("DURATION");
  add_flag(command, "--delete", request->delete_it, "Delete the job once it is printed");
  add_flag(command, "--json", request->json, "Print {\"id\":...,\"tube\":...,\"body\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = reserve(*request); });
}

}  // namespace carillon::cli
