// The options of the commands for many jobs, and their values (list_options.h).
#include "server/api/list_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/api/names.h"
#include "server/api/option_values.h"

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
    refuse_option(fmt::format("{}: the beginning of a key has {}", quoted(text), kKeyRule));
  }
  options.filter.key_prefix = text;
}

void set_group(ListOptions& options, std::string_view text) {
  options.filter.group = group(text);
}

void set_after(ListOptions& options, std::string_view text) {
  const auto cursor = queue::to_cursor(text);
  if (!cursor) refuse_option(fmt::format("{}: not what a page calls next", quoted(text)));
  options.after = *cursor;
  options.is_first = false;
}

void set_to(ListOptions& options, std::string_view text) {
  if (!is_tube_name(text)) refuse_option(fmt::format("{}: not the name of a tube", quoted(text)));
  options.to = text;
}

template <std::uint64_t most>
void set_limit(ListOptions& options, std::string_view text) {
  options.limit = number(text).value_or(0);
  if (options.limit == 0 || options.limit > most)
    refuse_option(fmt::format("{}: not a number from 1 to {}", quoted(text), most));
}

struct ListOption {
  std::string_view name;
  unsigned of;  // bits of ListOptionsOf
  void (*set)(ListOptions&, std::string_view);
};

constexpr unsigned kList = static_cast<unsigned>(ListOptionsOf::kList);
constexpr unsigned kMove = static_cast<unsigned>(ListOptionsOf::kMove);
constexpr unsigned kSpread = static_cast<unsigned>(ListOptionsOf::kSpread);
constexpr unsigned kChanges = static_cast<unsigned>(ListOptionsOf::kCancel) |
                              static_cast<unsigned>(ListOptionsOf::kRetry) | kMove | kSpread;
constexpr unsigned kAny = kList | kChanges;

constexpr std::array kListOptions = {
    ListOption{"state", kAny & ~kSpread, set_states},
    ListOption{"group", kAny, set_group},
    ListOption{"key-prefix", kAny, set_key_prefix},
    ListOption{"due-after", kAny,
               [](ListOptions& o, std::string_view t) { o.filter.due_from = moment(t); }},
    ListOption{"due-before", kAny,
               [](ListOptions& o, std::string_view t) { o.filter.due_before = moment(t); }},
    ListOption{"limit", kList, set_limit<kMostListed>},
    ListOption{"limit", kChanges, set_limit<kMostChanged>},
    ListOption{"after", kAny, set_after},
    ListOption{"bodies", kList, [](ListOptions& o, std::string_view t) { o.bodies = yes(t); }},
    ListOption{"dry-run", kChanges, [](ListOptions& o, std::string_view t) { o.dry_run = yes(t); }},
    ListOption{"to", kMove, set_to},
    ListOption{"over", kSpread, [](ListOptions& o, std::string_view t) { o.over = duration(t); }},
};

// Calls `set` with each option, and the index of its name in `names`.
template <std::size_t size, class Set>
std::array<bool, size> read_list(std::string_view text,
                                 const std::array<std::string_view, size>& names, Set set) {
  std::array<bool, size> given{};
  while (const auto part = take_option(text)) {
    const auto* const found =
        std::find(names.begin(), names.end(), part->name.empty() ? "=" : part->name);
    if (found == names.end()) {
      std::string all;
      for (const std::string_view name : names) {
        if (!name.empty()) all.append(all.empty() ? "" : " ").append(name);
      }
      refuse_option(fmt::format("{}: no such option; there are {}", quoted(part->name), all));
    }
    if (!part->value) refuse_option(fmt::format("{0}: {0}=VALUE", part->name));
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (std::exchange(given[index], true))
      refuse_option(fmt::format("{}: comes twice", part->name));
    try {
      set(index, *part->value);
    } catch (const std::invalid_argument& error) {
      refuse_option(fmt::format("{}: {}", part->name, printable(error.what())));
    }
  }
  return given;
}

void check_list(ListOptions& options, ListOptionsOf of, bool has_states) {
  if (options.limit == 0)
    options.limit = of == ListOptionsOf::kList ? kUsuallyListed : kUsuallyChanged;
  if (of == ListOptionsOf::kMove && options.to.empty()) refuse_option("to: write the tube");
  if (of == ListOptionsOf::kList && options.after.lane != 0)
    refuse_option("after: this is where a change of many jobs goes on, and not a list");
  if (of != ListOptionsOf::kRetry) return;
  if (!has_states) options.filter.states = bit_of(JobState::kBuried);
  if (options.filter.admits_any(bit_of(JobState::kReady) | bit_of(JobState::kReserved)))
    refuse_option("state: only delayed, buried and dead jobs can be retried");
}

}  // namespace

ListOptions parse_list_options(std::string_view text, ListOptionsOf of) {
  std::array<std::string_view, kListOptions.size()> names;  // empty: not for this command
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_allowed = (kListOptions[i].of & static_cast<unsigned>(of)) != 0;
    names[i] = is_allowed ? kListOptions[i].name : std::string_view();
  }
  ListOptions options;
  const auto given = read_list(text, names, [&](std::size_t index, std::string_view value) {
    kListOptions[index].set(options, value);
  });
  check_list(options, of, given[0]);
  return options;
}

GroupListOptions parse_group_list_options(std::string_view text) {
  GroupListOptions options;
  const std::array<std::string_view, 2> names = {"limit", "after"};
  read_list(text, names, [&options](std::size_t index, std::string_view value) {
    const std::uint64_t most = index == 0 ? kMostListed : UINT32_MAX;
    const std::uint64_t read = number(value).value_or(0);
    if (read == 0 || read > most) {
      refuse_option(index == 0 ? fmt::format("{}: not a number from 1 to {}", quoted(value), most)
                               : fmt::format("{}: not what a page calls next", quoted(value)));
    }
    if (index == 0) {
      options.limit = static_cast<std::size_t>(read);
    } else {
      options.after = static_cast<std::uint32_t>(read);
    }
  });
  return options;
}

DueCountsOptions parse_due_counts_options(std::string_view text) {
  constexpr std::uint64_t kMostSpans = 1'000;
  struct Span {
    std::string_view name;
    queue::Millis width;
    std::size_t usual;
  };
  constexpr Span kSpans[] = {
      {"minute", 60'000, 60}, {"hour", 3'600'000, 24}, {"day", 86'400'000, 30}};
  const Span* by = &kSpans[0];
  std::uint64_t spans = 0;
  const std::array<std::string_view, 2> names = {"by", "spans"};
  const auto given = read_list(text, names, [&](std::size_t index, std::string_view value) {
    if (index == 1) {
      spans = number(value).value_or(0);
      if (spans == 0 || spans > kMostSpans)
        refuse_option(fmt::format("{}: not a number from 1 to {}", quoted(value), kMostSpans));
      return;
    }
    by = std::find_if(std::begin(kSpans), std::end(kSpans),
                      [value](const Span& span) { return span.name == value; });
    if (by == std::end(kSpans))
      refuse_option(fmt::format("{}: minute, hour or day", quoted(value)));
  });
  const bool has_spans = given[1];
  return {.width = by->width, .spans = has_spans ? static_cast<std::size_t>(spans) : by->usual};
}

}  // namespace carillon::server::beanstalk
