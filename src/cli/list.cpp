// `carillon list` lists the tubes, or the jobs or groups of a tube; `carillon due` draws how many
// jobs are due when.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/asked.h"
#include "cli/commands.h"
#include "cli/file_fields.h"
#include "cli/json_fields.h"
#include "cli/output.h"
#include "server/api/filters.h"
#include "server/api/reports.h"
#include "server/text/json_text.h"
#include "server/text/json_value.h"
#include "server/text/timestamp.h"
#include "server/text/visible_text.h"

namespace carillon::cli {
namespace {

constexpr const char* kListExamples =
    R"(Without a TUBE it lists the tubes, and which are paused, or drained (no puts).
Jobs come by due time, and the buried ones after them. Times are UTC.

Examples:
  carillon list
  carillon list mail --state delayed --due-before 1h
  carillon list mail --key-prefix invoice- --json --all
  carillon list mail --groups --all)";

// The largest page that the server gives.
constexpr std::uint32_t kPage = 1'000;

struct ListRequest {
  ServerAddress server;
  std::optional<std::string> tube;
  Asked filter;
  std::uint32_t limit = 100;
  bool all = false;
  bool groups = false;
  bool json = false;
};

// The width of the terminal; without one there is no limit.
std::size_t width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return SIZE_MAX;
  return size.ws_col;
}

// Cuts a line that is longer than the terminal is wide, not within a character.
std::string fit(std::string line) {
  const std::size_t most = width();
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t characters = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (continues(line[at]) || ++characters <= most) continue;
    line.resize(at);
    break;
  }
  return line + "\n";
}

namespace json = boost::json;

// --- Tables.

struct Column {
  std::string_view head;
  std::string_view field;
  std::size_t width = 0;
  bool is_left = false;
};

constexpr Column kTubeColumns[] = {{"READY", "ready", 9},
                                   {"RESERVED", "reserved", 9},
                                   {"DELAYED", "delayed", 9},
                                   {"BURIED", "buried", 9},
                                   {"TUBE", "tube"}};
// RUNNING is the limit of running jobs.
constexpr Column kGroupColumns[] = {{"READY", "ready", 9},      {"RESERVED", "reserved", 9},
                                    {"DELAYED", "delayed", 9},  {"BURIED", "buried", 9},
                                    {"WEIGHT", "weight", 7},    {"RUNNING", "max_running", 7},
                                    {"RATE", "rate", 14, true}, {"GROUP", "group"}};
constexpr Column kJobColumns[] = {
    {"ID", "id", 8},        {"STATE", "state", 8, true},     {"DUE", "due", 24, true},
    {"PRI", "priority", 5}, {"TRIES", "failed_attempts", 5}, {"BYTES", "body_bytes", 7},
    {"KEY", "key"}};

// The last column has no width: a name, which may be in Base64, or missing.
std::string cell(const json::object& row, const Column& column) {
  if (row.contains(column.field)) return server::visible(text_in(row, column.field));
  if (column.width > 0) return "-";
  return server::visible(text_in(row, fmt::format("{}{}", column.field, server::kBase64Suffix)));
}

// A line of the table. Without a row: its head.
std::string table_line(std::span<const Column> columns, const json::object* row = nullptr) {
  std::string line;
  for (const Column& column : columns) {
    const std::string text = row == nullptr ? std::string(column.head) : cell(*row, column);
    if (!line.empty()) line += "  ";
    line += column.is_left ? fmt::format("{:<{}}", text, column.width)
                           : fmt::format("{:>{}}", text, column.width);
  }
  return fit(std::move(line));
}

// --- What is listed.

struct ListOf {
  std::string_view name;  // in the API
  std::span<const Column> columns;
  json::object (*line)(const json::value& shown);  // for --json
  json::object (*row)(const json::value& shown);   // for the table
};

json::object tube_counts(const json::value& tube) {
  json::object line;
  for (const char* const state : {"ready", "reserved", "delayed", "buried"})
    line[state] = tube.at("jobs").at(state);
  line["tube"] = tube.at("name");
  if (tube.at("paused").as_bool()) line["paused"] = "yes";
  if (tube.at("draining").as_bool()) line["puts"] = "refused";
  return line;
}

json::object tube_row(const json::value& tube) {
  json::object row = tube_counts(tube);
  row["tube"] =
      fmt::format("{}{}{}", text_in(row, "tube"), row.contains("paused") ? " (paused)" : "",
                  row.contains("puts") ? " (drained)" : "");
  return row;
}

json::object group_line(const json::value& group) {
  return file_fields(FileObject::kGroup, group);
}

