// `carillon work`: a worker that runs a command for each job.

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/child_process.h"
#include "cli/commands.h"
#include "cli/worker.h"
#include "cli/worker_tubes.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

constexpr const char* kWorkExamples =
    R"HELP(CMD gets the body on its standard input, and in its environment
CARILLON_JOB_ID, CARILLON_TUBE and CARILLON_ATTEMPT: 1, and one more for each
failed attempt. Exit code 0: the job is deleted. Anything else is a failed
attempt: the server counts it, and keeps the exit status and the last line of
standard error in the job's story (carillon peek ID). A job that runs long is
touched, so it stays with this worker; if its cancel is asked for, CMD gets
SIGTERM, then SIGKILL.

When a job comes again, and after how many attempts it is dead, is set with
the job (carillon put --backoff, --max-attempts) or for its tube. What neither
says, --backoff and --max-attempts say here; without them it comes after 1 s,
2 s, 4 s, ... (less up to a quarter, at random), and for ever. A dead job is
buried; a kick gives it all its attempts again. (beanstalkd counts no
failures: there, jobs are released and buried, and the attempt counts
releases, buries and time-outs.)

TUBE may be a pattern as of the shell: --tube 'mail.*'. Tubes that match and
appear later are watched within a few seconds, 1000 at the most.

--until-empty waits while tubes have ready jobs that a limit of the tube or a
group holds back, or a pause that ends. If a tube has ready jobs and is paused
until somebody resumes it, it says so, and exits with 1. With a token that may
not read, it does not wait for them.

SIGTERM or Ctrl-C: takes no more jobs, lets CMD finish, exits with 0. A second
one kills CMD and gives the job back. A worker that is killed takes CMD with
it. When the server restarts, the worker reconnects; a job that ran meanwhile
will run again. While the server refuses a result (its disk is full), the
worker keeps the job and tries again; when stopped then, it gives the job back
and exits with 1.

Examples:
  carillon work -- ./send-mail --verbose
  carillon work --tube images --jobs 4 --time-limit 5m -- ./resize
  carillon work --backoff 10s --backoff-max 1h --max-attempts 8 -- ./charge
  carillon work --tube 'mail.*' -- ./send-mail
  carillon work --until-empty -- sh -c 'echo "$CARILLON_JOB_ID: $(cat)"')HELP";

constexpr std::uint32_t kMostSlots = 1'000;

struct WorkRequest {
  const CLI::App* app = nullptr;  // has the words of CMD
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

std::string parse_tube_or_pattern(const std::string& text) {
  if (!is_pattern(text)) return parse_tube(text);
  const std::string why = why_nothing_matches(text);
  if (why.empty()) return text;
  throw std::invalid_argument(fmt::format("\"{}\": matches no tube; {}", text, why));
}

// A server refuses a delay that ends after the year 9999, and then the result of the job.
std::chrono::milliseconds parse_worker_backoff(const std::string& text) {
  constexpr int kMostDays = 36'500;
  const auto backoff = server::parse_duration(text);
  if (backoff <= std::chrono::hours(24 * kMostDays)) return backoff;
  throw std::invalid_argument(fmt::format("\"{}\": the longest is {}d", text, kMostDays));
}

std::chrono::milliseconds parse_time_limit(const std::string& text) {
  const auto limit = server::parse_duration(text);
  if (limit.count() > 0) return limit;
  throw std::invalid_argument(fmt::format("\"{}\": the shortest is 1ms", text));
}

int work(WorkRequest& request) {
  WorkerOptions& options = request.options;
  options.command = command_of(*request.app);
  if (request.once) options.until = WorkUntil::kOneJob;
  if (request.until_empty) options.until = WorkUntil::kEmpty;
  raise_descriptor_limit();
  return run_worker(options);
}

}  // namespace

void add_work(CLI::App& command, int& exit_code) {
  WorkRequest& request = set_action(command, exit_code, kWorkExamples, work);
  request.app = &command;
  WorkerOptions& options = request.options;
  leave_the_rest(command);
  add_value(command, "--tube TUBE", options.tubes, parse_tube_or_pattern,
            "From this tube, or from those that match (default: default); may be repeated");
  const auto parse_slots = [](const std::string& text) {
    return parse_number(text, 1, kMostSlots);
  };
  const Argument jobs = add_value(command, "--jobs N", options.slots, parse_slots,
                                  "How many to run at a time (default: 1)");
  add_value(command, "--backoff DURATION", options.backoff.first, parse_worker_backoff,
            "After the first failure, doubling (default: 1s)");
  add_value(command, "--backoff-max DURATION", options.backoff.most, parse_worker_backoff,
            "The longest delay (default: 1h)");
  const auto parse_attempts = [](const std::string& text) {
    return parse_number(text, 1, 1'000'000'000);
  };
  add_value(command, "--max-attempts N", options.max_attempts, parse_attempts,
            "A job is dead after N failed attempts (default: never)");
  add_value(command, "--time-limit DURATION", options.time_limit, parse_time_limit,
            "A CMD that runs longer is ended, and has failed");
  add_value(command, "--grace DURATION", options.grace, server::parse_duration,
            "From SIGTERM to SIGKILL for such a CMD (default: 10s)");
  const Argument once =
      add_flag(command, "--once", request.once, "Exit after one job, with 1 if it failed")
          .excludes(jobs);
  add_flag(command, "--until-empty", request.until_empty,
           "Exit when no job is ready, with 0 even if jobs failed: they come again, or are buried")
      .excludes(once);
  add_server_option(command, options.server);
}

}  // namespace carillon::cli
