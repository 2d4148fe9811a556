// `carillon schedule`: makes, shows and changes schedules, which put a job again and again.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "carillon/queue/schedule.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stats_fields.h"
#include "server/api/attributes.h"

namespace carillon::cli {
namespace {

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
  // As the server takes them: it checks the values.
  std::map<std::string, std::string> options;
  bool json = false;
};

std::string parse_action(const std::string& text) {
  if (std::find(kActions.begin(), kActions.end(), text) != kActions.end()) return text;
  throw std::invalid_argument(fmt::format("\"{}\": there are {}", text, fmt::join(kActions, ", ")));
}

// What the server reads as one value.
std::string parse_plain(const std::string& text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"'; };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  throw std::invalid_argument(
      fmt::format("\"{}\": write letters, digits and signs, and no double quote", text));
}

// A JSON object in one word, which has quotes of its own.
std::string parse_attributes(const std::string& text) {
  return server::attributes_of(text);
}

// Says that the schedule is set, paused, resumed or deleted.
void tell(const Request& request, std::string_view done) {
  write_out(request.json
                ? fmt::format("{{\"schedule\":\"{}\",\"result\":\"{}\"}}\n", *request.name, done)
                : fmt::format("{} schedule {}\n", done, *request.name));
}

void set(const Request& request, Client& client) {
  std::string options;
  for (const auto& [name, value] : request.options) {
    const bool is_word = name == "attributes";
    options +=
        is_word ? fmt::format(" {}={}", name, value) : fmt::format(" {}=\"{}\"", name, value);
  }
  client.set_schedule(*request.name, std::string_view(options).substr(options.empty() ? 0 : 1),
                      body_or_standard_input(request.body, queue::kMaxScheduleBody));
  tell(request, "set");
}

void list(const Request& request, Client& client) {
  std::string text;
  for (const std::string& name : client.schedules()) {
    text += request.json ? fmt::format("{}\"{}\"", text.empty() ? "" : ",", name) : name + "\n";
  }
  write_out(request.json ? "[" + text + "]\n" : text);
}

[[noreturn]] void fail_without(const std::string& name) {
  throw Failure(fmt::format("schedule {} does not exist", name));
}

void act(const Request& request, Client& client) {
  const std::string& name = *request.name;
  if (request.action == "show") {
    const auto stats = client.stats_schedule(name);
    if (!stats) fail_without(name);
    return write_out(request.json ? to_json(*stats) : to_table(*stats));
  }
  if (request.action == "trigger") {
    const auto id = client.trigger_schedule(name);
    if (!id) fail_without(name);
    return write_out(request.json ? fmt::format("{{\"schedule\":\"{}\",\"id\":{}}}\n", name, *id)
                                  : fmt::format("{}\n", *id));
  }
  if (request.action == "pause") {
    if (!client.pause_schedule(name)) fail_without(name);
    return tell(request, "paused");
  }
  if (request.action == "resume") {
    if (!client.resume_schedule(name)) fail_without(name);
    return tell(request, "resumed");
  }
  if (!client.delete_schedule(name)) fail_without(name);
  tell(request, "deleted");
}

void check(const Request& request) {
  const bool is_set = request.action == "set";
  if (request.action == "list" && request.name)
    throw UsageError(fmt::format("list takes no name: \"{}\"", *request.name));
  if (request.action != "list" && !request.name)
    throw UsageError(fmt::format("write the name: {} NAME", request.action));
  if (!is_set && request.body) throw UsageError("only set takes a body");
  if (!is_set && !request.options.empty())
    throw UsageError(fmt::format("--{} is for set", request.options.begin()->first));
  if (is_set && !request.options.contains("cron") && !request.options.contains("every"))
    throw UsageError("write when: --cron or --every");
}

int schedule(const Request& request) {
  check(request);
  Client client(Stream::connect(request.server));
  if (request.action == "set") {
    set(request, client);
  } else if (request.action == "list") {
    list(request, client);
  } else {
    act(request, client);
  }
  return kSuccess;
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
  const auto option = [&](const std::string& name, const char* type, const char* description) {
    add_value(command, "--" + name, request->options[name], parse_plain, description)
        .type_name(type);
  };
  option("cron", "TIMES", "When: a cron expression");
  option("zone", "ZONE", "Time zone of --cron, as Europe/Berlin (UTC)");
  option("gap", "HOW",
         "A time that the zone's clocks skip: after, to run\nwhen they have gone forward, or skip "
         "(after)");
  option("every", "DURATION", "Instead of --cron: every so long, 1s or more");
  option("start", "TIME", "Of --every: count from there, RFC 3339 (now)");
  option("catch-up", "HOW", "What was missed: none, last, all:DURATION (last)");
  option("overlap", "HOW", "While its last job is there: allow, skip or queue\n(allow)");
  option("spread", "DURATION", "Jobs are due up to so much later, always the same");
  option("pri", "N", "Of the jobs: 0 (most urgent) to 4294967295 (65536)");
  option("ttr", "DURATION", "How long a worker may hold a job (1m)");
  option("tube", "TUBE", "Where to put the jobs (default)");
  option("group", "GROUP", "Of the jobs: their group of the tube");
  option("max-attempts", "N", "After N failed attempts a job is dead (the tube's)");
  option("backoff", "DURATION", "How long a failed job waits: 30s, or 1s..1h, which\ndoubles");
  option("jitter", "PERCENT", "Up to so much is added to that: 10%");
  option("lost", "HOW", "A lost connection of a worker: fails or returns\n(returns)");
  option("expires-in", "DURATION", "So long after a job is due no worker gets it any\nmore");
  option("at-expiry", "HOW", "What becomes of it then: drop or dead (drop)");
  add_value(command, "--attributes", request->options["attributes"], parse_attributes,
            "A JSON object that is kept with each job")
      .type_name("JSON");
  add_flag(command, "--json", request->json, "Print JSON");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] {
    std::erase_if(request->options, [](const auto& entry) { return entry.second.empty(); });
    exit_code = schedule(*request);
  });
}

}  // namespace carillon::cli
