// `carillon import`: takes over the jobs of a beanstalkd that is running.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/beanstalkd_import.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/stop_signals.h"
#include "server/address.h"
#include "server/duration.h"

namespace carillon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kExamples =
    R"(Moves the ready, delayed and buried jobs of beanstalkd to the server, and ends
when beanstalkd has none: with their priorities, ttr, and what is left of their
delays, rounded up to a second. A job is deleted there when it is on the disk
here. If the command fails or is killed, run it again: no job is lost or doubled.
What workers of beanstalkd hold stays there; the exit code is 1 then.

If beanstalkd keeps a log (-b) and was itself restarted after an import that was
killed, add --instance and the name that this import printed.

Examples:
  carillon import --beanstalkd 127.0.0.1:11301 --dry-run
  carillon import --beanstalkd 127.0.0.1:11301
  carillon import --beanstalkd old.example:11300 --tube mail --tube img=images)";

struct Request {
  server::Address server;
  server::Address beanstalkd;
  BeanstalkdImportOptions options;
  bool dry_run = false;
  bool json = false;
};

// "OLD" or "OLD=NEW".
std::pair<std::string, std::string> parse_tube_names(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string old_name = parse_tube(text.substr(0, equals));
  if (equals == std::string::npos) return {old_name, old_name};
  return {old_name, parse_tube(text.substr(equals + 1))};
}

boost::json::object json_of(const JobCounts& counts) {
  boost::json::object object;
  object["ready"] = counts.ready;
  object["delayed"] = counts.delayed;
  object["buried"] = counts.buried;
  return object;
}

void show_tubes(const std::vector<TubeToImport>& tubes, bool json) {
  std::string text;
  if (!json && !tubes.empty()) text = "  ready  delayed  buried  reserved  tube\n";
  for (const TubeToImport& tube : tubes) {
    const JobCounts& counts = tube.counts;
    if (!json) {
      text += fmt::format("{:>7}  {:>7}  {:>6}  {:>8}  {}\n", counts.ready, counts.delayed,
                          counts.buried, counts.reserved, tube.name);
      continue;
    }
    boost::json::object object = json_of(counts);
    object["tube"] = tube.name;
    object["reserved"] = counts.reserved;
    text += boost::json::serialize(object) + "\n";
  }
  write_out(text);
}

// Returns how many jobs workers hold.
std::uint64_t reserved_jobs(BeanstalkdImport& import) {
  std::uint64_t reserved = 0;
  for (const TubeToImport& tube : import.tubes()) reserved += tube.counts.reserved;
  return reserved;
}

void print_result(const BeanstalkdImport& import, std::uint64_t reserved, milliseconds took,
                  bool json) {
  const JobCounts& moved = import.moved();
  if (json) {
    boost::json::object object;
    object["instance"] = import.instance();
    object["jobs"] = moved.jobs();
    for (auto& [name, value] : json_of(moved)) object[name] = value;
    object["already"] = import.already();
    object["reserved"] = reserved;
    object["milliseconds"] = took.count();
    return write_out(boost::json::serialize(object) + "\n");
  }
  write_out(fmt::format("{} jobs in {}: {} ready, {} delayed, {} buried\n", moved.jobs(),
                        server::short_duration(took), moved.ready, moved.delayed, moved.buried));
  if (import.already() > 0)
    remark(fmt::format("{} others had been put by an import before", import.already()));
}

int import_beanstalkd(const Request& request) {
  const auto began = Clock::now();
  const StopSignals signals;
  ProgressLine line;
  Client target(Stream::connect(request.server, signals.fd()));
  BeanstalkdImport import(request.beanstalkd, target, request.options, signals, line);
  if (request.dry_run) return show_tubes(import.tubes(), request.json), kSuccess;
  if (!request.json) remark(fmt::format("this beanstalkd is instance {}", import.instance()));
  const auto moved = [&import] { return import.moved().jobs(); };
  try {
    import.run();
  } catch (const Interrupted&) {
    throw Failure(fmt::format("interrupted after {} jobs; run it again to go on", moved()));
  } catch (const Failure& error) {
    throw Failure(
        fmt::format("{}; {} jobs were moved, run it again to go on", error.what(), moved()));
  }
  line.clear();
  const std::uint64_t reserved = reserved_jobs(import);
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
  print_result(import, reserved, took, request.json);
  if (import.taken() > 0) {
    remark(
        fmt::format("{} jobs were taken by workers of beanstalkd meanwhile, and are here as well",
                    import.taken()));
  }
  if (reserved == 0) return kSuccess;
  throw Failure(fmt::format(
      "workers of beanstalkd hold {} jobs; run the command again when they are done", reserved));
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "import", kExamples);
  add_value(
      command, "--beanstalkd", request->beanstalkd,
      [](const std::string& text) { return server::parse_address(text); },
      "Where beanstalkd listens: HOST:PORT or unix:PATH")
      .type_name("ADDR")
      .required();
  const auto set_tubes = [&tubes = request->options.tubes](const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      tubes.insert(parse_argument("--tube", parse_tube_names, text));
  };
  add_list(command, "--tube", set_tubes,
           "Only this one, or these; OLD=NEW: it is called NEW\nhere (default: all)")
      .type_name("TUBE");
  add_value(command, "--instance", request->options.instance, parse_tube,
            "Take it for this instance of beanstalkd")
      .type_name("ID");
  add_flag(command, "--dry-run", request->dry_run, "Only show what there is");
  add_flag(command, "--json", request->json,
           R"(Print {"instance":...,"jobs":...,"ready":...,
"delayed":...,"buried":...,"already":...,
"reserved":...,"milliseconds":...})");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = import_beanstalkd(*request); });
}

}  // namespace carillon::cli
