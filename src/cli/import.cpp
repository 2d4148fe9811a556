// `carillon import`: puts the jobs of a file into the server, or takes over those of a beanstalkd
// that is running.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iostream>
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
#include "cli/counted.h"
#include "cli/error_text.h"
#include "cli/file_import.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"
#include "server/beanstalk/command.h"
#include "server/text/address.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kExamples =
    R"(FILE: what carillon export has written, or lines of JSON of your own, as
{"tube":"mail","delay":"3s","body":"hello"}; - is standard input. Jobs get new
ids; those whose time has passed are ready at once. What the file says of tubes,
groups and schedules is set here; a schedule fires in both servers then, until
it is paused in one of them.

--beanstalkd moves the ready, delayed and buried jobs of a running beanstalkd,
with what is left of their delays, until there are no more. A job is deleted
there when it is on the disk here. What its workers hold stays; the exit code
is 1 then. If beanstalkd itself was restarted with its log (-b) after an import
that was killed, add --instance and the name that this import printed.

If the command fails or is killed, run it again: no job is lost or doubled. For
a week the server knows a file of your own by its first line. To put the same
file again, or another one that begins with the same line, add --once and a
TOKEN of your choice; run it again with the same one if it fails.

Examples:
  carillon import jobs.jsonl --dry-run
  carillon import jobs.jsonl --tube mail --tube img=images
  carillon import jobs.jsonl --once tuesday
  carillon import --beanstalkd 127.0.0.1:11301)";

