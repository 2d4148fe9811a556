// Parses statistics, and prints them as a table and as JSON: also for `carillon stats`, which shows
// the counters of the server, of one tube or of one job.

#include "cli/stats_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "server/text/json_text.h"
#include "server/text/json_value.h"
#include "server/text/visible_text.h"
#include "server/text/whole_number.h"

namespace carillon::cli {
namespace {

// Fields that hold names, which beanstalkd does not quote. "id" is not in this list: a job's id is
// a number, but a server's id is 16 hexadecimal digits.
constexpr std::array<std::string_view, 7> kTextFields{"name",     "tube", "state",   "version",
                                                      "hostname", "os",   "platform"};

// Takes an escape of a scalar in double quotes, which has this many hexadecimal digits after two
// characters, from the front. Returns the character; nothing if the digits are missing.
std::optional<char32_t> take_number(std::string_view& text, std::size_t digits) {
  constexpr int kHexadecimal = 16;
  if (text.size() < digits + 2) return std::nullopt;
  const auto code = server::whole_number<std::uint32_t>(text.substr(2, digits), kHexadecimal);
  if (code) text.remove_prefix(digits + 2);
  return code;
}

// Undoes what a scalar in double quotes needs: \", \\, \xNN and \uNNNN.
std::string unquoted(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const bool escaped = text.size() > 1 && text.front() == '\\';
    const std::size_t digits = !escaped ? 0 : text[1] == 'x' ? 2 : text[1] == 'u' ? 4 : 0;
    if (digits > 0) {
      if (const auto code = take_number(text, digits)) {
        server::append_utf8(plain, *code);
        continue;
      }
    }
    if (escaped) text.remove_prefix(1);
    plain += text.front();
    text.remove_prefix(1);
  }
  return plain;
}

StatsField parse_field(std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon == 0 || colon == std::string_view::npos) {
    throw Failure(fmt::format(
        "the server sent statistics with a line that is not \"name: value\": \"{}\"", line));
  }
  std::string_view value = line.substr(colon + 2);
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return {.name = std::string(line.substr(0, colon)),
          .value = quoted ? unquoted(value.substr(1, value.size() - 2)) : std::string(value),
          .quoted = quoted};
}

bool is_text(const StatsField& field, bool of_server) {
  if (field.quoted) return true;
  if (field.name == "id" && of_server) return true;
  return std::find(kTextFields.begin(), kTextFields.end(), field.name) != kTextFields.end();
}

// Returns the number that the whole text is, or none. JSON has no infinity, and no NaN.
std::optional<double> finite_number(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool is_one = error == std::errc() && rest == end && std::isfinite(number);
  return is_one ? std::optional(number) : std::nullopt;
}

boost::json::value json_value(const StatsField& field, bool of_server) {
  if (is_text(field, of_server)) return boost::json::value(field.value);
  if (field.value == "true") return boost::json::value(true);
  if (field.value == "false") return boost::json::value(false);
  if (const auto whole = server::whole_number<std::uint64_t>(field.value))
    return boost::json::value(*whole);
  if (const auto number = finite_number(field.value)) return boost::json::value(*number);
  return boost::json::value(field.value);
}

}  // namespace

StatsFields parse_stats(std::string_view yaml) {
  std::vector<StatsField> fields;
  while (!yaml.empty()) {
    const std::size_t end = std::min(yaml.find('\n'), yaml.size());
    const std::string_view line = yaml.substr(0, end);
    if (!line.empty() && line != "---") fields.push_back(parse_field(line));
    yaml.remove_prefix(std::min(end + 1, yaml.size()));
  }
  return StatsFields(std::move(fields));
}

const std::string& StatsFields::text(std::string_view name) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(),
                                  [name](const StatsField& field) { return field.name == name; });
  if (found == fields_.end())
    throw Failure(fmt::format("the server sent statistics without \"{}\"", name));
  return found->value;
}

std::uint64_t StatsFields::number(std::string_view name) const {
  const auto number = server::whole_number<std::uint64_t>(text(name));
  if (number) return *number;
  throw Failure(fmt::format("the server sent \"{}: {}\" in its statistics; a number was expected",
                            name, text(name)));
}

bool StatsFields::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [name](const StatsField& field) { return field.name == name; });
}

std::string to_table(const StatsFields& stats) {
  std::size_t width = 0;
  for (const StatsField& field : stats) width = std::max(width, field.name.size());
  std::string table;
  for (const StatsField& field : stats)
    table += fmt::format("{:<{}}  {}\n", field.name, width, server::visible(field.value));
  return table;
}

std::string to_json(const StatsFields& stats) {
  const bool of_server = std::any_of(
      stats.begin(), stats.end(), [](const StatsField& field) { return field.name == "hostname"; });
  boost::json::object object;
  for (const StatsField& field : stats) object[field.name] = json_value(field, of_server);
  return server::json_text(object) + "\n";
}

// --- carillon stats

namespace {

constexpr const char* kStatsExamples = R"(Times are in seconds.

Examples:
  carillon stats                    the server
  carillon stats --tube mail
  carillon stats --job 7
  carillon stats --json | jq '."current-jobs-ready"')";

struct StatsRequest {
  ServerAddress server;
  std::optional<std::uint64_t> job;
  std::optional<std::string> tube;
  bool json = false;
};

StatsFields fetch(const StatsRequest& request, Client& client) {
  if (request.job) {
    if (auto stats = client.stats_job(*request.job)) return *std::move(stats);
    throw no_such_job(*request.job);
  }
  if (request.tube) {
    if (auto stats = client.stats_tube(*request.tube)) return *std::move(stats);
    throw no_such_tube(*request.tube);
  }
  return client.stats();
}

int show_stats(const StatsRequest& request) {
  Client client(Stream::connect(request.server));
  const StatsFields stats = fetch(request, client);
  write_out(request.json ? to_json(stats) : to_table(stats));
  return kSuccess;
}

}  // namespace

void add_stats(CLI::App& command, int& exit_code) {
  StatsRequest& request = set_action(command, exit_code, kStatsExamples, show_stats);
  const Argument job = add_value(command, "--job ID", request.job, parse_job_id, "Of this job");
  add_value(command, "--tube TUBE", request.tube, parse_tube, "Of this tube").excludes(job);
  add_json_and_server(command, request, "Print one JSON object");
}

}  // namespace carillon::cli
