// Commands for single jobs, which are named by their ids or by a key: `carillon cancel`, `delete`,
// `bury`, `patch`, `release` and `peek`.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
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
#include "cli/commands.h"
#include "cli/file_fields.h"
#include "cli/json_fields.h"
#include "cli/output.h"
#include "cli/wait.h"
#include "server/api/jobs.h"
#include "server/text/duration.h"
#include "server/text/timestamp.h"
#include "server/text/visible_text.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kCancelExamples =
    R"(Works on ready, delayed and buried jobs. A job that a worker holds is left
alone; with --ask it is deleted when its worker ends it, however that goes.
The exit code is 1 if a job is left; the others are cancelled. Many jobs of a
tube are named by --state, --group, --key-prefix, --due-after, --due-before and
--reason, or by --all.

Examples:
  carillon cancel 7 8
  carillon cancel --key invoice-7 --tube mail
  carillon cancel --key-prefix invoice- --tube mail --dry-run
  carillon cancel --ask 7)";

constexpr const char* kDeleteExamples =
    R"(Works on ready, delayed and buried jobs, and says that their work is done: the
key of a ready job stays taken for its --key-window. A job that a worker holds
is left alone. The exit code is 1 if a job is left; the others are deleted.

Examples:
  carillon delete 7
  carillon delete 7 8 9
  id=$(carillon put --delay 1h "reminder") && carillon delete "$id")";

constexpr const char* kBuryExamples =
    R"(A buried job is kept, and no worker gets it until it is kicked or released.
Works on ready and delayed jobs, and costs them no attempt. A job that a worker
holds is left alone. The exit code is 1 if a job is left; the others are buried.

Examples:
  carillon bury 7 8
  carillon bury --key invoice-7 --tube mail
  carillon release 7                      gives it to the workers again)";

constexpr const char* kPatchExamples =
    R"(Works on delayed, buried and ready jobs, and costs them no attempt. What is not
named stays as it is. A job that a worker holds is left alone. The exit code is
1 if a job is left; the others are changed. A buried job that gets a new due
time is not buried any more.

Examples:
  carillon patch 7 8 --pri 0
  carillon patch --key invoice-7 --tube mail --ttr 10m
  carillon patch 7 --body - < job.json
  carillon patch 7 --delay 1h --expires-in 2h
  carillon patch 7 --expires-at never)";

constexpr const char* kReleaseExamples =
    R"(Works on delayed, buried and ready jobs, and costs them no attempt; a dead job
has all its attempts again. A job that a worker holds is left alone. Prints when
each job is due. The exit code is 1 if a job is left; the others are released.

Examples:
  carillon release 7 8                    now
  carillon release 7 --delay 1h           in an hour, delayed or buried before
  carillon release --key invoice-7 --tube mail --at 2030-01-01T09:00:00Z)";

constexpr const char* kPeekExamples =
    R"(Prints the body byte for byte on standard output, on a terminal with a line end
and with \x1B for control characters. Prints on standard error where the job is,
when it is due, and how its failed attempts ended.

Examples:
  carillon peek 7
  carillon peek --key invoice-7 --tube mail
  carillon peek --delayed              the next one due in tube default
  carillon peek --buried --tube mail --json)";

struct NamedJob {
  std::string path;        // in the API: "/v1/jobs/7", "/v1/tubes/mail/keys/invoice-7"
  std::string name;        // as people read it: "job 7", "job with key invoice-7 in tube mail"
  std::string short_name;  // "7"
};

// The arguments of these commands.
struct JobsRequest : ApiRequest {
  std::vector<std::uint64_t> ids;
  std::string key;
  std::string tube{kDefaultTube};

  // Throws UsageError if no job is named.
  std::vector<NamedJob> jobs() const {
    if (ids.empty() && key.empty()) throw UsageError("give the jobs' IDs, or the --key of one");
    std::vector<NamedJob> jobs;
    for (const std::uint64_t id : ids) {
      jobs.push_back(
          {fmt::format("/v1/jobs/{}", id), fmt::format("job {}", id), fmt::to_string(id)});
    }
    if (key.empty()) return jobs;
    const std::string name = fmt::format("job with key {} in tube {}", key, tube);
    return {{fmt::format("/v1/tubes/{}/keys/{}", url_part(tube), url_part(key)), name, name}};
  }
};

// The end of a change of one job, as JSON and for people.
struct Outcome {
  json::object shown;
  std::string text;
};

