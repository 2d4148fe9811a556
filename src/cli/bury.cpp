// `carillon bury`: sets jobs aside until somebody kicks or releases them.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_json.h"
#include "cli/job_names.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(A buried job is kept, and no worker gets it until it is kicked or released.
Works on ready and delayed jobs, and costs them no attempt. One that a worker
holds is left alone. The exit code is 1 if any is left; the others are buried.

Examples:
  carillon bury 7 8
  carillon bury --key invoice-7 --tube mail
  carillon release 7                      gives it to the workers again)";

struct Request {
  ServerAddress server;
  JobNames jobs;
  std::optional<std::uint32_t> priority;
  bool json = false;
};

// Returns false if the job is left, and says why. `job` is its id, or key=KEY in the used tube.
bool bury(const Request& request, Client& client, const std::string& job, const std::string& name) {
  const std::string options = request.priority ? fmt::format("pri={}", *request.priority) : "";
  const ChangeAnswer answer = client.bury_job(job, options);
  if (answer != ChangeAnswer::kDone) {
    remark(answer == ChangeAnswer::kReserved ? fmt::format("carillon bury: a worker holds {}", name)
                                             : fmt::format("carillon bury: there is no {}", name));
    return false;
  }
  if (!request.json) {
    write_out(fmt::format("buried {}\n", name));
  } else if (const auto now = client.show_job(job)) {
    write_out(changed_json(*now));
  }
  return true;
}

int bury(const Request& request) {
  request.jobs.check();
  Client client(Stream::connect(request.server));
  bool all = true;
  const std::vector<NamedJob> jobs = request.jobs.all();
  for (std::size_t i = 0; i < request.jobs.ids.size(); ++i)
    all = bury(request, client, std::to_string(request.jobs.ids[i]), jobs[i].name) && all;
  if (request.jobs.key.empty()) return all ? kSuccess : kFailure;
  client.use(request.jobs.tube);
  return bury(request, client, "key=" + request.jobs.key, jobs.front().name) ? kSuccess : kFailure;
}

}  // namespace

void add_bury(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "bury", kExamples);
  add_job_names(command, request->jobs, "The jobs to bury");
  add_value(command, "--pri", request->priority, parse_priority, "With another priority")
      .type_name("N");
  add_flag(command, "--json", request->json, "Print {\"id\":...,\"tube\":...,\"state\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = bury(*request); });
}

}  // namespace carillon::cli
