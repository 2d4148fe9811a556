// `carillon due`: draws how many jobs are due when.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"

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
  std::string tube{kDefaultTube};
  std::string by = "minute";
  std::optional<std::uint32_t> spans;
  bool json = false;
};

std::string parse_by(const std::string& text) {
  if (text == "minute" || text == "hour" || text == "day") return text;
  throw std::invalid_argument(fmt::format("\"{}\": write minute, hour or day", text));
}

std::string count_of(const boost::json::object& of, std::string_view count,
                     std::string_view estimated) {
  return fmt::format("{}{}", of.at(estimated).as_bool() ? "~" : "",
                     of.at(count).to_number<std::uint64_t>());
}

// 2026-11-24 02:45; of days without the time.
std::string moment_of(const boost::json::object& span, const std::string& by) {
  constexpr std::size_t kDay = 10;
  constexpr std::size_t kMinute = 16;
  const boost::json::string& from = span.at("from").as_string();
  std::string text(from.data(), from.size());
  text.resize(std::min(text.size(), by == "day" ? kDay : kMinute));
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

std::string picture(const std::vector<boost::json::object>& lines, const Request& request) {
  constexpr std::uint64_t kWidth = 40;
  const boost::json::object& all = lines.back();
  const auto number = [](const boost::json::object& of, std::string_view name) {
    return of.at(name).to_number<std::uint64_t>();
  };
  std::uint64_t most = 1;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i)
    most = std::max(most, number(lines[i], "jobs"));
  std::string text = fmt::format("{} due, {} delayed, {} buried\n", number(all, "due"),
                                 number(all, "delayed"), number(all, "buried"));
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::uint64_t jobs = number(lines[i], "jobs");
    const auto bar = static_cast<std::size_t>(std::max<double>(
        1, static_cast<double>(kWidth) * static_cast<double>(jobs) / static_cast<double>(most)));
    text += fmt::format("{:<16}  {:>9}  {}\n", moment_of(lines[i], request.by),
                        count_of(lines[i], "jobs", "estimated"), std::string(bar, '#'));
  }
  return text + fmt::format("{:<16}  {:>9}\n", "later", count_of(all, "later", "later_estimated"));
}

int due(const Request& request) {
  Client client(Stream::connect(request.server));
  std::string options = " by=" + request.by;
  if (request.spans) options += fmt::format(" spans={}", *request.spans);
  const auto counts = client.due_counts(request.tube, options);
  if (!counts) {
    throw Failure(fmt::format(
        "tube {} does not exist: it has no jobs, and nobody uses or watches it", request.tube));
  }
  if (request.json) return write_out(*counts), kSuccess;
  std::vector<boost::json::object> lines;
  for (std::string_view rest = *counts; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    lines.push_back(boost::json::parse(rest.substr(0, end)).as_object());
    rest.remove_prefix(end + 1);
  }
  write_out(picture(lines, request));
  return kSuccess;
}

}  // namespace

void add_due(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "due", kExamples);
  add_value(command, "TUBE", request->tube, parse_tube, "The jobs of this tube (default)")
      .type_name("");
  add_value(command, "--by", request->by, parse_by, "minute, hour or day (minute)")
      .type_name("SPAN");
  const auto parse_spans = [](const std::string& text) { return parse_number(text, 1, 1'000); };
  add_value(command, "--spans", request->spans, parse_spans,
            "So many minutes, hours or days (60, 24, 30)")
      .type_name("N");
  add_flag(command, "--json", request->json, "Print lines of JSON");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = due(*request); });
}

}  // namespace carillon::cli
