// parse_list_options(): the table of options, and their values (list_options.h).
#include "server/beanstalk/list_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/beanstalk/command.h"
#include "server/beanstalk/option_values.h"

namespace carillon::server::beanstalk {
namespace {

using queue::bit_of;
using queue::JobState;

std::uint32_t state(std::string_view name) {
  constexpr std::pair<std::string_view, std::uint32_t> kStates[] = {
      {"delayed", bit_of(JobState::kDelayed)},
      {"ready", bit_of(JobState::kReady)},
      {"reserved", bit_of(JobState::kReserved)},
      {"buried", bit_of(JobState::kBuried)},
      {"dead", queue::kDeadJobs}};
  for (const auto& [word, bit] : kStates) {
    if (name == word) return bit;
  }
  refuse_option(fmt::format("{}: delayed, ready, reserved, buried or dead", quoted(name)));
}

void set_states(ListOptions& options, std::string_view text) {
  options.filter.states = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    options.filter.states |= state(text.substr(0, comma));
    if (comma == text.size()) return;
    text.remove_prefix(comma + 1);
  }
}

void set_key_prefix(ListOptions& options, std::string_view text) {
  if (!is_key(text)) {
    refuse_option(
        fmt::format("{}: the beginning of a key has 1 to {} bytes, and no space or "
                    "control character",
                    quoted(text), queue::kMaxKey));
  }
  options.filter.key_prefix = text;
}

void set_limit(ListOptions& options, std::string_view text) {
  const auto limit = number(text);
  if (!limit || *limit == 0 || *limit > kMostListed)
    refuse_option(fmt::format("{}: not a number from 1 to {}", quoted(text), kMostListed));
  options.limit = static_cast<std::size_t>(*limit);
}

void set_after(ListOptions& options, std::string_view text) {
  const auto cursor = queue::to_cursor(text);
  if (!cursor) refuse_option(fmt::format("{}: not what a page calls next", quoted(text)));
  options.after = *cursor;
  options.is_first = false;
}

bool yes(std::string_view text) {
  if (text == "yes") return true;
  if (text == "no") return false;
  refuse_option(fmt::format("{}: yes or no", quoted(text)));
}

struct Option {
  std::string_view name;
  void (*set)(ListOptions&, std::string_view);
};

constexpr std::array kOptions = {
    Option{"state", set_states},
    Option{"key-prefix", set_key_prefix},
    Option{"due-after", [](ListOptions& o, std::string_view t) { o.filter.due_from = moment(t); }},
    Option{"due-before",
           [](ListOptions& o, std::string_view t) { o.filter.due_before = moment(t); }},
    Option{"limit", set_limit},
    Option{"after", set_after},
    Option{"bodies", [](ListOptions& o, std::string_view t) { o.bodies = yes(t); }},
};

std::string names() {
  std::string names;
  for (const Option& option : kOptions)
    names += (names.empty() ? "" : " ") + std::string(option.name);
  return names;
}

}  // namespace

ListOptions parse_list_options(std::string_view text) {
  ListOptions options;
  std::array<bool, kOptions.size()> given{};
  while (const auto part = take_option(text)) {
    const auto* const found =
        std::find_if(kOptions.begin(), kOptions.end(),
                     [&part](const Option& option) { return option.name == part->name; });
    if (found == kOptions.end())
      refuse_option(fmt::format("{}: no such option; there are {}", quoted(part->name), names()));
    if (!part->value) refuse_option(fmt::format("{0}: {0}=VALUE", part->name));
    if (std::exchange(given[static_cast<std::size_t>(found - kOptions.begin())], true))
      refuse_option(fmt::format("{}: comes twice", part->name));
    try {
      found->set(options, *part->value);
    } catch (const std::invalid_argument& error) {
      refuse_option(fmt::format("{}: {}", part->name, printable(error.what())));
    }
  }
  return options;
}

}  // namespace carillon::server::beanstalk
