// `carillon release`: makes jobs that wait ready now, or due at another time.

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_json.h"
#include "cli/job_names.h"
#include "cli/output.h"
#include "server/text/duration.h"
#include "server/text/timestamp.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Works on delayed, buried and ready jobs, and costs them no attempt; a dead one
has all its attempts again. One that a worker holds is left alone. Prints when
each job is due. The exit code is 1 if any is left; the others are released.

Examples:
  carillon release 7 8                    now
  carillon release 7 --delay 1h           in an hour, delayed or buried before
  carillon release --key invoice-7 --tube mail --at 2030-01-01T09:00:00Z)";

struct Request {
  ServerAddress server;
  JobNames jobs;
  std::chrono::milliseconds delay{0};
  std::optional<std::uint64_t> due_at;
  std::optional<std::uint32_t> priority;
  bool json = false;
};

std::string options_of(const Request& request) {
  std::string options = request.due_at ? fmt::format("due={}", *request.due_at)
                                       : fmt::format("delay={}ms", request.delay.count());
  if (request.priority) options += fmt::format(" pri={}", *request.priority);
  return options;
}

// Returns false if the job is left.
bool release(const Request& request, Client& client, const NamedJob& job) {
  if (!is_changed("release", job, client.patch(job.word, options_of(request)))) return false;
  const auto now = client.show_job(job.word);
  if (request.json && now) write_out(changed_json(*now));
  if (request.json) return true;
  const bool is_delayed = now && now->text("state") == "delayed";
  const std::string when = is_delayed ? "due " + now->text("due") : "ready";
  write_out(fmt::format("released {}: {}\n", job.name, when));
  return true;
}

int release(const Request& request) {
  request.jobs.check();
  Client client(Stream::connect(request.server));
  bool all = true;
  for (const NamedJob& job : request.jobs.all(client)) all = release(request, client, job) && all;
  return all ? kSuccess : kFailure;
}

}  // namespace

void add_release(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "release", kExamples);
  add_job_names(command, request->jobs, "The jobs to release");
  const Argument delay = add_value(command, "--delay", request->delay, server::parse_duration,
                                   "Not now, but this long from now")
                             .type_name("DURATION");
  add_value(command, "--at", request->due_at, server::parse_timestamp, "Not now, but at this time")
      .type_name("TIME")
      .excludes(delay);
  add_value(command, "--pri", request->priority, parse_priority, "With another priority")
      .type_name("N");
  add_flag(command, "--json", request->json,
           "Print {\"id\":...,\"tube\":...,\"state\":...,\"due\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = release(*request); });
}

}  // namespace carillon::cli
