// `carillon endpoint`: sets, shows and tries out endpoints, to which the server posts the jobs of a
// tube. It talks HTTP.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "cli/stats_fields.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kExamples =
    R"(ACTION: set, list, show, test (posts a request without a job, and prints the
answer), pause, resume (also after the endpoint has answered 410, or while it
rests), rotate (makes a new secret), delete. set again changes all but the
secrets, unless they are given. A new secret is printed, and shown never again.

Examples:
  carillon endpoint set billing --tube bills --url https://example.com/hook
  carillon endpoint set billing --tube bills --url https://example.com/hook \
    --concurrency 4 --header "Authorization: Bearer x" --secret-file secrets
  carillon endpoint test billing     204 after 31ms
  carillon endpoint rotate billing --overlap 2h
  carillon endpoint list)";

constexpr std::array<std::string_view, 8> kActions = {"set",   "list",   "show",   "test",
                                                      "pause", "resume", "rotate", "delete"};

struct Request {
  ServerAddress server;
  std::string action;
  std::optional<std::string> name;
  // The body of the request, as the server takes it: it checks the values.
  json::object fields;
  std::optional<std::string> secret_file;
  bool json = false;
};

std::string parse_action(const std::string& text) {
  if (std::find(kActions.begin(), kActions.end(), text) != kActions.end()) return text;
  throw std::invalid_argument(fmt::format("\"{}\": there are {}", text, fmt::join(kActions, ", ")));
}

std::pair<std::string, std::string> parse_header(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0)
    throw std::invalid_argument(fmt::format("\"{}\": write \"NAME: VALUE\"", text));
  std::string_view value = std::string_view(text).substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  return {text.substr(0, colon), std::string(value)};
}

// One secret a line, the newest first.
json::array read_secrets(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Failure(fmt::format("cannot read {}: {}", path, error_text(errno)));
  json::array secrets;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) secrets.push_back(json::string(line));
  }
  return secrets;
}

std::string path_of(const std::string& name, std::string_view verb = {}) {
  return "/v1/endpoints/" + url_part(name) + std::string(verb);
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr) return {};
  return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

// Lists stand on one line: names of headers, and fingerprints of secrets.
StatsFields fields_of(const json::object& shown) {
  std::vector<StatsField> fields;
  for (const auto& [key, value] : shown) {
    std::string text = text_of(shown, key);
    if (value.is_array()) {
      text.clear();
      for (const json::value& one : value.get_array()) {
        if (!text.empty()) text += ", ";
        if (one.is_string()) text += std::string_view(one.get_string());
        if (!one.is_object()) continue;
        text += text_of(one.get_object(), "fingerprint");
        if (one.get_object().contains("until"))
          text += fmt::format(" (until {})", text_of(one.get_object(), "until"));
      }
    }
    fields.push_back({.name = std::string(key), .value = std::move(text), .quoted = false});
  }
  return StatsFields(std::move(fields));
}

void list(const Request& request, Api& api) {
  json::array all;
  std::string query;
  do {
    const json::object page = api.get("/v1/endpoints" + query);
    for (const json::value& one : page.at("endpoints").as_array()) all.push_back(one);
    const json::value& next = page.at("next_page_token");
    query = next.is_string() ? "?page_token=" + url_part(next.get_string()) : std::string();
  } while (!query.empty());
  if (request.json) return write_out(json::serialize(all) + "\n");
  std::string text;
  for (const json::value& one : all) {
    const json::object& shown = one.as_object();
    text += fmt::format("{:<20} {:<9} {:<20} {}\n", text_of(shown, "name"), text_of(shown, "state"),
                        text_of(shown, "tube"), text_of(shown, "url"));
  }
  write_out(text);
}

// Prints the secret alone, if there is a new one.
void print_secret(const json::object& shown) {
  if (shown.contains("secret")) write_out(text_of(shown, "secret") + "\n");
}

void tell(const Request& request, std::string_view done) {
  write_out(request.json
                ? fmt::format("{{\"endpoint\":\"{}\",\"result\":\"{}\"}}\n", *request.name, done)
                : fmt::format("{} endpoint {}\n", done, *request.name));
}

