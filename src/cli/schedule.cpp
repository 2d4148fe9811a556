// `carillon schedule` and `carillon endpoint`: the two kinds of things that a server keeps by name.
// A schedule puts a job again and again; to an endpoint the server posts the jobs of a tube. Both
// are set, listed, shown, paused, resumed and deleted in the same way.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/schedule.h"
#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/asked.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/file_fields.h"
#include "cli/json_fields.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "server/api/endpoints.h"
#include "server/text/json_value.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kScheduleExamples =
    R"(ACTION: set, list, show, pause, resume, trigger (put its job now), delete.
The body of its jobs is BODY, or all of standard input. set again changes
everything: what it does not name is as in a new schedule.
--cron: minute hour day-of-month month day-of-week, or @hourly, @daily, ...

Examples:
  carillon schedule set report --cron "30 8 * * MON-FRI" \
    --zone Europe/Berlin --tube mail "sales"
  carillon schedule set sweep --every 10m --overlap skip "sweep"
  carillon schedule set bill --cron @daily --group acme --max-attempts 5 \
    --backoff 1m..1h --expires-in 12h "bill"
  carillon schedule show report     what it is, and its next five times
  carillon schedule trigger report  prints the id of the job
  carillon schedule list)";

constexpr const char* kEndpointExamples =
    R"(ACTION: set, list, show, test (posts a request without a job, and prints the
answer), pause, resume (also after the endpoint has answered 410, or while it
rests), rotate (makes a new secret), delete. set again changes everything except
the secrets, unless they are given. A new secret is printed, and never again.

Examples:
  carillon endpoint set billing --tube bills --url https://example.com/hook
  carillon endpoint set billing --tube bills --url https://example.com/hook \
    --concurrency 4 --header "Authorization: Bearer x" --secret-file secrets
  carillon endpoint test billing     204 after 31ms
  carillon endpoint rotate billing --overlap 2h
  carillon endpoint list)";

constexpr std::array<std::string_view, 7> kScheduleActions = {"set",    "list",    "show",  "pause",
                                                              "resume", "trigger", "delete"};
constexpr std::array<std::string_view, 8> kEndpointActions = {
    "set", "list", "show", "test", "pause", "resume", "rotate", "delete"};

struct NamedRequest : ApiRequest {
  std::string kind;  // "schedule"
  std::string action;
  std::optional<std::string> name;
  std::optional<std::string> body;         // what a schedule puts
  std::optional<std::string> secret_file;  // for an endpoint

  bool is_set() const { return action == "set"; }
  std::string path(std::string_view verb = {}) const {
    return fmt::format("/v1/{}s/{}{}", kind, url_part(*name), verb);
  }
};

// --- What both have in common.

void check_name(const NamedRequest& request) {
  if (request.action == "list" && request.name)
    throw UsageError(fmt::format("list takes no name: \"{}\"", *request.name));
  if (request.action != "list" && !request.name)
    throw UsageError(fmt::format("write the name: {} NAME", request.action));
}

json::array all_of(const NamedRequest& request, Api& api) {
  json::array all;
  api.read_pages(fmt::format("/v1/{}s", request.kind), "", [&](const json::object& page) {
    for (const json::value& one : page.at(request.kind + "s").as_array()) all.push_back(one);
    return true;
  });
  return all;
}

// Says that the thing is set, paused, resumed or deleted.
void tell(const NamedRequest& request, std::string_view done) {
  write_result(request.json, {{request.kind, *request.name}, {"result", done}},
               fmt::format("{} {} {}", done, request.kind, *request.name));
}

// pause, resume and delete.
void change(const NamedRequest& request, Api& api) {
  if (request.action == "delete") {
    api.ask("DELETE", request.path());
    return tell(request, "deleted");
  }
  api.ask("POST", request.path(":" + request.action));
  tell(request, request.action == "pause" ? "paused" : "resumed");
}

