// `carillon cancel`, `delete`, `patch` and `release`: commands for jobs that nobody works on, named
// by their ids or by a key.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/commands.h"
#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/asked.h"
#include "cli/bulk.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_json.h"
#include "cli/job_names.h"
#include "cli/output.h"
#include "server/text/duration.h"
#include "server/text/timestamp.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kCancelExamples =
    R"(Works on ready, delayed and buried jobs. One that a worker holds is left alone;
with --ask it is deleted when its worker is done with it, whatever comes of it.
The exit code is 1 if any of them is left; the others are cancelled.

Examples:
  carillon cancel 7 8
  carillon cancel --key invoice-7 --tube mail
  carillon cancel --key-prefix invoice- --tube mail --dry-run
  carillon cancel --ask 7)";

constexpr const char* kDeleteExamples =
    R"(Works on ready, delayed and buried jobs. One that a worker holds is not deleted.
The exit code is 1 if any of them could not be deleted; the others are.

Examples:
  carillon delete 7
  carillon delete 7 8 9
  id=$(carillon put --delay 1h "reminder") && carillon delete "$id")";

constexpr const char* kPatchExamples =
    R"(Works on delayed, buried and ready jobs, and costs them no attempt. What is not
named stays as it is. One that a worker holds is left alone. The exit code is 1
if any is left; the others are changed. A new due time takes a buried job out of
its burial.

Examples:
  carillon patch 7 8 --pri 0
  carillon patch --key invoice-7 --tube mail --ttr 10m
  carillon patch 7 --body - < job.json
  carillon patch 7 --delay 1h --expires-in 2h)";

constexpr const char* kReleaseExamples =
    R"(Works on delayed, buried and ready jobs, and costs them no attempt; a dead one
has all its attempts again. One that a worker holds is left alone. Prints when
each job is due. The exit code is 1 if any is left; the others are released.

Examples:
  carillon release 7 8                    now
  carillon release 7 --delay 1h           in an hour, delayed or buried before
  carillon release --key invoice-7 --tube mail --at 2030-01-01T09:00:00Z)";

// Calls the server for one job. Returns what is answered, or says why `command` has left the job
// alone and returns nothing.
std::optional<json::object> ask_about(Api& api, std::string_view command, const NamedJob& job,
                                      std::string_view method, const std::string& target,
                                      const json::object& body = {}) try {
  return api.ask(method, target, body);
} catch (const Refusal& refusal) {
  if (refusal.status == 409) {
    remark(fmt::format("carillon {}: a worker holds {}{}", command, job.name,
                       command == "cancel" ? "; see --ask" : ""));
  } else if (refusal.status == 404) {
    remark(fmt::format("carillon {}: there is no {}", command, job.name));
  } else {
    throw;
  }
  return std::nullopt;
}

// --- cancel

struct CancelRequest {
  ServerAddress server;
  JobNames jobs;
  bool ask = false;
  Asked many;
  bool all = false;
};

// Cancels one job, and says what came of it. Returns false if it is left.
bool cancel(Api& api, const NamedJob& job, bool ask) {
  const std::string target = job.path + (ask ? "?if_reserved=ask" : "");
  const auto answer = ask_about(api, "cancel", job, "DELETE", target);
  if (!answer) return false;
  const bool is_asked = answer->contains("cancel_requested");
  write_out(fmt::format("{} {}\n", is_asked ? "asked for" : "cancelled", job.name));
  return true;
}

int cancel_many(const CancelRequest& request) {
  if (!request.jobs.ids.empty() || !request.jobs.key.empty() || request.ask)
    throw UsageError("give IDs or a --key, or say by a filter which jobs, not both");
  Asked asked = request.many;
  asked.set("/filter/tube", json::value(request.jobs.tube), "--tube");
  return change_many(request.server, asked.read<server::ChangeJobs>(),
                     {.row = "cancelJobs", .done = "cancelled", .tube = request.jobs.tube});
}