// Calls `change` for each job and prints its Outcome. Says which ones the server has left alone,
// and why. Returns the exit code.
template <class Change>
int for_each_job(const JobsRequest& request, std::string_view command, Change change) {
  const std::vector<NamedJob> jobs = request.jobs();
  Api api(request.server);
  int exit_code = kSuccess;
  for (const NamedJob& job : jobs) {
    try {
      const Outcome outcome = change(api, job);
      write_result(request.json, outcome.shown, outcome.text);
    } catch (const Refusal& refusal) {
      if (refusal.status != 409 && refusal.status != 404) request.asked.throw_usage(refusal);
      const std::string_view advice = command == "cancel" ? "; see --ask" : "";
      remark(refusal.status == 409
                 ? fmt::format("carillon {}: a worker holds {}{}", command, job.name, advice)
                 : fmt::format("carillon {}: {} does not exist", command, job.name));
      exit_code = kFailure;
    }
  }
  return exit_code;
}

// The job as --json shows it, without its body.
json::object shown_fields(const json::object& job) {
  json::object shown = file_fields(FileObject::kJob, job);
  for (const char* const name : {"body", "body_base64"}) shown.erase(name);
  if (job.contains("due")) shown["due_ms"] = server::parse_timestamp(text_in(job, "due"));
  if (job.contains("lease_ends")) shown["lease_ends"] = job.at("lease_ends");
  return shown;
}

// Returns the JSON of a job that is gone.
json::object ended(const JobsRequest& request, const NamedJob& job, std::string_view result) {
  if (request.key.empty()) return {{"id", parse_job_id(job.short_name)}, {"result", result}};
  return {{"tube", request.tube}, {"key", request.key}, {"result", result}};
}

// --- cancel, delete, bury

struct CancelRequest : JobsRequest {
  bool ask = false;
  bool all = false;
};

int cancel_many(const CancelRequest& request) {
  if (!request.ids.empty() || !request.key.empty() || request.ask)
    throw UsageError("give IDs or a --key, or say by a filter which jobs, not both");
  Asked asked = request.asked;
  asked.set("/filter/tube", json::value(request.tube), "--tube");
  return change_many<server::ChangeJobs>(
      request.server, asked,
      {.row = "cancelJobs", .done = "cancelled", .tube = request.tube, .json = request.json});
}

int cancel(const CancelRequest& request) {
  if (has_filter(request.asked) || request.all) return cancel_many(request);
  if (!request.asked.is_empty())
    throw UsageError(fmt::format("--dry-run is for many jobs: say which by {}", kFilterOptions));
  if (request.ids.empty() && request.key.empty())
    throw UsageError(fmt::format("give the jobs' IDs, the --key of one, or {}", kFilterOptions));
  return for_each_job(request, "cancel", [&](Api& api, const NamedJob& job) -> Outcome {
    const json::object answer =
        api.ask("DELETE", job.path + (request.ask ? "?if_reserved=ask" : ""));
    const bool is_asked = answer.contains("cancel_requested");
    return {ended(request, job, is_asked ? "asked" : "cancelled"),
            fmt::format("{} {}", is_asked ? "asked for" : "cancelled", job.name)};
  });
}

int delete_jobs(const JobsRequest& request) {
  return for_each_job(request, "delete", [&](Api& api, const NamedJob& job) -> Outcome {
    api.ask("DELETE", job.path + "?done=true");
    return {ended(request, job, "deleted"), fmt::format("deleted {}", job.short_name)};
  });
}

int bury(const JobsRequest& request) {
  return for_each_job(request, "bury", [&](Api& api, const NamedJob& job) -> Outcome {
    // The API buries by id alone.
    const bool has_id = job.path.starts_with("/v1/jobs/");
    const std::string path =
        has_id ? job.path : fmt::format("/v1/jobs/{}", api.get(job.path).at("id").as_int64());
    api.ask("POST", path + ":bury", request.asked.fields());
    return {request.json ? shown_fields(api.get(path)) : json::object(), "buried " + job.name};
  });
}

// --- patch and release

struct ChangeRequest : JobsRequest {
  std::optional<std::string> body;
};

// Returns the fields that the job should have.
json::object change_of(const JobsRequest& request) {
  if (request.asked.has("/delay") && request.asked.has("/due"))
    throw UsageError("give --delay or --at, not both");
  if (request.asked.has("/expires_in") && request.asked.has("/expires_at"))
    throw UsageError("give --expires-in or --expires-at, not both");
  return request.asked.fields();
}

int patch(const ChangeRequest& request) {
  request.jobs();
  json::object change = change_of(request);
  if (change.empty() && !request.body)
    throw UsageError("say what to change, e.g. --pri 0, --ttr 10m or --body TEXT");
  if (request.body) add_body(change, body_or_standard_input(request.body, queue::kBodyPiece));
  return for_each_job(request, "patch", [&](Api& api, const NamedJob& job) -> Outcome {
    return {shown_fields(api.ask("PATCH", job.path, change)), "changed " + job.name};
  });
}

