// `carillon tube`: sets and shows what holds for the jobs of a tube.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_filter.h"
#include "cli/output.h"
#include "cli/stats_fields.h"
#include "server/beanstalk/job_options.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(ACTION: set, show. What set does not name stays as it is; 0 ends a limit.

Examples:
  carillon tube set images --max-running 10
  carillon tube set api --rate 100/1m --burst 5
  carillon tube set api --rate 0
  carillon tube set mail --put-rate 1000/1s --put-burst 5000
  carillon tube set mail --max-attempts 8 --backoff 10s..1h --retention 30d
  carillon tube set api --group acme --weight 3 --max-running 2
  carillon tube show api          what is set, and how many jobs run
  carillon tube show api --group acme)";

// Of the reply to stats-tube, what `show` shows: how many jobs there are, and what is set.
constexpr std::array<std::string_view, 23> kShown = {"name",
                                                     "group",
                                                     "tube",
                                                     "current-jobs-ready",
                                                     "current-jobs-reserved",
                                                     "weight",
                                                     "max-running",
                                                     "rate",
                                                     "rate-period-ms",
                                                     "burst",
                                                     "put-rate",
                                                     "put-rate-period-ms",
                                                     "put-burst",
                                                     "total-puts-too-fast",
                                                     "retention-ms",
                                                     "total-dead-deleted",
                                                     "max-attempts",
                                                     "backoff-ms",
                                                     "jitter-percent",
                                                     "backoff-longest-ms",
                                                     "lost",
                                                     "puts",
                                                     "current-waiting"};

struct Request {
  ServerAddress server;
  std::string action;
  std::string tube;
  std::string group;
  std::string options;
  bool json = false;
};

std::string parse_action(const std::string& text) {
  if (text == "set" || text == "show") return text;
  throw std::invalid_argument(fmt::format("\"{}\": there are set, show", text));
}

void set(const Request& request) {
  using server::beanstalk::OptionsOf;
  if (request.options.empty()) throw UsageError("write what to set, as --max-running 10");
  const std::string group = request.group.empty() ? "" : "group=" + request.group + " ";
  const std::string options = group + request.options;
  try {
    server::beanstalk::parse_job_options(options, OptionsOf::kTube);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--{}", error.what()));
  }
  Client(Stream::connect(request.server)).set_tube(request.tube, options);
  write_out(request.json ? fmt::format("{{\"tube\":\"{}\",\"result\":\"set\"}}\n", request.tube)
                         : fmt::format("set tube {}\n", request.tube));
}

void show(const Request& request) {
  if (!request.options.empty())
    throw UsageError(
        fmt::format("--{} is for set", request.options.substr(0, request.options.find('='))));
  Client client(Stream::connect(request.server));
  const auto stats = request.group.empty() ? client.stats_tube(request.tube)
                                           : client.stats_group(request.tube, request.group);
  if (!stats && !request.group.empty()) {
    throw Failure(fmt::format("tube {} has no group {}: nothing is set for it, and it has no jobs",
                              request.tube, request.group));
  }
  if (!stats) {
    throw Failure(fmt::format(
        "tube {} does not exist: nothing is set for it, it has no jobs, and nobody uses it",
        request.tube));
  }
  std::vector<StatsField> shown;
  for (const StatsField& field : *stats) {
    if (std::find(kShown.begin(), kShown.end(), field.name) != kShown.end()) shown.push_back(field);
  }
  const StatsFields fields(std::move(shown));
  write_out(request.json ? to_json(fields) : to_table(fields));
}

}  // namespace

void add_tube(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "tube", kExamples);
  add_value(command, "ACTION", request->action, parse_action, "").type_name("").required();
  add_value(command, "NAME", request->tube, parse_tube, "Of the tube").type_name("").required();
  const auto option = [&](const std::string& name, const char* type, const char* description) {
    const auto add = [name, &options = request->options](const std::string& text) {
      if (text.empty() || text.find(' ') != std::string::npos)
        throw UsageError(fmt::format("--{} \"{}\": is empty, or has a space", name, text));
      options += (options.empty() ? "" : " ") + name + "=" + text;
    };
    add_text(command, "--" + name, add, description).type_name(type);
  };
  add_value(command, "--group", request->group, parse_group, "Of this group alone")
      .type_name("GROUP");
  option("weight", "N", "Of --group: it gets so many times as many turns (1)");
  option("max-running", "N",
         "At most N jobs are reserved at once. A restart\nends reservations: for a time "
         "more may run");
  option("rate", "N/TIME", "Jobs that go out per time, evenly: 100/1m");
  option("burst", "N", "Of --rate: so many at once after a rest (1)");
  option("put-rate", "N/TIME", "So many may be put in a time; more are refused");
  option("put-burst", "N", "Of --put-rate: so many at once after a rest (1)");
  option("retention", "DURATION", "Dead jobs are deleted after it (0: never)");
  option("max-attempts", "N", "After so many failed ones a job is buried");
  option("backoff", "DURATION", "How long after a failed attempt; 1s..1h doubles");
  option("jitter", "PERCENT", "Up to so much is added to that: 20%");
  option("lost", "WHAT", "A lost worker: fails, or returns the job");
  add_flag(command, "--json", request->json, "Print one JSON object (show)");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] {
    if (request->action == "set") {
      set(*request);
    } else {
      show(*request);
    }
    exit_code = kSuccess;
  });
}

}  // namespace carillon::cli
