// `carillon patch`: changes jobs that wait, and leaves them where they are.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "carillon/queue/commands.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_json.h"
#include "cli/job_names.h"
#include "cli/output.h"
#include "server/beanstalk/job_options.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Works on delayed, buried and ready jobs, and costs them no attempt. What is not
named stays as it is. One that a worker holds is left alone. The exit code is 1
if any is left; the others are changed. A new due time takes a buried job out of
its burial.

Examples:
  carillon patch 7 8 --pri 0
  carillon patch --key invoice-7 --tube mail --ttr 10m
  carillon patch 7 --body - < job.json
  carillon patch 7 --delay 1h --expires-in 2h)";

struct Request {
  ServerAddress server;
  JobNames jobs;
  std::optional<std::string> body;
  std::string options;  // as patch-job takes them
  bool json = false;
};

void check(const std::string& options) try {
  server::beanstalk::parse_job_options(options, server::beanstalk::OptionsOf::kPatch);
} catch (const std::invalid_argument& error) {
  throw UsageError(error.what());
}

// Returns false if the job is left.
bool patch(const Request& request, Client& client, const NamedJob& job,
           const std::optional<std::string>& body) {
  if (!is_changed("patch", job, client.patch(job.word, request.options, body))) return false;
  if (!request.json) {
    write_out(fmt::format("changed {}\n", job.name));
  } else if (const auto now = client.show_job(job.word)) {
    write_out(changed_json(*now));
  }
  return true;
}

int patch(const Request& request) {
  request.jobs.check();
  if (request.options.empty() && !request.body)
    throw UsageError("say what to change, e.g. --pri 0, --ttr 10m or --body TEXT");
  check(request.options);
  std::optional<std::string> body;
  if (request.body) body = body_or_standard_input(request.body, queue::kBodyPiece);
  Client client(Stream::connect(request.server));
  bool all = true;
  for (const NamedJob& job : request.jobs.all(client))
    all = patch(request, client, job, body) && all;
  return all ? kSuccess : kFailure;
}

}  // namespace

void add_patch(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "patch", kExamples);
  add_job_names(command, request->jobs, "The jobs to change");
  const auto add = [&options = request->options](std::string_view name, std::string_view value) {
    options += fmt::format("{}{}={}", options.empty() ? "" : " ", name, value);
  };
  const auto option = [&](const std::string& flag, const char* name, const char* type,
                          const char* description) {
    const auto set = [=](const std::string& text) {
      if (text.empty() || text.find(' ') != std::string::npos)
        throw UsageError(fmt::format("{} \"{}\": is empty, or has a space", flag, text));
      add(name, text);
    };
    return add_text(command, flag, set, description).type_name(type);
  };
  add_value(
      command, "--body", request->body, [](const std::string& text) { return text; },
      "Another body; - reads it from standard input")
      .type_name("TEXT");
  option("--pri", "pri", "N", "0 (most urgent) to 4294967295");
  option("--ttr", "ttr", "DURATION", "How long a worker may hold it; 1s to 49710d");
  const Argument delay = option("--delay", "delay", "DURATION", "Due this long from now");
  option("--at", "due", "TIME", "Due at this time").excludes(delay);
  const Argument in =
      option("--expires-in", "expires-in", "DURATION", "From then on no worker gets it");
  option("--expires-at", "expires-at", "TIME", "The same, as a moment; or never").excludes(in);
  option("--at-expiry", "at-expiry", "WHAT", "drop it then, or bury it: dead");
  add_flag(command, "--json", request->json,
           "Print {\"id\":...,\"tube\":...,\"state\":...,\"due\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = patch(*request); });
}

}  // namespace carillon::cli
