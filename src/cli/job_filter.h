// The options that say which jobs are meant: --state, --group, --key-prefix, --due-after,
// --due-before.
//
//   carillon clear mail --state dead --due-before 1h
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/arguments.h"

namespace carillon::cli {

struct JobFilter {
  std::string states = {};
  std::string group = {};
  std::string key_prefix = {};
  std::optional<std::uint64_t> due_after = {};  // UTC ms
  std::optional<std::uint64_t> due_before = {};

  bool empty() const {
    return states.empty() && group.empty() && key_prefix.empty() && !due_after && !due_before;
  }
  // As the server takes them: " state=dead due-before=1893488400000", or nothing.
  std::string options() const;
};

// Adds the options to the command. `states` are those that --state may name, for the help.
void add_filter_options(CLI::App& command, JobFilter& filter, std::string_view states);
// The same without --state.
void add_filter_options(CLI::App& command, JobFilter& filter);

// Returns the name of a group. Throws std::invalid_argument.
std::string parse_group(const std::string& text);

// Returns UTC ms: of a duration (1h, from now), or of an RFC 3339 time. Throws
// std::invalid_argument.
std::uint64_t parse_moment(const std::string& text);

}  // namespace carillon::cli
