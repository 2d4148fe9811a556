// The values that several subcommands take on the command line, and how they are read: one clear
// line for a wrong one.
//
//   CLI::App& command = add_subcommand(app, "put", "Examples: ...");
//   add_value(command, "--delay", request->delay, parse_duration, "Hand it out no earlier than this from now")
//       .type_name("DURATION");
//   when_parsed(command, [request] { ... });
//
// A wrong value ends the command with UsageError: `--delay "3 parsecs": not a duration; use e.g.
// 250ms, 3s, 2h, 40d`.
//
// CLI11 itself is in arguments.cpp and run.cpp alone: each file that includes it takes six seconds
// more to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "server/address.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name for it
class App;
class Option;
}  // namespace CLI

namespace carillon::cli {

inline constexpr std::string_view kDefaultTube = "default";

/// Each throws std::invalid_argument, whose text starts with the value in quotes and says what is
/// allowed.
std::uint64_t parse_job_id(std::string_view text);    // 1 to 2^64-1
std::uint32_t parse_priority(std::string_view text);  // 0 to 2^32-1
std::string parse_tube(
    std::string_view text);  // 1 to 200 bytes of A-Z a-z 0-9 - + / ; . $ _ ( ), no - in front

/// A number from `least` to `most`.
std::uint32_t parse_number(std::string_view text, std::uint32_t least, std::uint32_t most);

/// Calls parse(text), and turns its std::invalid_argument into a UsageError that names the
/// argument.
template <class Parse>
auto parse_argument(const std::string& name, Parse parse, const std::string& text) {
  try {
    return parse(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(name + " " + error.what());
  }
}

/// A subcommand of `app`; `footer` ends its help.
CLI::App& add_subcommand(CLI::App& app, const std::string& name, std::string_view footer);

/// Calls `act` when all arguments of the command are known.
void when_parsed(CLI::App& command, std::function<void()> act);

/// What is not an option of the command, and all that follows it, is for another program:
/// remaining() has it then.
void leave_the_rest(CLI::App& command);
std::vector<std::string> remaining(const CLI::App& command);

/// An argument that was added, to say more of it.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument type_name(const std::string& name) const;  // what the help calls its value
  Argument required() const;
  Argument excludes(Argument other) const;

 private:
  CLI::Option* option_;  // the app's
};

/// An option without a value.
Argument add_flag(CLI::App& command, const std::string& name, bool& value,
                  const std::string& description);

/// An argument whose text, or all of whose texts, `set` gets. With a list, an option takes one
/// value each time it is given, a positional all there are.
Argument add_text(CLI::App& command, const std::string& name,
                  const std::function<void(const std::string&)>& set,
                  const std::string& description);
Argument add_list(CLI::App& command, const std::string& name,
                  const std::function<void(const std::vector<std::string>&)>& set,
                  const std::string& description);

/// Adds an option ("--delay", "-d,--delay") or a positional ("ID") that sets `value`, which has to
/// outlive the app. Into a vector it may be given several times.
template <class Value, class Parse>
Argument add_value(CLI::App& command, const std::string& name, Value& value, Parse parse,
                   const std::string& description) {
  const auto set = [name, &value, parse](const std::string& text) {
    value = parse_argument(name, parse, text);
  };
  return add_text(command, name, set, description);
}

template <class Value, class Parse>
Argument add_value(CLI::App& command, const std::string& name, std::vector<Value>& values,
                   Parse parse, const std::string& description) {
  const auto set = [name, &values, parse](const std::vector<std::string>& texts) {
    values.clear();
    for (const std::string& text : texts) values.push_back(parse_argument(name, parse, text));
  };
  return add_list(command, name, set, description);
}

/// --server ADDR, else CARILLON_SERVER from the environment, else 127.0.0.1:11300.
void add_server_option(CLI::App& command, server::Address& address);

/// --tube T, once.
Argument add_tube_option(CLI::App& command, std::string& tube, const std::string& description);

}  // namespace carillon::cli