NamedRequest& add_kind(CLI::App& command, int& exit_code, const std::string& kind,
                       const char* examples, std::span<const std::string_view> actions,
                       int (*act)(NamedRequest&)) {
  NamedRequest& request = set_action(command, exit_code, examples, act);
  request.kind = kind;
  add_choice(command, "ACTION", request.action, actions,
             fmt::format("{}", fmt::join(actions, ", ")))
      .required();
  add_value(command, "NAME", request.name, parse_name, "The name of the " + kind);
  return request;
}

// --- Schedules.

void check_schedule(const NamedRequest& request) {
  check_name(request);
  if (!request.is_set() && request.body) throw UsageError("only set takes a body");
  if (!request.is_set() && !request.asked.is_empty())
    throw UsageError(fmt::format("{} is for set", request.asked.first_argument()));
  if (request.is_set() && !request.asked.has("/cron") && !request.asked.has("/every"))
    throw UsageError("write when: --cron or --every");
}

void set_schedule(const NamedRequest& request, Api& api) try {
  json::object fields = request.asked.fields();
  json::value& job = fields["job"];
  if (!job.is_object()) job.emplace_object();
  add_body(job.get_object(), body_or_standard_input(request.body, queue::kMaxScheduleBody));
  api.ask("PUT", request.path(), fields);
  tell(request, "set");
} catch (const Refusal& refusal) {
  request.asked.throw_usage(refusal);
}

// Returns the fields of a schedule and of its job, and a field for each of the next times.
json::object shown_schedule(const json::object& shown) {
  json::object fields;
  const auto add = [&fields](std::string name, const json::value& value) {
    std::replace(name.begin(), name.end(), '_', '-');
    fields[name] = value;
  };
  json::object job = shown.at("job").as_object();
  std::size_t body = 0;
  for (const char* const name : {"body", "body_base64"}) {
    if (job.contains(name)) body = job.at(name).as_string().size();
    job.erase(name);
  }
  add("name", shown.at("name"));
  for (const auto& [name, value] : file_fields(FileObject::kScheduledJob, job))
    add(std::string(name), value);
  add("body-bytes", body);
  for (const auto& [name, value] : shown)
    if (name != "name" && name != "job" && name != "next")
      add(name == "time_zone" ? "zone" : std::string(name), value);
  const json::array& next = shown.at("next").as_array();
  for (std::size_t i = 0; i < next.size(); ++i) add(fmt::format("next-{}", i + 1), next[i]);
  return fields;
}

void list_schedules(const NamedRequest& request, Api& api) {
  json::array names;
  std::string text;
  for (const json::value& one : all_of(request, api)) {
    names.push_back(one.at("name"));
    text.append(one.at("name").as_string()).append("\n");
  }
  write_out(request.json ? server::json_text(names) + "\n" : text);
}

void trigger(const NamedRequest& request, Api& api) {
  const json::value id = api.ask("POST", request.path(":trigger")).at("id");
  write_result(request.json, {{"schedule", *request.name}, {"id", id}}, server::json_text(id));
}

int schedule(NamedRequest& request) {
  check_schedule(request);
  Api api(request.server);
  if (request.is_set()) return set_schedule(request, api), kSuccess;
  if (request.action == "list") return list_schedules(request, api), kSuccess;
  try {
    if (request.action == "show") {
      write_fields(shown_schedule(api.get(request.path())), request.json);
    } else if (request.action == "trigger") {
      trigger(request, api);
    } else {
      change(request, api);
    }
  } catch (const Refusal& refusal) {
    if (refusal.status != 404) throw;
    throw Failure(fmt::format("schedule {} does not exist", *request.name));
  }
  return kSuccess;
}

// Returns the attributes that the server keeps with a job.
json::object parse_attributes(const std::string& text) {
  constexpr std::array<std::string_view, 4> kNames = {"content_type", "metadata", "traceparent",
                                                      "tracestate"};
  json::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object())
    throw std::invalid_argument(fmt::format("\"{}\": not a JSON object", text));
  for (const auto& [name, of] : value.get_object()) {
    if (std::find(kNames.begin(), kNames.end(), std::string_view(name)) == kNames.end())
      throw std::invalid_argument(fmt::format("\"{}\": write {}; what is yours goes into metadata",
                                              std::string_view(name), fmt::join(kNames, ", ")));
  }
  if (value.get_object().contains("tracestate") && !value.get_object().contains("traceparent"))
    throw std::invalid_argument(fmt::format("\"{}\": tracestate needs traceparent", text));
  return value.get_object();
}

