// `carillon work`: a worker that runs a command for each job.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/child_process.h"
#include "cli/commands.h"
#include "cli/worker.h"
#include "server/duration.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"HELP(CMD gets the body on its standard input, and in its environment CARILLON_JOB_ID,
CARILLON_TUBE and CARILLON_ATTEMPT (1, 2, ...). Exit code 0: the job is deleted.
Anything else: it is released, to be tried again after a delay that doubles each
time (less up to a quarter, at random). A job that runs longer than half of its
ttr is touched, so that it stays with this worker.

The attempt counts the job's releases, buries and time-outs, whoever caused them
(carillon stats --job ID shows them), not how often it was reserved. With
--max-attempts N a job that fails is buried from attempt N on, from 2N on if it
was buried once before, and so on: each bury, and the kick after it, allows N
more. The delay is the first one again after attempts N, 2N, ...

SIGTERM or Ctrl-C: takes no more jobs, lets CMD finish, exits with 0. A second
one kills CMD and gives the job back. When the server restarts, the worker
reconnects; a job that ran meanwhile will run again. While the server refuses to
delete, release or bury a job (its disk is full), the worker keeps it and tries
again; when stopped then, it gives the job back and exits with 1.

Examples:
  carillon work -- ./send-mail --verbose
  carillon work --tube images --jobs 4 -- ./resize
  carillon work --backoff 10s --backoff-max 1h --max-attempts 8 -- ./charge
  carillon work --until-empty -- sh -c 'echo "$CARILLON_JOB_ID: $(cat)"')HELP";

constexpr std::uint32_t kMostSlots = 1'000;

struct Request {
  WorkerOptions options;
  bool once = false;
  bool until_empty = false;
};

// Returns the words that follow the options, [--] CMD ARGS, without the "--".
std::vector<std::string> command_of(const CLI::App& app) {
  std::vector<std::string> words = remaining(app);
  if (!words.empty() && words.front() == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && words.front().starts_with('-')) {
    throw UsageError(
        fmt::format("there is no option \"{}\"; see carillon work --help", words.front()));
  }
  if (words.empty()) throw UsageError("no command to run; write e.g. carillon work -- ./send-mail");
  if (find_program(words.front()).empty()) {
    throw UsageError(
        fmt::format("cannot run \"{}\": no such program, or it is not executable", words.front()));
  }
  return words;
}

int work(Request& request, const CLI::App& app) {
  WorkerOptions& options = request.options;
  options.command = command_of(app);
  if (request.once) options.until = WorkUntil::kOneJob;
  if (request.until_empty) options.until = WorkUntil::kEmpty;
  return run_worker(options);
}

}  // namespace

void add_work(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  WorkerOptions& options = request->options;
  CLI::App& command = add_subcommand(app, "work", kExamples);
  leave_the_rest(command);
  add_value(command, "--tube", options.tubes, parse_tube,
            "From this tube (default: default); may be repeated")
      .type_name("TUBE");
  const auto parse_slots = [](const std::string& text) {
    return parse_number(text, 1, kMostSlots);
  };
  const Argument jobs = add_value(command, "--jobs", options.slots, parse_slots,
                                  "How many to run at a time (default: 1)")
                            .type_name("N");
  add_value(command, "--backoff", options.backoff.first, server::parse_duration,
            "After the first failure (default: 1s)")
      .type_name("DURATION");
  add_value(command, "--backoff-max", options.backoff.most, server::parse_duration,
            "The longest delay (default: 1h)")
      .type_name("DURATION");
  const auto parse_attempts = [](const std::string& text) {
    return parse_number(text, 1, 1'000'000'000);
  };
  add_value(command, "--max-attempts", options.max_attempts, parse_attempts,
            "Bury a job that fails at this attempt (default: never)")
      .type_name("N");
  const Argument once =
      add_flag(command, "--once", request->once, "Exit after one job, with 1 if it failed")
          .excludes(jobs);
  add_flag(command, "--until-empty", request->until_empty,
           "Exit when no job is ready, with 0 even if\njobs failed: they were released or buried")
      .excludes(once);
  add_server_option(command, options.server);
  when_parsed(command, [request, &command, &exit_code] { exit_code = work(*request, command); });
}

}  // namespace carillon::cli