int release(const JobsRequest& request) {
  json::object change = change_of(request);
  if (!change.contains("due") && !change.contains("delay")) change["delay"] = "0s";
  return for_each_job(request, "release", [&](Api& api, const NamedJob& job) -> Outcome {
    const json::object now = api.ask("PATCH", job.path, change);
    const bool is_delayed = now.contains("state") && now.at("state") == "delayed";
    return {shown_fields(now), fmt::format("released {}: {}", job.name,
                                           is_delayed ? "due " + text_in(now, "due") : "ready")};
  });
}

// --- peek

struct PeekRequest : JobsRequest {
  std::string state;  // show the job that leaves this state next
};

json::object find_job(const PeekRequest& request, Api& api) try {
  if (request.state.empty()) return api.get(request.jobs().front().path);
  return api.get(fmt::format("/v1/tubes/{}/next?state={}", url_part(request.tube), request.state));
} catch (const Refusal& refusal) {
  if (refusal.status != 404) throw;
  if (request.state.empty()) throw Failure(request.jobs().front().name + " does not exist");
  throw Failure(fmt::format("no {} job in tube {}", request.state, request.tube));
}

std::chrono::milliseconds time_until(const std::string& moment) {
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(server::parse_timestamp(moment) - utc_now_ms()));
}

// Returns how long from now the moment is: "in 1h30m", "0.50s ago".
std::string from_now(const std::string& moment) {
  const std::chrono::milliseconds left = time_until(moment);
  return left.count() >= 0 ? "in " + server::short_duration(left)
                           : server::short_duration(-left) + " ago";
}

// Returns the job's state, for example "delayed, due 2030-01-01T09:00:00.000Z, in 40d00h".
std::string describe(const json::object& job) {
  std::string text = job.contains("died") ? "buried" : text_in(job, "state");
  const auto add = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) text += fmt::format(", {} {}", what, value);
  };
  if (job.contains("lease_ends")) {
    const std::string worker = bytes_in(job, "worker");
    const auto left =
        std::chrono::floor<std::chrono::seconds>(time_until(text_in(job, "lease_ends")));
    if (!worker.empty()) text += " by " + worker;
    text += fmt::format(", {} s left", std::max<std::int64_t>(left.count(), 0));
  }
  add("due", text_in(job, "due") + ", " + from_now(text_in(job, "due")));
  add("expires", text_in(job, "expires_at"));
  if (job.contains("cancel_requested")) text += ", its cancel is asked for";
  add("ttr", text_in(job, "ttr"));
  const json::object fields = file_fields(FileObject::kJob, job);
  add("attributes", text_in(fields, "attributes"));
  add("group", bytes_in(job, "group"));
  add("key", bytes_in(job, "key"));
  const auto failed = job.at("failed_attempts").to_number<std::uint64_t>();
  if (failed > 0) add("failed attempts:", std::to_string(failed));
  add("dead:", text_in(job, "died"));
  return text;
}

// The failed attempts, with the names that they have in --json.
json::array story_of(const json::object& job) {
  json::array story;
  const json::value* const attempts = job.if_contains("attempts");
  if (attempts == nullptr) return story;
  for (const json::value& one : attempts->as_array()) {
    const json::object& attempt = one.as_object();
    const std::string ending = text_in(attempt, "ended");
    json::object line{{"time", attempt.at("at")},
                      {"ending", ending == "timed_out" ? "timed-out" : ending}};
    for (const char* const name : {"worker", "worker_base64", "error", "error_base64"})
      if (attempt.contains(name)) line[name] = attempt.at(name);
    story.push_back(std::move(line));
  }
  return story;
}

void tell(const json::object& job, const json::array& story) {
  remark(server::visible(fmt::format("job {} in tube {}: {}", job.at("id").as_int64(),
                                     text_in(job, "tube"), describe(job))));
  for (const json::value& one : story) {
    const json::object& attempt = one.as_object();
    const std::string error = bytes_in(attempt, "error");
    remark(server::visible(fmt::format("  {} {}, {}{}{}", text_in(attempt, "time"),
                                       text_in(attempt, "ending"), bytes_in(attempt, "worker"),
                                       error.empty() ? "" : ": ", error)));
  }
}

