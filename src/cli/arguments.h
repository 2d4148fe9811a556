// Options and positional arguments of subcommands: how they are declared and parsed. A wrong value
// gives one line that names the argument, the value and what is allowed.
//
//   PutRequest& request = set_action(command, exit_code, "Examples: ...", put);
//   add_value(command, "--delay DURATION", request.delay, server::parse_duration, "Due then");
//   add_json_and_server(command, request, "Print the job as JSON");
//
// put(request) is called once all of it is parsed. The help wraps a description at 53 columns.
//
// A wrong value ends the command with UsageError: `--delay "3 parsecs": not a duration; use e.g.
// 250ms, 3s, 2h, 40d`.
//
// Only arguments.cpp, command_line.cpp and completion.cpp include CLI11: it adds six seconds to
// the compilation of each file that includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/exit_status.h"
#include "cli/server_address.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name for it
class App;
class Option;
}  // namespace CLI

namespace carillon::cli {

inline constexpr std::string_view kDefaultTube = "default";

// These parsers throw std::invalid_argument for a wrong value. The message starts with the value in
// quotes and says what is allowed.

// A job's id, 1 to 2^64-1.
std::uint64_t parse_job_id(std::string_view text);

// The name of a directory: not empty.
std::string parse_directory(std::string_view text);

// A priority, 0 to 2^32-1.
std::uint32_t parse_priority(std::string_view text);

// Returns true for what a tube's name is made of.
bool is_tube_byte(char c);

// A tube's name: 1 to 200 bytes of A-Z a-z 0-9 - + / ; . $ _ ( ). The first byte is not "-".
std::string parse_tube(std::string_view text);
// A name of something else, which follows the same rule.
std::string parse_name(std::string_view text);

// A job's key, as is_key() has it (server/api/names.h).
std::string parse_key(const std::string& text);

// A number from `least` to `most`, both included.
std::uint32_t parse_number(std::string_view text, std::uint32_t least, std::uint32_t most);

// Returns parse(text). If parse throws std::invalid_argument, throws a UsageError whose text starts
// with `name`.
template <class Parse>
auto parse_argument(const std::string& name, Parse parse, const std::string& text) {
  try {
    return parse(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(name + " " + error.what());
  }
}

// Ends the help of the command with `examples`, and calls `act` after all arguments were parsed.
void set_action(CLI::App& command, std::string_view examples, std::function<void()> act);

// The same: act(request) returns the exit code. Returns the request, for the arguments to set it.
// It lives as long as the command.
template <class Request>
auto& set_action(CLI::App& command, int& exit_code, std::string_view examples,
                 int (*act)(Request&)) {
  const auto request = std::make_shared<std::remove_const_t<Request>>();
  set_action(command, examples, [request, act, &exit_code] { exit_code = act(*request); });
  return *request;
}

// For commands that run another program: parsing stops at the first word that is not an option of
// `command`. remaining() returns that word and all that follow.
void leave_the_rest(CLI::App& command);
std::vector<std::string> remaining(const CLI::App& command);

// A handle to an argument that was added, for further settings. Valid as long as its CLI::App.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument required() const;
  Argument excludes(Argument other) const;

 private:
  CLI::Option* option_;  // owned by the app
};

// An option without a value.
Argument add_flag(CLI::App& command, const std::string& name, bool& value,
                  const std::string& description);

// The same; calls `set` if it is given.
Argument add_flag(CLI::App& command, const std::string& name, const std::function<void()>& set,
                  const std::string& description);

// How an argument is written: "--delay DURATION" is an option and what the help calls its value,
// "ID" a positional. Errors name it by the first word.
inline std::string name_of_argument(const std::string& form) {
  return form.substr(0, form.find(' '));
}

// Adds an argument that is given at most once; calls `set` with its text.
Argument add_text(CLI::App& command, const std::string& form,
                  const std::function<void(const std::string&)>& set,
                  const std::string& description);

// The same; sets `value` to its text. `value` must outlive the app.
Argument add_text(CLI::App& command, const std::string& form, std::optional<std::string>& value,
                  const std::string& description);

// Adds an argument that may be given several times; calls `set` once with all its texts. An option
// takes one value each time it is given, a positional takes all that are left.
Argument add_list(CLI::App& command, const std::string& form,
                  const std::function<void(const std::vector<std::string>&)>& set,
                  const std::string& description);

// Adds an argument that sets `value` to what `parse` returns for its text. `value` must outlive the
// app. If it is a vector, the argument may be given several times.
template <class Value, class Parse>
Argument add_value(CLI::App& command, const std::string& form, Value& value, Parse parse,
                   const std::string& description) {
  const auto set = [name = name_of_argument(form), &value, parse](const std::string& text) {
    value = parse_argument(name, parse, text);
  };
  return add_text(command, form, set, description);
}

template <class Value, class Parse>
Argument add_value(CLI::App& command, const std::string& form, std::vector<Value>& values,
                   Parse parse, const std::string& description) {
  const auto set = [name = name_of_argument(form), &values,
                    parse](const std::vector<std::string>& texts) {
    values.clear();
    for (const std::string& text : texts) values.push_back(parse_argument(name, parse, text));
  };
  return add_list(command, form, set, description);
}

// Adds an argument that is one of `words`, which must outlive the app.
Argument add_choice(CLI::App& command, const std::string& form, std::string& value,
                    std::span<const std::string_view> words, const std::string& description);

// Adds --server ADDR, --http ADDR, --token-file FILE, --tls and --tls-ca FILE. Defaults of the
// addresses: the variables CARILLON_SERVER and CARILLON_HTTP, else 127.0.0.1:11300, and HTTP beside
// it. A server that is named by --server is asked at its own HTTP address, not at CARILLON_HTTP.
void add_server_option(CLI::App& command, ServerAddress& server);

// The same, behind --json.
template <class Request>
void add_json_and_server(CLI::App& command, Request& request, const std::string& json_help) {
  add_flag(command, "--json", request.json, json_help);
  add_server_option(command, request.server);
}

// Adds --tube TUBE, which may be given once.
Argument add_tube_option(CLI::App& command, std::string& tube, const std::string& description);

}  // namespace carillon::cli
