// `carillon schedule`: makes, shows and changes schedules, which put a job again and again.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <memory>
#include <optional>
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
#include "cli/file_fields.h"
#include "cli/job_json.h"
#include "cli/output.h"
#include "cli/setting_values.h"
#include "cli/stats_fields.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kExamples =
    R"(ACTION: set, list, show, pause, resume, trigger (put its job now), delete.
The body of its jobs is BODY, or all of standard input. set again changes it.
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

constexpr std::array<std::string_view, 7> kActions = {"set",    "list",    "show",  "pause",
                                                      "resume", "trigger", "delete"};

struct Request {
  ServerAddress server;
  std::string action;
  std::optional<std::string> name;
  std::optional<std::string> body;
  // As the server takes it: it checks the values.
  Asked asked;
  bool json = false;
};

std::string parse_action(const std::string& text) {
  if (std::find(kActions.begin(), kActions.end(), text) != kActions.end()) return text;
  throw std::invalid_argument(fmt::format("\"{}\": there are {}", text, fmt::join(kActions, ", ")));
}

json::value parse_text(const std::string& text) {
  return json::value(text);
}

json::value parse_number(const std::string& text) {
  return parse_priority(text);
}

// What the server keeps with a job, and gives back.
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
  return value.get_object();
}

std::string path_of(const Request& request, std::string_view verb = {}) {
  return "/v1/schedules/" + url_part(*request.name) + std::string(verb);
}

// Says that the schedule is set, paused, resumed or deleted.
void tell(const Request& request, std::string_view done) {
  write_out(request.json
                ? fmt::format("{{\"schedule\":\"{}\",\"result\":\"{}\"}}\n", *request.name, done)
                : fmt::format("{} schedule {}\n", done, *request.name));
}

void set(const Request& request, Api& api) try {
  json::object fields = request.asked.fields();
  json::value& job = fields["job"];
  if (!job.is_object()) job.emplace_object();
  add_body(job.get_object(), body_or_standard_input(request.body, queue::kMaxScheduleBody));
  api.ask("PUT", path_of(request), fields);
  tell(request, "set");
} catch (const Refusal& refusal) {
  request.asked.throw_usage(refusal);
}

void list(const Request& request, Api& api) {
  std::string text;
  std::string token;
  do {
    const json::object page = api.get("/v1/schedules" + token);
    for (const json::value& one : page.at("schedules").as_array()) {
      const std::string name(one.at("name").as_string());
      text += request.json ? fmt::format("{}\"{}\"", text.empty() ? "" : ",", name) : name + "\n";
    }
    const json::value& next = page.at("next_page_token");
    token = next.is_string() ? "?page_token=" + url_part(next.get_string()) : std::string();
  } while (!token.empty());
  write_out(request.json ? "[" + text + "]\n" : text);
}

// What a schedule is, its job beside its times, a line for each of the next times.
StatsFields fields_of(const json::object& shown) {
  std::vector<StatsField> fields;
  const auto add = [&fields](std::string name, const json::value& value) {
    std::replace(name.begin(), name.end(), '_', '-');
    fields.push_back(
        {.name = std::move(name),
         .value = value.is_string() ? std::string(value.get_string()) : json::serialize(value),
         .quoted = value.is_string()});
  };
  json::object job = shown.at("job").as_object();
  std::size_t body = 0;
  for (const char* const name : {"body", "body_base64"})
    if (job.contains(name)) body = job.at(name).as_string().size();
  job.erase("body");
  job.erase("body_base64");
  add("name", shown.at("name"));
  for (const auto& [name, value] : file_fields(FileObject::kScheduledJob, job))
    add(std::string(name), value);
  add("body-bytes", body);
  for (const auto& [name, value] : shown) {
    if (name == "name" || name == "job") continue;
    if (name != "next") {
      add(name == "time_zone" ? "zone" : std::string(name), value);
      continue;
    }
    for (std::size_t i = 0; i < value.as_array().size(); ++i)
      add(fmt::format("next-{}", i + 1), value.as_array()[i]);
  }
  return StatsFields(std::move(fields));
}

void act(const Request& request, Api& api) {
  const std::string& name = *request.name;
  if (request.action == "show") {
    const StatsFields fields = fields_of(api.get(path_of(request)));
    return write_out(request.json ? to_json(fields) : to_table(fields));
  }
  if (request.action == "delete") {
    api.ask("DELETE", path_of(request));
    return tell(request, "deleted");
  }
  const json::object answer = api.ask("POST", path_of(request, ":" + request.action));
  if (request.action != "trigger")
    return tell(request, request.action == "pause" ? "paused" : "resumed");
  const auto id = answer.at("id").to_number<std::uint64_t>();
  write_out(request.json ? fmt::format("{{\"schedule\":\"{}\",\"id\":{}}}\n", name, id)
                         : fmt::format("{}\n", id));
}

