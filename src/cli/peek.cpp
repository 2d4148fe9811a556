// `carillon peek`: shows a job without taking it.

#include <fmt/format.h>

#include <chrono>
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
#include "server/text/duration.h"
#include "server/text/timestamp.h"
#include "server/text/visible_text.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Prints the body byte for byte on standard output, on a terminal with a line end
and with \x1B for control characters,
and on standard error where the job is, when it is due, and what became of its
failed attempts.

Examples:
  carillon peek 7
  carillon peek --key invoice-7 --tube mail
  carillon peek --delayed              the next one due in tube default
  carillon peek --buried --tube mail --json)";

struct Request {
  ServerAddress server;
  std::optional<std::uint64_t> id;
  std::string key;
  bool ready = false;
  bool delayed = false;
  bool buried = false;
  std::string tube{kDefaultTube};
  bool json = false;
};

PeekState state_of(const Request& request) {
  if (request.ready) return PeekState::kReady;
  return request.delayed ? PeekState::kDelayed : PeekState::kBuried;
}

const char* name_of(PeekState state) {
  switch (state) {
    case PeekState::kReady:
      return "ready";
    case PeekState::kDelayed:
      return "delayed";
    case PeekState::kBuried:
      return "buried";
  }
  return "";
}

Job find_job(const Request& request, Client& client) {
  if (request.id) {
    if (auto job = client.peek(*request.id)) return *std::move(job);
    throw Failure(fmt::format("job {} does not exist", *request.id));
  }
  client.use(request.tube);
  if (!request.key.empty()) {
    if (auto job = client.peek("key=" + request.key)) return *std::move(job);
    throw Failure(fmt::format("no job in tube {} has key {}", request.tube, request.key));
  }
  const PeekState state = state_of(request);
  if (auto job = client.peek(state)) return *std::move(job);
  throw Failure(fmt::format("no {} job in tube {}", name_of(state), request.tube));
}

// Returns how long from now the moment is: "in 1h30m", "0.50s ago".
std::string from_now(const std::string& moment) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const milliseconds at(static_cast<std::int64_t>(server::parse_timestamp(moment)));
  const milliseconds left = at - std::chrono::floor<milliseconds>(now);
  return left.count() >= 0 ? "in " + server::short_duration(left)
                           : server::short_duration(-left) + " ago";
}

// Returns the job's state, for example "delayed, due 2030-01-01T09:00:00.000Z, in 40d00h".
std::string describe(const StatsFields& shown) {
  std::string text = shown.text("state");
  if (text == "reserved") {
    if (const auto worker = shown.bytes("worker")) text += " by " + *worker;
    text += fmt::format(", {} s left", shown.number("time-left"));
  } else if (text == "delayed" && !shown.has("due")) {
    text += fmt::format(", {} s left", shown.number("time-left"));
  }
  if (shown.has("due"))
    text += fmt::format(", due {}, {}", shown.text("due"), from_now(shown.text("due")));
  if (shown.has("expires-at")) text += ", expires " + shown.text("expires-at");
  if (const auto group = shown.bytes("group")) text += ", group " + *group;
  if (const auto key = shown.bytes("key")) text += ", key " + *key;
  if (shown.has("attempts") && shown.number("attempts") > 0)
    text += fmt::format(", failed attempts: {}", shown.number("attempts"));
  if (shown.has("dead") && shown.text("dead") != "no") text += ", dead: " + shown.text("dead");
  return text;
}

void tell(const StatsFields& shown, const std::vector<StatsFields>& story) {
  remark(server::visible(
      fmt::format("job {} in tube {}: {}", shown.text("id"), shown.text("tube"), describe(shown))));
  for (const StatsFields& attempt : story) {
    const std::string error = attempt.bytes("error").value_or("");
    remark(server::visible(fmt::format("  {} {}, {}{}{}", attempt.text("time"),
                                       attempt.text("ending"), attempt.bytes("worker").value_or(""),
                                       error.empty() ? "" : ": ", error)));
  }
}

int peek(const Request& request) {
  const int selectors = (request.id ? 1 : 0) + (request.ready ? 1 : 0) + (request.delayed ? 1 : 0) +
                        (request.buried ? 1 : 0) + (request.key.empty() ? 0 : 1);
  if (selectors == 0)
    throw UsageError("give a job's ID, or one of --key, --ready, --delayed and --buried");
  if (selectors > 1)
    throw UsageError("give only one of a job's ID, --key, --ready, --delayed and --buried");

  Client client(Stream::connect(request.server));
  client.name("carillon-peek");
  const Job job = find_job(request, client);
  const auto shown = client.show_job(job.id);
  if (!shown) throw Failure(fmt::format("job {} was deleted while it was looked at", job.id));
  const bool has_story = shown->has("attempts") && client.knows_own_verbs();
  const auto story = has_story ? client.story(job.id) : std::vector<StatsFields>();
  if (request.json) {
    write_out(shown_job_json(job, *shown, story));
    return kSuccess;
  }
  write_body(job.body);
  tell(*shown, story);
  return kSuccess;
}

}  // namespace

void add_peek(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "peek", kExamples);
  const Argument id = add_value(command, "ID", request->id, parse_job_id, "This job").type_name("");
  add_value(command, "--key", request->key, parse_key, "The job with this key").type_name("KEY");
  add_flag(command, "--ready", request->ready, "The next job to be handed out");
  add_flag(command, "--delayed", request->delayed, "The next job to become due");
  add_flag(command, "--buried", request->buried, "The next job to be kicked");
  add_tube_option(command, request->tube, "In this tube (default: default)").excludes(id);
  add_flag(command, "--json", request->json,
           "Print {\"id\":...,\"tube\":...,\"state\":...,\"due\":...,\n\"body\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = peek(*request); });
}

}  // namespace carillon::cli
