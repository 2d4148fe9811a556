// `rpc load`: makes many calls to a server at the same time, and says how they ended and what that
// cost.

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "commands.h"
#include "load.h"

namespace rpc {
namespace {

struct Request {
  LoadOptions load;
  int scan_every = ScanDeadlines::kEvery.count();  // ms
  bool json = false;
};

// The value below which this share of the sorted values lies; 0 if `sorted` is empty.
double at(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

double per(double amount, double of) {
  return of > 0 ? amount / of : 0;
}

boost::json::object as_json(const LoadReport& report) {
  const auto ended = static_cast<double>(report.ended);
  return {{"good", report.good()},
          {"failure", report.failure},
          {"wrong", report.wrong()},
          {"measured_s", report.seconds},
          {"calls_per_s", per(ended, report.seconds)},
          {"attempts_per_s", per(static_cast<double>(report.sent), report.seconds)},
          {"timeouts_per_s", per(static_cast<double>(report.lateness_ms.size()), report.seconds)},
          {"cpu_percent", 100 * per(report.cpu_seconds, report.seconds)},
          {"deadline_thread_cpu_percent", 100 * per(report.deadline_cpu_seconds, report.seconds)},
          {"cpu_us_per_call", 1e6 * per(report.cpu_seconds, ended)},
          {"late_p50_ms", at(report.lateness_ms, 0.5)},
          {"late_p99_ms", at(report.lateness_ms, 0.99)},
          {"late_max_ms", at(report.lateness_ms, 1)},
          {"calls", report.counts.started},
          {"answered", report.counts.answered},
          {"failed", report.counts.failed},
          {"attempts", report.counts.sent},
          {"timed_out", report.counts.timed_out},
          {"late_replies", report.counts.late},
          {"early", report.early}};
}

void print_table(const LoadReport& report) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  const auto ended = static_cast<double>(report.ended);
  std::printf("calls            %.0f/s for %.1f s\n", per(ended, report.seconds), report.seconds);
  std::printf(
      "CPU              %.1f %% of one core, %.2f us per call; the thread of the deadlines %.1f "
      "%%\n",
      100 * per(report.cpu_seconds, report.seconds), 1e6 * per(report.cpu_seconds, ended),
      100 * per(report.deadline_cpu_seconds, report.seconds));
  std::printf("time-outs        late by %.2f ms p50, %.2f p99, %.2f at most (%zu)\n",
              at(report.lateness_ms, 0.5), at(report.lateness_ms, 0.99), at(report.lateness_ms, 1),
              report.lateness_ms.size());
  std::printf("from first to last\n");
  std::printf("  calls          %llu: %llu answered, %llu failed\n", number(report.counts.started),
              number(report.counts.answered), number(report.counts.failed));
  std::printf("  attempts       %llu, %llu timed out\n", number(report.counts.sent),
              number(report.counts.timed_out));
  std::printf("  late replies   %llu, dropped\n", number(report.counts.late));
  if (!report.failure.empty()) std::printf("failed: %s\n", report.failure.c_str());
  if (!report.wrong().empty()) std::printf("wrong: %s\n", report.wrong().c_str());
}

int load(const Request& request) {
  LoadOptions options = request.load;
  options.scan_every = std::chrono::milliseconds(request.scan_every);
  const LoadReport report = run_load(options);
  if (request.json) {
    std::printf("%s\n", boost::json::serialize(as_json(report)).c_str());
  } else {
    print_table(report);
  }
  return report.good() ? 0 : 1;
}

}  // namespace

void add_load(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("load", "Call a server on 127.0.0.1, many times at once, and count");
  const auto request = std::make_shared<Request>();
  LoadOptions& options = request->load;
  const auto some_seconds = CLI::Range(0.001, 3600.0);
  const std::map<std::string, Design> designs{{"timers", Design::kTimers}, {"scan", Design::kScan}};
  command.add_option("--port", options.port, "The server's")->type_name("PORT")->required();
  command
      .add_option("--deadlines", options.design,
                  "timers: a carillon::TimerService; scan: read all calls (timers)")
      ->transform(CLI::CheckedTransformer(designs))
      ->type_name("DESIGN");
  command.add_option("--outstanding", options.outstanding, "So many calls at any time (1000)")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000'000));
  command
      .add_option("--least-timeout", options.least_timeout,
                  "Of an attempt; drawn evenly between this (1)")
      ->type_name("SECONDS")
      ->check(some_seconds);
  command.add_option("--most-timeout", options.most_timeout, "and this (5)")
      ->type_name("SECONDS")
      ->check(some_seconds);
  command.add_option("--attempts", options.attempts, "Of a call, until it fails (3)")
      ->type_name("N")
      ->check(CLI::Range(1, 100));
  command.add_option("--ramp", options.ramp, "The first calls begin within this time (2)")
      ->type_name("SECONDS")
      ->check(some_seconds);
  command.add_option("--warm-up", options.warm_up, "From then until the measurement (4)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  command.add_option("--duration", options.duration, "Of the measurement (5)")
      ->type_name("SECONDS")
      ->check(some_seconds);
  command.add_option("--scan-every", request->scan_every, "Sleep between two scans (30)")
      ->type_name("MS")
      ->check(CLI::Range(1, 10'000));
  command.add_option("--seed", options.seed, "Of what is random (1)")->type_name("N");
  command.add_flag("--json", request->json, "Report as one line of JSON");
  command.footer(
      "Exit status: 0 if every call ended exactly once, as answered or failed, every reply was the "
      "end of a call or\n"
      "late, no time-out came early, and the server counts the same; 1 if not; 2 for a wrong "
      "option.");
  command.callback([request, &exit_code] {
    if (request->load.least_timeout > request->load.most_timeout) {
      throw CLI::ValidationError("--least-timeout", "is more than --most-timeout");
    }
    exit_code = load(*request);
  });
}

}  // namespace rpc