void check(const Request& request) {
  const bool is_set = request.action == "set";
  if (request.action == "list" && request.name)
    throw UsageError(fmt::format("list takes no name: \"{}\"", *request.name));
  if (request.action != "list" && !request.name)
    throw UsageError(fmt::format("write the name: {} NAME", request.action));
  if (!is_set && request.body) throw UsageError("only set takes a body");
  if (!is_set && !request.asked.is_empty())
    throw UsageError(fmt::format("{} is for set", request.asked.first_argument()));
  if (is_set && !request.asked.has("/cron") && !request.asked.has("/every"))
    throw UsageError("write when: --cron or --every");
}

int schedule(const Request& request) {
  check(request);
  Api api(request.server);
  if (request.action == "set") return set(request, api), kSuccess;
  if (request.action == "list") return list(request, api), kSuccess;
  try {
    act(request, api);
  } catch (const Refusal& refusal) {
    if (refusal.status != 404) throw;
    throw Failure(fmt::format("schedule {} does not exist", *request.name));
  }
  return kSuccess;
}

using Parse = json::value (*)(const std::string&);

void add_option(CLI::App& command, Asked& asked, const std::string& name,
                const std::string& pointer, const char* type, const char* description,
                Parse parse = parse_text) {
  const auto set = [&asked, name, pointer, parse](const std::string& text) {
    asked.set(pointer, parse_argument(name, parse, text), name);
  };
  add_text(command, name, set, description).type_name(type);
}

// "all:1h" is two fields.
void set_catch_up(Asked& asked, const std::string& text) {
  const std::size_t colon = text.find(':');
  asked.set("/catch_up", json::value(text.substr(0, colon)), "--catch-up");
  if (colon != text.npos)
    asked.set("/catch_up_window", json::value(text.substr(colon + 1)), "--catch-up");
}

void add_times(CLI::App& command, Asked& asked) {
  const auto option = [&](const std::string& name, const char* pointer, const char* type,
                          const char* description) {
    add_option(command, asked, name, pointer, type, description);
  };
  option("--cron", "/cron", "TIMES", "When: a cron expression");
  option("--zone", "/time_zone", "ZONE", "Time zone of --cron, as Europe/Berlin (UTC)");
  option("--gap", "/gap", "HOW",
         "A time that the zone's clocks skip: after, to run\nwhen they have gone forward, or skip "
         "(after)");
  option("--every", "/every", "DURATION", "Instead of --cron: every so long, 1s or more");
  option("--start", "/start", "TIME", "Of --every: count from there, RFC 3339 (now)");
  add_text(
      command, "--catch-up", [&asked](const std::string& text) { set_catch_up(asked, text); },
      "What was missed: none, last, all:DURATION (last)")
      .type_name("HOW");
  option("--overlap", "/overlap", "HOW",
         "While its last job is there: allow, skip or queue\n(allow)");
  option("--spread", "/spread", "DURATION", "Jobs are due up to so much later, always the same");
}

void add_job(CLI::App& command, Asked& asked) {
  const auto option = [&](const std::string& name, const char* pointer, const char* type,
                          const char* description, Parse parse = parse_text) {
    add_option(command, asked, name, pointer, type, description, parse);
  };
  option("--pri", "/job/priority", "N", "Of the jobs: 0 (most urgent) to 4294967295 (65536)",
         parse_number);
  option("--ttr", "/job/ttr", "DURATION", "How long a worker may hold a job (1m)");
  option("--tube", "/job/tube", "TUBE", "Where to put the jobs (default)");
  option("--group", "/job/group", "GROUP", "Of the jobs: their group of the tube");
  option("--max-attempts", "/job/retry/max_attempts", "N",
         "After N failed attempts a job is dead (the tube's)", parse_count);
  option("--backoff", "/job/retry/backoff", "DURATION",
         "How long a failed job waits: 30s, or 1s..1h, which\ndoubles", parse_backoff);
  option("--jitter", "/job/retry/backoff/jitter", "PERCENT", "Up to so much is added to that: 10%",
         parse_jitter);
  option("--lost", "/job/retry/lost_fails", "HOW",
         "A lost connection of a worker: fails or returns\n(returns)", parse_lost);
  option("--expires-in", "/job/expires_in", "DURATION",
         "So long after a job is due no worker gets it any\nmore");
  option("--at-expiry", "/job/at_expiry", "HOW", "What becomes of it then: drop or dead (drop)");
  const auto set_attributes = [&asked](const std::string& text) {
    for (const auto& [name, value] : parse_argument("--attributes", parse_attributes, text))
      asked.set("/job/" + std::string(name), value, "--attributes");
  };
  add_text(command, "--attributes", set_attributes,
           "Kept with each job: a JSON object that may have\ncontent_type, metadata, traceparent, "
           "tracestate")
      .type_name("JSON");
}

}  // namespace

void add_schedule(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "schedule", kExamples);
  add_value(command, "ACTION", request->action, parse_action, "").type_name("").required();
  add_value(command, "NAME", request->name, parse_tube, "Of the schedule").type_name("");
  add_value(
      command, "BODY", request->body, [](const std::string& text) { return text; },
      "What the worker gets; - or nothing: read it from\nstandard input")
      .type_name("");
  add_times(command, request->asked);
  add_job(command, request->asked);
  add_flag(command, "--json", request->json, "Print JSON");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = schedule(*request); });
}

}  // namespace carillon::cli
