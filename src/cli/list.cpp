// `carillon list` lists the tubes, or the jobs or groups of a tube; `carillon due` draws how many
// jobs are due when.

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
#include <utility>
#include <vector>

#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/asked.h"
#include "cli/commands.h"
#include "cli/file_fields.h"
#include "cli/output.h"
#include "server/api/due.h"
#include "server/api/filters.h"
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

// What the server takes at most.
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

void show_header() {
  write_out(fit(fmt::format("{:>8}  {:<8}  {:<24}  {:>5}  {:>5}  {:>7}  {}", "ID", "STATE", "DUE",
                            "PRI", "TRIES", "BYTES", "KEY")));
}

std::string key_of(const json::object& of, const std::string& name) {
  return server::visible(of.contains(name) ? text_in(of, name) : text_in(of, name + "_base64"));
}

std::string job_row(const json::object& job) {
  return fit(fmt::format("{:>8}  {:<8}  {:<24}  {:>5}  {:>5}  {:>7}  {}", text_in(job, "id"),
                         text_in(job, "state"), text_in(job, "due"), text_in(job, "priority"),
                         text_in(job, "failed_attempts"), text_in(job, "body_bytes"),
                         key_of(job, "key")));
}

void show_groups_header() {
  write_out(
      fit(fmt::format("{:>9}  {:>9}  {:>9}  {:>9}  {:>7}  {:>7}  {:<14}  {}", "READY", "RESERVED",
                      "DELAYED", "BURIED", "WEIGHT", "RUNNING", "RATE", "GROUP")));
}

// RUNNING is the limit of running jobs.
std::string group_row(const json::object& group) {
  const auto limit = [&group](std::string_view name) {
    return group.contains(name) ? text_in(group, name) : "-";
  };
  return fit(fmt::format(
      "{:>9}  {:>9}  {:>9}  {:>9}  {:>7}  {:>7}  {:<14}  {}", text_in(group, "ready"),
      text_in(group, "reserved"), text_in(group, "delayed"), text_in(group, "buried"),
      text_in(group, "weight"), limit("max_running"), limit("rate"), key_of(group, "group")));
}

// Calls `show` with the objects of each page of a list, until there are no more or it returns
// false. `target` ends with ? or &. Returns true if some were left.
template <class Show>
bool read_pages(Api& api, const std::string& target, std::string_view name, Show show) {
  std::string token;
  while (true) {
    json::object page = api.get(target + token);
    const json::value& next = page.at("next_page_token");
    const bool goes_on = show(page.at(name).as_array(), page.contains("incomplete"));
    if (!next.is_string()) return false;
    if (!goes_on) return true;
    token = "&page_token=" + url_part(next.get_string());
  }
}

std::string target_of(const ListRequest& request) {
  const std::string tube = "/v1/tubes/" + url_part(*request.tube);
  const std::uint32_t size = request.all ? kPage : std::min(request.limit, kPage);
  std::string target =
      fmt::format("{}/{}?page_size={}", tube, request.groups ? "groups" : "jobs", size);
  const json::object filter = server::write(request.filter.read<server::Filter>());
  for (const auto& [name, value] : filter)
    target += fmt::format("&{}={}", std::string_view(name), url_part(text_of(value)));
  return target;
}

