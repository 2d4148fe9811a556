// `carillon import`: puts the jobs of a file into the server, or takes over those of a beanstalkd
// that is running.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/import.h"
#include "server/api/names.h"
#include "server/text/address.h"

namespace carillon::cli {
namespace {

constexpr const char* kImportExamples =
    R"(FILE: what carillon export has written, or lines of JSON of your own, as
{"tube":"mail","delay":"3s","body":"hello"}; - is standard input. Jobs get new
ids; those whose time has passed are ready at once. What the file says of tubes,
groups and schedules is set here; a schedule fires in both servers then, until
it is paused in one of them.

If FILE has nothing for a --tube, the exit code is 1 and an error says which
tubes it has; the jobs of the others are put.

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

// "OLD" or "OLD=NEW".
std::pair<std::string, std::string> parse_tube_names(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string old_name = parse_tube(text.substr(0, equals));
  if (equals == std::string::npos) return {old_name, old_name};
  return {old_name, parse_tube(text.substr(equals + 1))};
}

// A part of the tokens of batches (file_import.cpp), which have to fit into a key with the rest.
std::string parse_once(const std::string& text) {
  constexpr std::size_t kMost = 100;
  if (server::is_key(text) && text.size() <= kMost) return text;
  throw std::invalid_argument(
      fmt::format("\"{}\": a token has 1 to {} bytes, and no space", text, kMost));
}

int import_jobs(const ImportRequest& request) {
  if (request.file.has_value() == request.beanstalkd.has_value())
    throw UsageError("write what to import: FILE or --beanstalkd ADDR");
  if (request.file && !request.instance.empty())
    throw UsageError("--instance goes with --beanstalkd");
  if (request.beanstalkd && !request.once.empty()) throw UsageError("--once goes with FILE");
  return request.file ? import_file(request) : import_beanstalkd(request);
}

}  // namespace

void add_import(CLI::App& command, int& exit_code) {
  ImportRequest& request = set_action(command, exit_code, kImportExamples, import_jobs);
  add_text(command, "FILE", request.file, "Lines of JSON; - is standard input");
  add_value(
      command, "--beanstalkd ADDR", request.beanstalkd,
      [](const std::string& text) { return server::parse_address(text); },
      "Where beanstalkd listens: HOST:PORT or unix:PATH");
  const auto set_tubes = [&tubes = request.tubes](const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      tubes.insert(parse_argument("--tube", parse_tube_names, text));
  };
  add_list(command, "--tube TUBE", set_tubes,
           "Only this one, or these; OLD=NEW: it is called NEW here (default: all)");
  add_value(command, "--instance ID", request.instance, parse_name,
            "Take it for this instance of beanstalkd");
  add_value(command, "--once TOKEN", request.once, parse_once,
            "Put the jobs of FILE once for each TOKEN, though they were put before without it");
  add_flag(command, "--dry-run", request.dry_run,
           "Change nothing: only show what there is, or check the lines");
  add_json_and_server(
      command, request,
      "Print the result as JSON: \"jobs\", \"already\" (put by an import before) and others");
}

}  // namespace carillon::cli