int peek(const PeekRequest& request) {
  if (request.ids.empty() && request.key.empty() && request.state.empty())
    throw UsageError("give a job's ID, or one of --key, --ready, --delayed and --buried");
  if (request.ids.size() + (request.key.empty() ? 0 : 1) + (request.state.empty() ? 0 : 1) > 1)
    throw UsageError("give only one of a job's ID, --key, --ready, --delayed and --buried");
  Api api(request.server);
  const json::object job = find_job(request, api);
  const std::string body =
      job.contains("body_url") ? api.fetch("GET", text_in(job, "body_url")) : bytes_in(job, "body");
  const json::array story = story_of(job);
  if (request.json) {
    json::object shown = shown_fields(job);
    if (!story.empty()) shown["story"] = story;
    add_body(shown, body);
    return write_result(request.json, shown, ""), kSuccess;
  }
  write_body(body);
  tell(job, story);
  return kSuccess;
}

// --- The arguments

struct JobArguments {
  Argument ids;
  Argument key;
};

// Adds ID ..., --key KEY and --tube TUBE.
JobArguments add_job_arguments(CLI::App& command, JobsRequest& request, const std::string& which) {
  const Argument ids = add_value(command, "ID", request.ids, parse_job_id, which);
  const Argument key =
      add_value(command, "--key KEY", request.key, parse_key, "The job with this key");
  add_tube_option(command, request.tube, "In this tube (default: default)").excludes(ids);
  return {ids, key};
}

// Adds a command with these arguments. `verb` is what it does to the jobs.
template <class Of>
auto& add_job_command(CLI::App& command, int& exit_code, const char* examples, int (*act)(Of&),
                      std::string_view verb) {
  auto& request = set_action(command, exit_code, examples, act);
  const JobArguments named =
      add_job_arguments(command, request, fmt::format("The jobs to {}", verb));
  named.key.excludes(named.ids);
  return request;
}

constexpr const char* kEndedHelp =
    R"(Print {"id":...,"result":...}; of a job that was
named by its key: {"tube":...,"key":...,"result":...})";
constexpr const char* kJobHelp = R"(Print {"id":...,"tube":...,"state":...,"due":...})";

}  // namespace

void add_cancel(CLI::App& command, int& exit_code) {
  CancelRequest& request = add_job_command(command, exit_code, kCancelExamples, cancel, "cancel");
  add_flag(command, "--ask", request.ask, "If a worker holds it: when it is done");
  add_flag(command, "--json", request.json, kEndedHelp);
  add_bulk_options<server::ChangeJobs>(command, request.asked, request.all,
                                       {.without = "tube max page_token"});
  add_server_option(command, request.server);
}

void add_delete(CLI::App& command, int& exit_code) {
  auto& request = add_job_command(command, exit_code, kDeleteExamples, delete_jobs, "delete");
  add_json_and_server(command, request, kEndedHelp);
}

void add_bury(CLI::App& command, int& exit_code) {
  auto& request = add_job_command(command, exit_code, kBuryExamples, bury, "bury");
  request.asked.add_arguments(command, server::kShape<server::BuryJob>,
                              {.without = "id", .names = "priority:pri"});
  add_json_and_server(command, request, kJobHelp);
}

void add_patch(CLI::App& command, int& exit_code) {
  ChangeRequest& request = add_job_command(command, exit_code, kPatchExamples, patch, "patch");
  add_text(command, "--body TEXT", request.body, "Another body; - reads it from standard input");
  request.asked.add_arguments(
      command, server::kShape<server::ChangeJob>,
      {.without = "id body content_type metadata", .names = "priority:pri due:at"});
  add_json_and_server(command, request, kJobHelp);
}

void add_release(CLI::App& command, int& exit_code) {
  auto& request = add_job_command(command, exit_code, kReleaseExamples, release, "release");
  request.asked.add_arguments(
      command, server::kShape<server::ChangeJob>,
      {.without = "id ttr body expires_in expires_at at_expiry content_type metadata",
       .names = "priority:pri due:at"});
  add_json_and_server(command, request, kJobHelp);
}

void add_peek(CLI::App& command, int& exit_code) {
  PeekRequest& request = set_action(command, exit_code, kPeekExamples, peek);
  add_job_arguments(command, request, "This job");
  const auto state = [&](const std::string& name, const char* description) {
    const auto set = [&state = request.state, name] {
      if (!std::exchange(state, name).empty())
        throw UsageError("give only one of a job's ID, --key, --ready, --delayed and --buried");
    };
    add_flag(command, "--" + name, set, description);
  };
  state("ready", "The next job that a worker gets");
  state("delayed", "The next job that is due");
  state("buried", "The next job that a kick makes ready");
  add_json_and_server(command, request, kJobHelp);
}

}  // namespace carillon::cli