struct Request {
  ServerAddress server;
  std::optional<std::string> file;
  std::optional<server::Address> beanstalkd;
  std::string instance;
  std::string once;
  TubeNames tubes;
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

// A part of the tokens of batches (file_import.h), which have to fit into a key with the rest.
std::string parse_once(const std::string& text) {
  constexpr std::size_t kMost = 100;
  if (server::is_key(text) && text.size() <= kMost) return text;
  throw std::invalid_argument(
      fmt::format("\"{}\": a token has 1 to {} bytes, and no space", text, kMost));
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
  write_out(fmt::format("{} in {}: {} ready, {} delayed, {} buried\n", counted(moved.jobs(), "job"),
                        server::short_duration(took), moved.ready, moved.delayed, moved.buried));
  if (import.already() > 0)
    remark(fmt::format("{} had been put by an import before", counted(import.already(), "other")));
}

int import_beanstalkd(const Request& request) {
  const auto began = Clock::now();
  const StopSignals signals;
  ProgressLine line;
  Client target(Stream::connect(request.server, signals.fd()));
  const BeanstalkdImportOptions options{.tubes = request.tubes, .instance = request.instance};
  BeanstalkdImport import(*request.beanstalkd, target, options, signals, line);
  if (request.dry_run) return show_tubes(import.tubes(), request.json), kSuccess;
  if (!request.json) remark(fmt::format("this beanstalkd is instance {}", import.instance()));
  const auto moved = [&import] { return counted(import.moved().jobs(), "job"); };
  try {
    import.run();
  } catch (const Interrupted&) {
    throw Failure(fmt::format("interrupted after {}; run it again to go on", moved()));
  } catch (const Failure& error) {
    throw Failure(fmt::format("{}; {} moved so far, run it again to go on", error.what(), moved()));
  }
  line.clear();
  const std::uint64_t reserved = reserved_jobs(import);
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
  print_result(import, reserved, took, request.json);
  if (import.taken() > 0) {
    remark(
        fmt::format("workers of beanstalkd took {} meanwhile, and what they took is here as well",
                    counted(import.taken(), "job")));
  }
  if (reserved == 0) return kSuccess;
  throw Failure(
      fmt::format("workers of beanstalkd hold {}; run the command again when they are done",
                  counted(reserved, "job")));
}

// Opens the file, or takes standard input. Returns its size in bytes; 0: not known.
std::uint64_t open_file(const std::string& name, std::ifstream& in) {
  if (name == "-") return 0;
  in.open(name, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
  if (size < 0) throw Failure(fmt::format("cannot read {}: {}", name, error_text(errno)));
  in.seekg(0);
  return static_cast<std::uint64_t>(size);
}

void print_result(const FileImported& import, milliseconds took, bool json) {
  if (json) {
    boost::json::object object;
    object["jobs"] = import.jobs;
    object["already"] = import.already;
    object["exist"] = import.met;
    object["keyed"] = import.keyed;
    object["never_run"] = import.never_run;
    object["settings"] = import.settings;
    object["schedules"] = import.schedules;
    object["milliseconds"] = took.count();
    return write_out(boost::json::serialize(object) + "\n");
  }
  std::string set;
  if (import.settings > 0) set += ", " + counted(import.settings, "setting");
  if (import.schedules > 0) set += ", " + counted(import.schedules, "schedule");
  write_out(
      fmt::format("{}{} in {}\n", counted(import.jobs, "job"), set, server::short_duration(took)));
  if (import.already > 0) {
    remark(fmt::format("{} had been put by an import before; --once TOKEN puts them again",
                       counted(import.already, "other")));
  }
  if (import.keyed > 0) {
    remark(
        fmt::format("{} of more than 256 KiB had no key and got one, import:...: so a run again "
                    "does not put it twice",
                    counted(import.keyed, "job")));
  }
  if (import.never_run > 0) {
    remark(fmt::format(
        "{} would expire before the due time: buried if at-expiry is dead, else left out",
        counted(import.never_run, "job")));
  }
  if (import.met == 1) remark("1 was not put: its tube has a job with its key");
  if (import.met > 1)
    remark(fmt::format("{} were not put: their tubes have jobs with their keys", import.met));
}

int import_file(const Request& request) {
  const auto began = Clock::now();
  const StopSignals signals;
  ProgressLine line;
  std::optional<Client> client;
  if (!request.dry_run) client.emplace(Stream::connect(request.server, signals.fd()));
  std::ifstream file;
  const std::uint64_t bytes = open_file(*request.file, file);
  const bool is_input = *request.file == "-";
  FileImportOptions options{.name = is_input ? "standard input" : *request.file,
                            .tubes = request.tubes,
                            .once = request.once,
                            .bytes = bytes};
  if (!is_input) {
    options.last_line = last_line_to_import(file);
    file.clear();
    file.seekg(0);
  }
  Api api(request.server, signals.fd());
  FileImported import;
  const auto put = [&import] { return counted(import.jobs, "job"); };
  try {
    import_lines(client ? &*client : nullptr, api, is_input ? std::cin : file, options, signals,
                 line, import);
  } catch (const Interrupted&) {
    throw Failure(fmt::format("interrupted after {}; run it again to go on", put()));
  } catch (const Failure& error) {
    if (request.dry_run) throw;
    throw Failure(fmt::format("{}; {} put so far, run it again to go on", error.what(), put()));
  }
  line.clear();
  for (const auto& [type, lines] : import.passed_over)
    remark(fmt::format("passed over {} of type \"{}\"", counted(lines, "line"), type));
  print_result(import, std::chrono::duration_cast<milliseconds>(Clock::now() - began),
               request.json);
  return kSuccess;
}

int import_jobs(const Request& request) {
  if (request.file.has_value() == request.beanstalkd.has_value())
    throw UsageError("write what to import: FILE or --beanstalkd ADDR");
  if (request.file && !request.instance.empty())
    throw UsageError("--instance goes with --beanstalkd");
  if (request.beanstalkd && !request.once.empty()) throw UsageError("--once goes with FILE");
  return request.file ? import_file(request) : import_beanstalkd(request);
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "import", kExamples);
  add_value(
      command, "FILE", request->file, [](const std::string& text) { return text; },
      "Lines of JSON; - is standard input")
      .type_name("");
  add_value(
      command, "--beanstalkd", request->beanstalkd,
      [](const std::string& text) { return server::parse_address(text); },
      "Where beanstalkd listens: HOST:PORT or unix:PATH")
      .type_name("ADDR");
  const auto set_tubes = [&tubes = request->tubes](const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      tubes.insert(parse_argument("--tube", parse_tube_names, text));
  };
  add_list(command, "--tube", set_tubes,
           "Only this one, or these; OLD=NEW: it is called NEW\nhere (default: all)")
      .type_name("TUBE");
  add_value(command, "--instance", request->instance, parse_tube,
            "Take it for this instance of beanstalkd")
      .type_name("ID");
  add_value(command, "--once", request->once, parse_once,
            "Put the jobs of FILE once for each TOKEN, though they\nwere put before without it")
      .type_name("TOKEN");
  add_flag(command, "--dry-run", request->dry_run,
           "Change nothing: only show what there is, or check\nthe lines");
  add_flag(command, "--json", request->json,
           "Print the result as JSON: \"jobs\", \"already\" (put by\nan import before) and others");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = import_jobs(*request); });
}

}  // namespace carillon::cli