constexpr Setting kScheduleSettings[] = {
    {"cron", "TIMES", "When: a cron expression"},
    {"zone", "ZONE", "Time zone of --cron, as Europe/Berlin (UTC)"},
    {"gap", "HOW",
     "A time that the zone's clocks skip: after, to run when they have gone forward, or skip "
     "(after)"},
    {"every", "DURATION", "Instead of --cron: the time from one job to the next, 1s or more"},
    {"start", "TIME", "With --every: count from there, RFC 3339 (now)"},
    {"overlap", "HOW", "While its last job is there: allow, skip or queue (allow)"},
    {"spread", "DURATION", "Jobs are due later by up to this, always the same"},
    {"catch_up", "HOW", "What was missed: none, last, all:DURATION (last)"},
    {"pri", "N", "Of its jobs: 0 (most urgent) to 4294967295 (65536)"},
    {"ttr", "DURATION", "How long a worker may hold a job (1m)"},
    {"tube", "TUBE", "Where to put the jobs (default)"},
    {"group", "GROUP", "The group of the jobs in their tube"},
    {"expires_in", "DURATION", "A job that is due for this long goes to no worker"},
    {"at_expiry", "HOW", "What becomes of it then: drop or dead (drop)"}};

// --- Endpoints.

std::pair<std::string, std::string> parse_header(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0)
    throw std::invalid_argument(fmt::format("\"{}\": write \"NAME: VALUE\"", text));
  std::string_view value = std::string_view(text).substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  return {text.substr(0, colon), std::string(value)};
}

// One secret a line, the newest first.
json::array read_secrets(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Failure(fmt::format("cannot read {}: {}", path, error_text(errno)));
  json::array secrets;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) secrets.push_back(json::string(line));
  }
  return secrets;
}

// Lists stand on one line: names of headers, and fingerprints of secrets.
json::object shown_endpoint(json::object shown) {
  for (auto& [key, value] : shown) {
    if (!value.is_array()) continue;
    std::string text;
    for (const json::value& one : value.get_array()) {
      if (!text.empty()) text += ", ";
      if (one.is_string()) text += std::string_view(one.get_string());
      if (!one.is_object()) continue;
      text += text_in(one.get_object(), "fingerprint");
      if (one.get_object().contains("until"))
        text += fmt::format(" (until {})", text_in(one.get_object(), "until"));
    }
    value = text;
  }
  return shown;
}

void list_endpoints(const NamedRequest& request, Api& api) {
  const json::array all = all_of(request, api);
  if (request.json) return write_out(server::json_text(all) + "\n");
  std::string text;
  for (const json::value& one : all) {
    const json::object& shown = one.as_object();
    text += fmt::format("{:<20} {:<9} {:<20} {}\n", text_in(shown, "name"), text_in(shown, "state"),
                        text_in(shown, "tube"), text_in(shown, "url"));
  }
  write_out(text);
}

// Prints the secret alone, if there is a new one.
void print_secret(const json::object& shown) {
  if (shown.contains("secret")) write_out(text_in(shown, "secret") + "\n");
}

void test(const NamedRequest& request, Api& api) {
  // The server answers when the attempt has ended, which takes 10 minutes at most.
  api.set_patience(std::chrono::minutes(11));
  const json::object trial = api.ask("POST", request.path(":test"));
  if (request.json) write_out(server::json_text(trial) + "\n");
  const std::string status = text_in(trial, "status");
  std::string told = status.empty() ? text_in(trial, "error") : "it answers " + status;
  if (trial.contains("answer")) told += ": " + text_in(trial, "answer");
  if (!status.starts_with('2')) throw Failure(fmt::format("endpoint {}: {}", *request.name, told));
  if (!request.json)
    write_out(fmt::format("{} after {}\n", status, text_in(trial, "took_ms") + "ms"));
}

