// The values that several subcommands take on the command line, and how they are read: one clear line for a wrong one.
//
//   add_value(command, "--delay", request->delay, parse_duration, "Hand it out no earlier than this from now")
//       ->type_name("DURATION");
//
// A wrong value ends the command with UsageError: `--delay "3 parsecs": not a duration; use e.g. 250ms, 3s, 2h, 40d`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "server/address.h"

namespace carillon::cli {

inline constexpr std::string_view kDefaultTube = "default";

/// Each throws std::invalid_argument, whose text starts with the value in quotes and says what is allowed.
std::uint64_t parse_job_id(std::string_view text);    // 1 to 2^64-1
std::uint32_t parse_priority(std::string_view text);  // 0 to 2^32-1
std::string parse_tube(std::string_view text);        // 1 to 200 bytes of A-Z a-z 0-9 - + / ; . $ _ ( ), no - in front

/// A number from `least` to `most`.
std::uint32_t parse_number(std::string_view text, std::uint32_t least, std::uint32_t most);

/// Calls parse(text), and turns its std::invalid_argument into a UsageError that names the argument.
template <class Parse>
auto parse_argument(const std::string& name, Parse parse, const std::string& text) {
  try {
    return parse(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(name + " " + error.what());
  }
}

/// Adds an option ("--delay", "-d,--delay") or a positional ("ID") that sets `value`, which has to outlive the app. Into a
/// vector it may be given several times; an option takes one value each time, a positional all there are.
template <class Value, class Parse>
CLI::Option* add_value(CLI::App& command, const std::string& name, Value& value, Parse parse,
                       const std::string& description) {
  const auto set = [name, &value, parse](const std::string& text) { value = parse_argument(name, parse, text); };
  return command.add_option_function<std::string>(name, set, description);
}

template <class Value, class Parse>
CLI::Option* add_value(CLI::App& command, const std::string& name, std::vector<Value>& values, Parse parse,
                       const std::string& description) {
  const auto set = [name, &values, parse](const std::vector<std::string>& texts) {
    values.clear();
    for (const std::string& text : texts) values.push_back(parse_argument(name, parse, text));
  };
  return command.add_option_function<std::vector<std::string>>(name, set, description)
      ->allow_extra_args(!name.starts_with('-'));
}

/// --server ADDR, else CARILLON_SERVER from the environment, else 127.0.0.1:11300.
void add_server_option(CLI::App& command, server::Address& address);

/// --tube T, once.
CLI::Option* add_tube_option(CLI::App& command, std::string& tube, const std::string& description);

}  // namespace carillon::cli
