// `carillon due`: draws how many jobs are due when.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/asked.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "server/api/due.h"
#include "server/text/timestamp.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(One line for each minute, hour or day that has jobs, in UTC. A number with a ~
is estimated: where there are very many jobs, not all of them are counted.

Examples:
  carillon due mail
  carillon due mail --by hour --spans 48
  carillon due mail --by day --json)";

struct Request {
  ServerAddress server;
  Asked asked;
  bool json = false;
};

std::string count_of(std::uint64_t jobs, bool estimated) {
  return fmt::format("{}{}", estimated ? "~" : "", jobs);
}

// In UTC: a day has no time, an hour and a minute have no seconds.
std::string moment_of(const server::DueSpan& span, server::DueUnit by) {
  std::string text = server::format_timestamp(span.from.at);
  text.resize(by == server::DueUnit::kDay ? 10 : 16);
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

std::string picture(const server::Due& due, server::DueUnit by) {
  constexpr double kWidth = 40;
  std::uint64_t most = 1;
  for (const server::DueSpan& span : due.spans) most = std::max(most, span.jobs);
  std::string text =
      fmt::format("{} due, {} delayed, {} buried\n", due.due, due.delayed, due.buried);
  for (const server::DueSpan& span : due.spans) {
    const auto bar = static_cast<std::size_t>(
        std::max<double>(1, kWidth * static_cast<double>(span.jobs) / static_cast<double>(most)));
    text += fmt::format("{:<16}  {:>9}  {}\n", moment_of(span, by),
                        count_of(span.jobs, span.estimated), std::string(bar, '#'));
  }
  return text + fmt::format("{:<16}  {:>9}\n", "later", count_of(due.later, due.later_estimated));
}

// A line for each span, and one for the rest.
std::string json_lines(const server::Due& due) {
  std::string text;
  boost::json::object rest;
  for (const auto& [name, value] : server::write(due)) {
    if (!value.is_array()) {
      rest[name] = value;
      continue;
    }
    for (const boost::json::value& span : value.get_array())
      text += boost::json::serialize(span) + "\n";
  }
  return text + boost::json::serialize(rest) + "\n";
}

int due(const Request& request) {
  server::GetDue begin;
  begin.tube = kDefaultTube;
  const auto asked = request.asked.read(begin);
  try {
    const auto due = Api(request.server).call<server::Due>("getDue", asked);
    write_out(request.json ? json_lines(due) : picture(due, asked.by));
    return kSuccess;
  } catch (const Refusal& refusal) {
    if (refusal.status != 404) throw;
    throw Failure(fmt::format(
        "tube {} does not exist: it has no jobs, and nobody uses or watches it", asked.tube));
  }
}

}  // namespace

void add_due(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "due", kExamples);
  request->asked.add_arguments(command, server::kShape<server::GetDue>,
                               {.positionals = "tube", .optional = "tube"});
  add_flag(command, "--json", request->json, "Print lines of JSON");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = due(*request); });
}

}  // namespace carillon::cli