void test(const Request& request, Api& api) {
  // It answers after the time that an attempt has, at most.
  api.set_patience(std::chrono::minutes(11));
  const json::object trial = api.ask("POST", path_of(*request.name, ":test"));
  if (request.json) write_out(json::serialize(trial) + "\n");
  const std::string status = text_of(trial, "status");
  std::string told = status.empty() ? text_of(trial, "error") : "it answers " + status;
  if (trial.contains("answer")) told += ": " + text_of(trial, "answer");
  if (!status.starts_with('2')) throw Failure(fmt::format("endpoint {}: {}", *request.name, told));
  if (!request.json) write_out(fmt::format("{} after {}\n", status, text_of(trial, "took")));
}

void check(const Request& request) {
  if (request.action == "list" && request.name)
    throw UsageError(fmt::format("list takes no name: \"{}\"", *request.name));
  if (request.action != "list" && !request.name)
    throw UsageError(fmt::format("write the name: {} NAME", request.action));
  const bool is_set = request.action == "set";
  for (const auto& [key, value] : request.fields) {
    const bool fits = key == "overlap" ? request.action == "rotate" : is_set;
    if (!fits)
      throw UsageError(fmt::format("--{} is for {}", std::string_view(key),
                                   key == "overlap" ? "rotate" : "set"));
  }
  if (!is_set && request.secret_file) throw UsageError("--secret-file is for set");
  for (const char* const needed : {"url", "tube"})
    if (is_set && !request.fields.contains(needed))
      throw UsageError(fmt::format("write --{}", needed));
}

int endpoint(Request& request) {
  check(request);
  Api api(request.server);
  if (request.action == "list") {
    list(request, api);
  } else if (request.action == "set") {
    if (request.secret_file) request.fields["secrets"] = read_secrets(*request.secret_file);
    print_secret(api.ask("PUT", path_of(*request.name), request.fields));
  } else if (request.action == "show") {
    const json::object shown = api.get(path_of(*request.name));
    write_out(request.json ? json::serialize(shown) + "\n" : to_table(fields_of(shown)));
  } else if (request.action == "rotate") {
    print_secret(api.ask("POST", path_of(*request.name, ":rotate"), request.fields));
  } else if (request.action == "test") {
    test(request, api);
  } else if (request.action == "delete") {
    api.ask("DELETE", path_of(*request.name));
    tell(request, "deleted");
  } else {
    api.ask("POST", path_of(*request.name, ":" + request.action));
    tell(request, request.action == "pause" ? "paused" : "resumed");
  }
  return kSuccess;
}

}  // namespace

void add_endpoint(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "endpoint", kExamples);
  add_value(command, "ACTION", request->action, parse_action, "").type_name("").required();
  add_value(command, "NAME", request->name, parse_tube, "Of the endpoint").type_name("");
  const auto option = [&](const std::string& name, const char* type, const char* description) {
    add_text(
        command, "--" + name,
        [request, name](const std::string& text) { request->fields[name] = text; }, description)
        .type_name(type);
  };
  option("url", "URL", "Where to post: http or https");
  option("tube", "TUBE", "Whose jobs");
  option("format", "FORMAT", "standard, cloudevents or cloudevents-json\n(standard)");
  option("timeout", "DURATION", "Of an attempt, 100ms to 10m (15s)");
  add_text(
      command, "--concurrency",
      [request](const std::string& text) {
        const auto parse = [](const std::string& from) { return parse_number(from, 1, 64); };
        request->fields["concurrency"] = parse_argument("--concurrency", parse, text);
      },
      "How many jobs are posted at once, 1 to 64 (10)")
      .type_name("N");
  add_list(
      command, "--header",
      [request](const std::vector<std::string>& texts) {
        json::object headers;
        for (const std::string& text : texts) {
          const auto [name, value] = parse_argument("--header", parse_header, text);
          headers[name] = value;
        }
        request->fields["headers"] = std::move(headers);
      },
      "\"NAME: VALUE\" of each request; may be given several\ntimes")
      .type_name("HEADER");
  add_text(
      command, "--secret-file", [request](const std::string& text) { request->secret_file = text; },
      "Secrets of your own, whsec_..., one a line, the\nnewest first")
      .type_name("FILE");
  option("overlap", "DURATION", "Of rotate: how long those before sign, too (24h)");
  add_flag(command, "--json", request->json, "Print JSON (list, show, test)");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = endpoint(*request); });
}

}  // namespace carillon::cli
