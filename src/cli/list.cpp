// `carillon list`: lists the tubes, or the jobs or groups of a tube.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_export.h"
#include "cli/job_filter.h"
#include "cli/output.h"
#include "server/text/visible_text.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Without a TUBE it lists the tubes. Jobs come by due time, and the buried ones
after them. Times are UTC.

Examples:
  carillon list
  carillon list mail --state delayed --due-before 1h
  carillon list mail --key-prefix invoice- --json --all
  carillon list mail --groups --all)";

// What the server takes at most.
constexpr std::uint32_t kPage = 1'000;

struct Request {
  ServerAddress server;
  std::optional<std::string> tube;
  JobFilter filter;
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

std::string text_of(const boost::json::object& job, std::string_view name) {
  const auto* const value = job.if_contains(name);
  if (value == nullptr) return {};
  if (!value->is_string()) return boost::json::serialize(*value);
  const boost::json::string& text = value->as_string();
  return {text.data(), text.size()};
}

void show_header() {
  write_out(fit(fmt::format("{:>8}  {:<8}  {:<24}  {:>5}  {:>5}  {:>7}  {}", "ID", "STATE", "DUE",
                            "PRI", "TRIES", "BYTES", "KEY")));
}

std::string table_line(std::string_view line) {
  const boost::json::object job = boost::json::parse(line).as_object();
  const std::string dead = text_of(job, "dead");
  const std::string key = job.contains("key") ? text_of(job, "key") : text_of(job, "key_base64");
  const std::string tries = text_of(job, "attempts");
  return fit(fmt::format("{:>8}  {:<8}  {:<24}  {:>5}  {:>5}  {:>7}  {}", text_of(job, "id"),
                         dead.empty() ? text_of(job, "state") : "dead", text_of(job, "due"),
                         text_of(job, "pri"), tries.empty() ? "0" : tries,
                         text_of(job, "body_bytes"), server::visible(key)));
}

void show_groups_header() {
  write_out(
      fit(fmt::format("{:>9}  {:>9}  {:>9}  {:>9}  {:>7}  {:>7}  {:<14}  {}", "READY", "RESERVED",
                      "DELAYED", "BURIED", "WEIGHT", "RUNNING", "RATE", "GROUP")));
}

// RUNNING: at most so many at once.
std::string group_line(std::string_view line) {
  const boost::json::object group = boost::json::parse(line).as_object();
  const auto limit = [&group](std::string_view name) {
    return group.contains(name) ? text_of(group, name) : "-";
  };
  const std::string name =
      group.contains("group") ? text_of(group, "group") : text_of(group, "group_base64");
  return fit(fmt::format(
      "{:>9}  {:>9}  {:>9}  {:>9}  {:>7}  {:>7}  {:<14}  {}", text_of(group, "ready"),
      text_of(group, "reserved"), text_of(group, "delayed"), text_of(group, "buried"),
      text_of(group, "weight"), limit("max_running"), limit("rate"), server::visible(name)));
}

void show(const Request& request, const std::vector<std::string>& lines) {
  const auto table = request.groups ? group_line : table_line;
  std::string text;
  for (const std::string& line : lines) text += request.json ? line + "\n" : table(line);
  write_out(text);
}

std::optional<ListPage> page_of(const Request& request, Client& client, std::uint64_t limit,
                                const std::string& after) {
  const std::string options = fmt::format(" limit={}{}", limit, after);
  if (request.groups) return client.list_groups(*request.tube, options);
  return client.list_jobs(*request.tube, request.filter.options() + options);
}

void list_tube(const Request& request, Client& client) {
  std::uint64_t left = request.all ? std::numeric_limits<std::uint64_t>::max() : request.limit;
  std::optional<std::string> next;
  bool is_first = true;
  bool is_incomplete = false;
  while (left > 0 && (is_first || next)) {
    const auto page = page_of(request, client, std::min<std::uint64_t>(left, kPage),
                              next ? " after=" + *next : "");
    if (!page)
      throw Failure(fmt::format(
          "tube {} does not exist: it has no jobs, and nobody uses or watches it", *request.tube));
    if (is_first && !request.json) request.groups ? show_groups_header() : show_header();
    is_first = false;
    show(request, page->lines);
    left -= page->lines.size();
    next = page->next;
    is_incomplete = is_incomplete || page->incomplete;
  }
  if (is_incomplete) remark(missing_jobs(*request.tube));
  if (!next) return;
  remark(
      fmt::format("there are more {}: see --limit and --all", request.groups ? "groups" : "jobs"));
}

void list_tubes(const Request& request, Client& client) {
  if (!request.json)
    write_out(fit(fmt::format("{:>9}  {:>9}  {:>9}  {:>9}  {}", "READY", "RESERVED", "DELAYED",
                              "BURIED", "TUBE")));
  for (const std::string& name : client.tubes()) {
    const auto stats = client.stats_tube(name);
    if (!stats) continue;  // it is gone
    const auto jobs = [&stats](std::string_view state) {
      return stats->number(fmt::format("current-jobs-{}", state));
    };
    const char* const format =
        request.json ? R"({{"ready":{},"reserved":{},"delayed":{},"buried":{},"tube":"{}"}})"
                     : "{:>9}  {:>9}  {:>9}  {:>9}  {}";
    const std::string line = fmt::format(fmt::runtime(format), jobs("ready"), jobs("reserved"),
                                         jobs("delayed"), jobs("buried"), name);
    write_out(request.json ? line + "\n" : fit(line));
  }
}

int list(const Request& request) {
  if (!request.tube && (request.groups || !request.filter.empty()))
    throw UsageError("write the TUBE, too");
  if (request.groups && !request.filter.empty())
    throw UsageError("--groups goes with no filter of jobs");
  Client client(Stream::connect(request.server));
  request.tube ? list_tube(request, client) : list_tubes(request, client);
  return kSuccess;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "list", kExamples);
  add_value(command, "TUBE", request->tube, parse_tube, "The jobs of this tube").type_name("");
  add_filter_options(command, request->filter, "delayed,ready,\nreserved,buried,dead");
  add_flag(command, "--groups", request->groups, "The groups of the tube instead of its jobs");
  const auto parse_limit = [](const std::string& text) {
    return parse_number(text, 1, std::numeric_limits<std::uint32_t>::max());
  };
  const Argument limit =
      add_value(command, "--limit", request->limit, parse_limit, "At most so many (100)")
          .type_name("N");
  add_flag(command, "--all", request->all, "All of them").excludes(limit);
  add_flag(command, "--json", request->json, "Print a line of JSON for each");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = list(*request); });
}

}  // namespace carillon::cli