void check_endpoint(const NamedRequest& request) {
  check_name(request);
  for (const auto& [key, value] : request.asked.fields()) {
    const std::string_view action = key == "overlap" ? "rotate" : "set";
    if (request.action != action)
      throw UsageError(fmt::format("--{} is for {}",
                                   key == "headers" ? "header" : std::string_view(key), action));
  }
  if (!request.is_set() && request.secret_file) throw UsageError("--secret-file is for set");
  for (const char* const needed : {"url", "tube"})
    if (request.is_set() && !request.asked.fields().contains(needed))
      throw UsageError(fmt::format("write --{}", needed));
}

int endpoint(NamedRequest& request) try {
  check_endpoint(request);
  Api api(request.server);
  if (request.action == "list") {
    list_endpoints(request, api);
  } else if (request.is_set()) {
    if (request.secret_file)
      request.asked.set("/secrets", read_secrets(*request.secret_file), "--secret-file");
    print_secret(api.ask("PUT", request.path(), request.asked.fields()));
  } else if (request.action == "show") {
    const json::object shown = api.get(request.path());
    write_fields(request.json ? shown : shown_endpoint(shown), request.json);
  } else if (request.action == "rotate") {
    print_secret(api.ask("POST", request.path(":rotate"), request.asked.fields()));
  } else if (request.action == "test") {
    test(request, api);
  } else {
    change(request, api);
  }
  return kSuccess;
} catch (const Refusal& refusal) {
  request.asked.throw_usage(refusal);
}

// The options of set and of rotate.
void add_endpoint_options(CLI::App& command, Asked& asked) {
  asked.add_arguments(command, server::kShape<server::NewEndpoint>,
                      {.without = "name secrets headers",
                       .helps = {{"url", "Where to post: http or https"},
                                 {"tube", "The tube whose jobs are posted"},
                                 {"format", "standard, cloudevents or cloudevents-json (standard)"},
                                 {"concurrency", "How many jobs are posted at once, 1 to 64 (10)"},
                                 {"timeout", "How long an attempt may take, 100ms to 10m (15s)"}}});
  asked.add_arguments(
      command, server::kShape<server::RotateEndpoint>,
      {.without = "name",
       .helps = {{"overlap", "For rotate: how long the secrets before sign, too (24h)"}}});
}

}  // namespace

void add_schedule(CLI::App& command, int& exit_code) {
  NamedRequest& request =
      add_kind(command, exit_code, "schedule", kScheduleExamples, kScheduleActions, schedule);
  Asked& asked = request.asked;
  add_text(command, "BODY", request.body,
           "What the worker gets; - or nothing: read it from standard input");
  add_settings(command, asked, FileObject::kSchedule, kScheduleSettings);
  add_retry_settings(command, asked, FileObject::kSchedule);
  const auto set_attributes = [&asked](const std::string& text) {
    for (const auto& [name, value] : parse_argument("--attributes", parse_attributes, text))
      asked.set("/job/" + std::string(name), value, "--attributes");
  };
  add_text(command, "--attributes JSON", set_attributes,
           "Kept with each job: a JSON object that may have content_type, metadata, traceparent, "
           "tracestate");
  add_json_and_server(command, request, "Print JSON");
}

void add_endpoint(CLI::App& command, int& exit_code) {
  NamedRequest& request =
      add_kind(command, exit_code, "endpoint", kEndpointExamples, kEndpointActions, endpoint);
  add_endpoint_options(command, request.asked);
  const auto set_headers = [&asked = request.asked](const std::vector<std::string>& texts) {
    json::object headers;
    for (const std::string& text : texts) {
      const auto [name, value] = parse_argument("--header", parse_header, text);
      headers[name] = value;
    }
    asked.set("/headers", std::move(headers), "--header");
  };
  add_list(command, "--header HEADER", set_headers,
           "\"NAME: VALUE\" of each request; may be given several times");
  add_text(command, "--secret-file FILE", request.secret_file,
           "Secrets of your own, whsec_..., one a line, the newest first");
  add_json_and_server(command, request, "Print JSON (list, show, test)");
}

}  // namespace carillon::cli