int cancel(const CancelRequest& request) {
  if (has_filter(request.many) || request.all) return cancel_many(request);
  if (!request.many.is_empty())
    throw UsageError("--dry-run is for many jobs: say which by a filter");
  request.jobs.check();
  Api api(request.server);
  bool all = true;
  for (const NamedJob& job : request.jobs.all()) all = cancel(api, job, request.ask) && all;
  return all ? kSuccess : kFailure;
}

// --- delete

struct DeleteRequest {
  ServerAddress server;
  std::vector<std::uint64_t> ids;
};

// By the verb of beanstalkd: a job that it deletes counts as done, so its key may stay taken for a
// while. A job that is cancelled leaves nothing.
int delete_jobs(const DeleteRequest& request) {
  Client client(Stream::connect(request.server));
  int exit_code = kSuccess;
  constexpr std::size_t kAtOnce = 1'000;
  std::vector<std::uint64_t> left = request.ids;
  while (!left.empty()) {
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(std::min(kAtOnce, left.size()));
    const std::vector<std::uint64_t> ids(left.begin(), end);
    const std::vector<bool> deleted = client.delete_jobs(ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (deleted[i]) {
        write_out(fmt::format("deleted {}\n", ids[i]));
      } else {
        remark(fmt::format("carillon delete: job {} does not exist, or a worker holds it", ids[i]));
        exit_code = kFailure;
      }
    }
    left.erase(left.begin(), end);
  }
  return exit_code;
}

// --- patch and release

struct ChangeRequest {
  ServerAddress server;
  JobNames jobs;
  std::optional<std::string> body;
  json::object change;
  bool json = false;
};

// What the server calls a field, and what the option for it is called.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kChangeNames = {
    {{"/priority", "--pri"}, {"/due", "--at"}}};

// Returns the job as it is now, or nothing if it was left alone.
std::optional<json::object> change(Api& api, std::string_view command, const NamedJob& job,
                                   const json::object& with) try {
  return ask_about(api, command, job, "PATCH", job.path, with);
} catch (const Refusal& refusal) {
  throw_usage(refusal, kChangeNames);
}

bool patch(const ChangeRequest& request, Api& api, const NamedJob& job) {
  const auto now = change(api, "patch", job, request.change);
  if (!now) return false;
  write_out(request.json ? changed_json(*now) : fmt::format("changed {}\n", job.name));
  return true;
}

int patch(ChangeRequest& request) {
  request.jobs.check();
  if (request.change.empty() && !request.body)
    throw UsageError("say what to change, e.g. --pri 0, --ttr 10m or --body TEXT");
  if (request.body)
    add_body(request.change, body_or_standard_input(request.body, queue::kBodyPiece));
  Api api(request.server);
  bool all = true;
  for (const NamedJob& job : request.jobs.all()) all = patch(request, api, job) && all;
  return all ? kSuccess : kFailure;
}

bool release(const ChangeRequest& request, Api& api, const NamedJob& job) {
  const auto now = change(api, "release", job, request.change);
  if (!now) return false;
  if (request.json) return write_out(changed_json(*now)), true;
  const json::value* const state = now->if_contains("state");
  const bool is_delayed = state != nullptr && state->as_string() == "delayed";
  const std::string when = is_delayed ? "due " + std::string(now->at("due").as_string()) : "ready";
  write_out(fmt::format("released {}: {}\n", job.name, when));
  return true;
}

int release(ChangeRequest& request) {
  request.jobs.check();
  if (!request.change.contains("due") && !request.change.contains("delay"))
    request.change["delay"] = "0s";
  Api api(request.server);
  bool all = true;
  for (const NamedJob& job : request.jobs.all()) all = release(request, api, job) && all;
  return all ? kSuccess : kFailure;
}

