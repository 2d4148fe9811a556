// `carillon export`: writes the jobs, schedules and settings of a running server to a file of JSON
// lines.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/counted.h"
#include "cli/job_export.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/stop_signals.h"
#include "server/text/address.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kExamples =
    R"(Each job is a line of JSON, with its body and all that carillon import needs.
The server goes on meanwhile: a job that is there all the time, and that nobody
kicks or moves to an earlier time, is in the file exactly once. The last line
says that the file is whole. If the command is interrupted, --resume goes on.
What is set for tubes and groups, and the schedules, are in it as well. Tokens,
and endpoints with their secrets, are not: carillon endpoint set.

Examples:
  carillon export --out jobs.jsonl
  carillon export --out jobs.jsonl --resume
  carillon export --tube mail | jq -r 'select(.state == "buried").body')";

struct Request {
  ServerAddress server;
  std::vector<std::string> tubes;
  std::optional<std::string> out;
  bool resume = false;
  bool json = false;
};

// Says what is missing in the file.
int report_missing(ExportFile& file) {
  for (const std::uint64_t id : file.damaged())
    remark(fmt::format("job {} is not in it: its body is damaged", id));
  for (const std::string& tube : file.incomplete()) remark(missing_jobs(tube));
  return file.is_whole() ? kSuccess : kFailure;
}

void report(const Request& request, const JobExport& done, milliseconds took) {
  if (!done.left_out().empty())
    remark(fmt::format("schedules, or what is set for groups, are not in it: {}", done.left_out()));
  if (request.json && request.out) {
    boost::json::object object;
    object["file"] = *request.out;
    object["jobs"] = done.jobs();
    object["tubes"] = done.tubes();
    object["schedules"] = done.schedules();
    object["milliseconds"] = took.count();
    return write_out(boost::json::serialize(object) + "\n");
  }
  const std::string schedules =
      done.schedules() > 0 ? " and " + counted(done.schedules(), "schedule") : "";
  const std::string text =
      fmt::format("{} of {}{} in {}", counted(done.jobs(), "job"), counted(done.tubes(), "tube"),
                  schedules, server::short_duration(took));
  if (request.out) return write_out(fmt::format("{}: {}\n", *request.out, text));
  remark(text);
}

int export_jobs(const Request& request) {
  if (request.resume && !request.out) throw UsageError("--resume needs the file: --out FILE");
  const auto began = Clock::now();
  const StopSignals signals;
  ProgressLine line;
  Client client(Stream::connect(request.server, signals.fd()));
  ExportFile file(request.out, request.resume);
  if (file.ended()) {
    remark(fmt::format("{} {}", *request.out,
                       file.is_whole() ? "is whole already" : "has all that could be read"));
    return report_missing(file);
  }
  const JobExportOptions options{.server = server::to_string(request.server),
                                 .tubes = request.tubes};
  JobExport jobs(client, file, options, signals, line);
  const auto failure = [&](std::string_view why) {
    return Failure(fmt::format("{} after {}{}", why, counted(jobs.jobs(), "job"),
                               request.out ? "; add --resume to go on" : ""));
  };
  try {
    jobs.run();
  } catch (const Interrupted&) {
    throw failure("interrupted");
  } catch (const Unavailable& error) {
    throw failure(fmt::format("{},", error.what()));
  }
  line.clear();
  report(request, jobs, std::chrono::duration_cast<milliseconds>(Clock::now() - began));
  return report_missing(file);
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "export", kExamples);
  add_value(
      command, "--out", request->out,
      [](const std::string& text) {
        if (text.empty()) throw std::invalid_argument("\"\": not a file's name");
        return text;
      },
      "Where to write (default: standard output)")
      .type_name("FILE");
  add_flag(command, "--resume", request->resume, "Go on with an export that was interrupted");
  add_value(command, "--tube", request->tubes, parse_tube, "Only this one, or these (default: all)")
      .type_name("TUBE");
  add_flag(command, "--json", request->json,
           R"(With --out: print {"file":...,"jobs":...,"tubes":...,
"schedules":...,"milliseconds":...})");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = export_jobs(*request); });
}

}  // namespace carillon::cli