void list_tube(const ListRequest& request, Api& api) try {
  std::uint64_t left = request.all ? std::numeric_limits<std::uint64_t>::max() : request.limit;
  bool is_first = true;
  bool is_incomplete = false;
  const auto show = [&](const json::array& page, bool incomplete) {
    // A tube that is not there has no jobs, either.
    if (is_first && page.empty()) api.get("/v1/tubes/" + url_part(*request.tube));
    if (is_first && !request.json) request.groups ? show_groups_header() : show_header();
    is_first = false;
    is_incomplete = is_incomplete || incomplete;
    std::string text;
    for (const json::value& one : page) {
      if (left == 0) break;
      --left;
      const json::object line =
          file_fields(request.groups ? FileObject::kGroup : FileObject::kJob, one);
      text += request.json ? json::serialize(line) + "\n"
                           : (request.groups ? group_row(line) : job_row(one.as_object()));
    }
    write_out(text);
    return left > 0;
  };
  const bool has_more =
      read_pages(api, target_of(request), request.groups ? "groups" : "jobs", show);
  if (is_incomplete) remark_missing_jobs(*request.tube);
  if (!has_more) return;
  remark(
      fmt::format("there are more {}: see --limit and --all", request.groups ? "groups" : "jobs"));
} catch (const Refusal& refusal) {
  if (refusal.status != 404) request.filter.throw_usage(refusal);
  throw Failure(fmt::format("tube {} does not exist: it has no jobs, and nobody uses or watches it",
                            *request.tube));
}

void list_tubes(const ListRequest& request, Api& api) {
  const std::string header = fit(fmt::format("{:>9}  {:>9}  {:>9}  {:>9}  {}", "READY", "RESERVED",
                                             "DELAYED", "BURIED", "TUBE"));
  bool is_first = true;
  const auto show = [&](const json::array& page, bool) {
    std::string text = std::exchange(is_first, false) && !request.json ? header : "";
    for (const json::value& one : page) {
      const json::object& jobs = one.at("jobs").as_object();
      const bool paused = one.at("paused").as_bool();
      const bool draining = one.at("draining").as_bool();
      if (request.json) {
        json::object line;
        for (const char* const state : {"ready", "reserved", "delayed", "buried"})
          line[state] = jobs.at(state);
        line["tube"] = one.at("name");
        if (paused) line["paused"] = "yes";
        if (draining) line["puts"] = "refused";
        text += json::serialize(line) + "\n";
        continue;
      }
      text += fit(fmt::format("{:>9}  {:>9}  {:>9}  {:>9}  {}{}{}", text_in(jobs, "ready"),
                              text_in(jobs, "reserved"), text_in(jobs, "delayed"),
                              text_in(jobs, "buried"), text_in(one.as_object(), "name"),
                              paused ? " (paused)" : "", draining ? " (drained)" : ""));
    }
    write_out(text);
    return true;
  };
  read_pages(api, fmt::format("/v1/tubes?page_size={}", kPage), "tubes", show);
}

int list(const ListRequest& request) {
  if (!request.tube && (request.groups || !request.filter.is_empty()))
    throw UsageError("write the TUBE, too");
  if (request.groups && !request.filter.is_empty())
    throw UsageError("--groups goes with no filter of jobs");
  Api api(request.server);
  request.tube ? list_tube(request, api) : list_tubes(request, api);
  return kSuccess;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<ListRequest>();
  CLI::App& command = add_subcommand(app, "list", kListExamples);
  add_value(command, "TUBE", request->tube, parse_tube, "The jobs of this tube").type_name("");
  request->filter.add_arguments(command, server::kShape<server::Filter>);
  add_flag(command, "--groups", request->groups, "The groups of the tube instead of its jobs");
  const auto parse_limit = [](const std::string& text) {
    return parse_number(text, 1, std::numeric_limits<std::uint32_t>::max());
  };
  const Argument limit =
      add_value(command, "--limit", request->limit, parse_limit, "At most this many (100)")
          .type_name("N");
  add_flag(command, "--all", request->all, "All of them").excludes(limit);
  add_flag(command, "--json", request->json, "Print a line of JSON for each");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = list(*request); });
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

struct DueRequest {
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

int due(const DueRequest& request) {
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
  auto request = std::make_shared<DueRequest>();
  CLI::App& command = add_subcommand(app, "due", kDueExamples);
  request->asked.add_arguments(command, server::kShape<server::GetDue>,
                               {.positionals = "tube",
                                .optional = "tube",
                                .helps = {{"tube", "Of this tube (default: default)"}}});
  add_flag(command, "--json", request->json, "Print lines of JSON");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = due(*request); });
}

}  // namespace carillon::cli