CLI::App& add_change(CLI::App& app, const std::string& name, const char* examples,
                     const std::shared_ptr<ChangeRequest>& request, int (*act)(ChangeRequest&),
                     int& exit_code) {
  CLI::App& command = add_subcommand(app, name, examples);
  add_job_names(command, request->jobs, fmt::format("The jobs to {}", name));
  when_parsed(command, [request, act, &exit_code] { exit_code = act(*request); });
  return command;
}

// The server checks the value, unless `parse` does.
Argument add_field(CLI::App& command, json::object& change, const std::string& option,
                   const char* field, const char* type, const char* description,
                   json::value (*parse)(const std::string&) = nullptr) {
  const auto set = [&change, option, field, parse](const std::string& text) {
    change[field] = parse != nullptr ? parse_argument(option, parse, text) : json::value(text);
  };
  return add_text(command, option, set, description).type_name(type);
}

json::value priority_of(const std::string& text) {
  return parse_priority(text);
}

json::value moment_of(const std::string& text) {
  return server::parse_timestamp(text);
}

json::value duration_of(const std::string& text) {
  return json::value(fmt::format("{}ms", server::parse_duration(text).count()));
}

// "never" is a null.
json::value end_of(const std::string& text) {
  return text == "never" ? json::value(nullptr) : moment_of(text);
}

constexpr const char* kChangedJson = "Print {\"id\":...,\"tube\":...,\"state\":...,\"due\":...}";

}  // namespace

void add_cancel(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<CancelRequest>();
  CLI::App& command = add_subcommand(app, "cancel", kCancelExamples);
  add_job_names(command, request->jobs, "The jobs to cancel");
  add_flag(command, "--ask", request->ask, "Of a job that a worker holds: when it is done");
  add_bulk_options<server::ChangeJobs>(command, request->many, request->all,
                                       {.without = "tube limit page_token"});
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = cancel(*request); });
}

void add_delete(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<DeleteRequest>();
  CLI::App& command = add_subcommand(app, "delete", kDeleteExamples);
  add_value(command, "ID", request->ids, parse_job_id, "The jobs to delete")
      .type_name("")
      .required();
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = delete_jobs(*request); });
}

void add_patch(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<ChangeRequest>();
  CLI::App& command = add_change(app, "patch", kPatchExamples, request, patch, exit_code);
  json::object& change = request->change;
  add_value(
      command, "--body", request->body, [](const std::string& text) { return text; },
      "Another body; - reads it from standard input")
      .type_name("TEXT");
  add_field(command, change, "--pri", "priority", "N", "0 (most urgent) to 4294967295",
            priority_of);
  add_field(command, change, "--ttr", "ttr", "DURATION",
            "How long a worker may hold it; 1s to 49710d", duration_of);
  const Argument delay = add_field(command, change, "--delay", "delay", "DURATION",
                                   "Due this long from now", duration_of);
  add_field(command, change, "--at", "due", "TIME", "Due at this time", moment_of).excludes(delay);
  const Argument in = add_field(command, change, "--expires-in", "expires_in", "DURATION",
                                "From then on no worker gets it", duration_of);
  add_field(command, change, "--expires-at", "expires_at", "TIME",
            "The same, as a moment; or never", end_of)
      .excludes(in);
  add_field(command, change, "--at-expiry", "at_expiry", "WHAT", "drop it then, or bury it: dead");
  add_flag(command, "--json", request->json, kChangedJson);
  add_server_option(command, request->server);
}

void add_release(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<ChangeRequest>();
  CLI::App& command = add_change(app, "release", kReleaseExamples, request, release, exit_code);
  json::object& change = request->change;
  const Argument delay = add_field(command, change, "--delay", "delay", "DURATION",
                                   "Not now, but this long from now", duration_of);
  add_field(command, change, "--at", "due", "TIME", "Not now, but at this time", moment_of)
      .excludes(delay);
  add_field(command, change, "--pri", "priority", "N", "With another priority", priority_of);
  add_flag(command, "--json", request->json, kChangedJson);
  add_server_option(command, request->server);
}

}  // namespace carillon::cli
