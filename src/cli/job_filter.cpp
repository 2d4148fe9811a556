// The options of filters, and how the server gets them (job_filter.h).

#include "cli/job_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "server/beanstalk/command.h"
#include "server/text/duration.h"
#include "server/text/timestamp.h"

namespace carillon::cli {
namespace {

std::string parse_states(const std::string& text) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || c == ','; };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  throw std::invalid_argument(fmt::format("\"{}\": write states as ready,delayed", text));
}

std::string parse_prefix(const std::string& text) {
  if (server::is_key(text)) return text;
  throw std::invalid_argument(
      fmt::format("\"{}\": the beginning of a key has {}", text, server::kKeyRule));
}

}  // namespace

std::string parse_group(const std::string& text) {
  if (server::is_key(text)) return text;
  throw std::invalid_argument(fmt::format("\"{}\": a group has {}", text, server::kKeyRule));
}

std::uint64_t parse_moment(const std::string& text) {
  if (text.find_first_of("T:") != std::string::npos) return server::parse_timestamp(text);
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(since_1970);
  const auto ms = static_cast<std::uint64_t>(now.count());
  const auto in = static_cast<std::uint64_t>(server::parse_duration(text).count());
  return in > UINT64_MAX / 2 ? in : ms + in;
}

std::string JobFilter::options() const {
  std::string text;
  if (!states.empty()) text += " state=" + states;
  if (!group.empty()) text += " group=" + group;
  if (!key_prefix.empty()) text += " key-prefix=" + key_prefix;
  if (due_after) text += fmt::format(" due-after={}", *due_after);
  if (due_before) text += fmt::format(" due-before={}", *due_before);
  return text;
}

void add_filter_options(CLI::App& command, JobFilter& filter, std::string_view states) {
  add_value(command, "--state", filter.states, parse_states,
            fmt::format("In one of these states: {}", states))
      .type_name("STATES");
  add_filter_options(command, filter);
}

void add_filter_options(CLI::App& command, JobFilter& filter) {
  add_value(command, "--group", filter.group, parse_group, "Of this group").type_name("GROUP");
  add_value(command, "--key-prefix", filter.key_prefix, parse_prefix,
            "Those whose key begins with this")
      .type_name("TEXT");
  add_value(command, "--due-after", filter.due_after, parse_moment,
            "Due then or later: 1h from now, or RFC 3339")
      .type_name("WHEN");
  add_value(command, "--due-before", filter.due_before, parse_moment, "Due before")
      .type_name("WHEN");
}

}  // namespace carillon::cli