constexpr ListOf kTubes{"tubes", kTubeColumns, tube_counts, tube_row};
constexpr ListOf kGroups{"groups", kGroupColumns, group_line, group_line};
constexpr ListOf kJobs{"jobs", kJobColumns,
                       [](const json::value& job) { return file_fields(FileObject::kJob, job); },
                       [](const json::value& job) { return job.as_object(); }};

std::string target_of(const ListRequest& request, const ListOf& of) {
  if (!request.tube) return fmt::format("/v1/tubes?page_size={}", kPage);
  const std::uint32_t size = request.all ? kPage : std::min(request.limit, kPage);
  std::string target =
      fmt::format("/v1/tubes/{}/{}?page_size={}", url_part(*request.tube), of.name, size);
  for (const auto& [name, value] : server::write(request.filter.read<server::Filter>()))
    target += fmt::format("&{}={}", std::string_view(name), url_part(text_of(value)));
  return target;
}

void show_list(const ListRequest& request, const ListOf& of) try {
  Api api(request.server);
  const bool shows_all = request.all || !request.tube;
  std::uint64_t left = shows_all ? std::numeric_limits<std::uint64_t>::max() : request.limit;
  bool is_first = true;
  bool is_incomplete = false;
  const bool has_more = api.read_pages(target_of(request, of), "", [&](json::object& listed) {
    const json::array& page = listed.at(of.name).as_array();
    std::string text =
        std::exchange(is_first, false) && !request.json ? table_line(of.columns) : "";
    is_incomplete = is_incomplete || listed.contains("incomplete");
    for (const json::value& one : page) {
      if (left == 0) break;
      --left;
      if (request.json) {
        text += server::json_text(of.line(one)) + "\n";
      } else {
        const json::object row = of.row(one);
        text += table_line(of.columns, &row);
      }
    }
    write_out(text);
    return left > 0;
  });
  if (is_incomplete && request.tube) remark_missing_jobs(*request.tube);
  if (has_more) remark(fmt::format("there are more {}: see --limit and --all", of.name));
} catch (const Refusal& refusal) {
  if (refusal.status != 404 || !request.tube) request.filter.throw_usage(refusal);
  throw_no_tube(refusal, *request.tube);
}

int list(const ListRequest& request) {
  if (!request.tube && (request.groups || !request.filter.is_empty()))
    throw UsageError("write the TUBE, too");
  if (request.groups && !request.filter.is_empty())
    throw UsageError("--groups goes with no filter of jobs");
  show_list(request, !request.tube ? kTubes : request.groups ? kGroups : kJobs);
  return kSuccess;
}

}  // namespace

void add_list(CLI::App& command, int& exit_code) {
  ListRequest& request = set_action(command, exit_code, kListExamples, list);
  add_value(command, "TUBE", request.tube, parse_tube, "The jobs of this tube");
  request.filter.add_arguments(command, server::kShape<server::Filter>);
  add_flag(command, "--groups", request.groups, "The groups of the tube instead of its jobs");
  const auto parse_limit = [](const std::string& text) {
    return parse_number(text, 1, std::numeric_limits<std::uint32_t>::max());
  };
  const Argument limit =
      add_value(command, "--limit N", request.limit, parse_limit, "At most this many (100)");
  add_flag(command, "--all", request.all, "All of them").excludes(limit);
  add_json_and_server(command, request, "Print a line of JSON for each");
}

// --- carillon due

namespace {

constexpr const char* kDueExamples =
    R"(One line for each minute, hour or day that has jobs, in UTC. A number with a ~
is estimated: where there are very many jobs, not all of them are counted.

Examples:
  carillon due mail
  carillon due mail --by hour --spans 48
  carillon due mail --by day --json)";

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
    for (const boost::json::value& span : value.get_array()) text += server::json_text(span) + "\n";
  }
  return text + server::json_text(rest) + "\n";
}

int due(const ApiRequest& request) {
  server::GetDue begin;
  begin.tube = kDefaultTube;
  const auto asked = request.asked.read(begin);
  try {
    const auto due = Api(request.server).call<server::Due>("getDue", asked);
    write_out(request.json ? json_lines(due) : picture(due, asked.by));
    return kSuccess;
  } catch (const Refusal& refusal) {
    throw_no_tube(refusal, asked.tube);
  }
}

}  // namespace

void add_due(CLI::App& command, int& exit_code) {
  ApiRequest& request = set_action(command, exit_code, kDueExamples, due);
  request.asked.add_arguments(command, server::kShape<server::GetDue>,
                              {.positionals = "tube",
                               .optional = "tube",
                               .helps = {{"tube", "Of this tube (default: default)"}}});
  add_json_and_server(command, request, "Print lines of JSON");
}

}  // namespace carillon::cli
