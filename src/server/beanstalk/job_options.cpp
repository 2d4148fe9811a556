// parse_job_options(): the table of options, and their values (job_options.h).
#include "server/beanstalk/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>

#include "carillon/require.h"
#include "server/api/job.h"
#include "server/api/names.h"
#include "server/beanstalk/command.h"
#include "server/text/duration.h"
#include "server/text/timestamp.h"
#include "server/text/whole_number.h"

namespace carillon::server::beanstalk {

namespace {

using queue::OnConflict;

std::string_view key(std::string_view text) {
  if (!is_key(text)) {
    refuse_option(fmt::format("{}: a key has {}", quoted(text), kKeyRule));
  }
  return text;
}

std::string_view attributes(std::string_view text) {
  if (text.size() > queue::kMaxAttributes)
    refuse_option(fmt::format("{} bytes; the most is {}", text.size(), queue::kMaxAttributes));
  attributes_of(text);  // throws if the text is not such an object
  return text;
}

queue::UtcMs moment_or_never(std::string_view text) {
  return text == "never" ? queue::kNeverExpires : moment(text);
}

queue::AtExpiry at_expiry(std::string_view text) {
  if (text == "drop") return queue::AtExpiry::kDrop;
  if (text == "dead") return queue::AtExpiry::kDead;
  refuse_option(fmt::format("{}: drop or dead", quoted(text)));
}

OnConflict on_conflict(std::string_view text) {
  if (text == "reject") return OnConflict::kReject;
  if (text == "ignore") return OnConflict::kIgnore;
  if (text == "replace") return OnConflict::kReplace;
  if (text == "keep-due") return OnConflict::kKeepDue;
  if (text == "debounce") return OnConflict::kDebounce;
  refuse_option(fmt::format("{}: reject, ignore, replace, keep-due or debounce", quoted(text)));
}

queue::Millis one_backoff(std::string_view text) {
  const queue::Millis value = duration(text);
  if (value <= queue::kLastDue) return value;
  refuse_option(fmt::format("{}: the longest is {}ms", quoted(text), queue::kLastDue));
}

// A duration, or the first and the longest one: 1s..1h.
JobOptions::Backoff backoff(std::string_view text) {
  constexpr std::string_view kTo = "..";
  const std::size_t to = text.find(kTo);
  if (to == std::string_view::npos) return {.first = one_backoff(text), .longest = 0};
  const JobOptions::Backoff backoff{.first = one_backoff(text.substr(0, to)),
                                    .longest = one_backoff(text.substr(to + kTo.size()))};
  if (backoff.first == 0 && backoff.longest > 0)
    refuse_option(fmt::format(
        "{}: twice 0 is 0, so the first is at least 1ms; 0 alone is no back-off", quoted(text)));
  if (backoff.longest < backoff.first)
    refuse_option(fmt::format("{}: the longest is shorter than the first", quoted(text)));
  return backoff;
}

std::uint32_t percent(std::string_view text) {
  constexpr std::uint32_t kMost = 100;
  const auto value = text.ends_with('%')
                         ? whole_number<std::uint32_t>(text.substr(0, text.size() - 1))
                         : std::nullopt;
  if (!value || *value > kMost) refuse_option(fmt::format("{}: not 0% to 100%", quoted(text)));
  return *value;
}

bool lost_fails(std::string_view text) {
  if (text == "fails") return true;
  if (text == "returns") return false;
  refuse_option(fmt::format("{}: fails or returns", quoted(text)));
}

bool ask(std::string_view text) {
  if (text == "ask") return true;
  if (text == "refuse") return false;
  refuse_option(fmt::format("{}: refuse or ask", quoted(text)));
}

struct Option {
  std::string_view name;
  unsigned of;  // bits of OptionsOf
  bool (*is_set)(const JobOptions&);
  void (*set)(JobOptions&, std::string_view);
};

template <auto member, auto read>
constexpr Option option(std::string_view name, unsigned of) {
  return {name, of, [](const JobOptions& options) { return (options.*member).has_value(); },
          [](JobOptions& options, std::string_view text) { options.*member = read(text); }};
}

constexpr unsigned bit(OptionsOf of) {
  return static_cast<unsigned>(of);
}
constexpr unsigned kPut = bit(OptionsOf::kPut);
constexpr unsigned kPatch = bit(OptionsOf::kPatch);
constexpr unsigned kFail = bit(OptionsOf::kFail);
constexpr unsigned kCancel = bit(OptionsOf::kCancel);
constexpr unsigned kBatch = bit(OptionsOf::kBatch);
constexpr unsigned kReserve = bit(OptionsOf::kReserve);
constexpr unsigned kRelease = bit(OptionsOf::kRelease);

constexpr std::array kOptions = {
    option<&JobOptions::priority, number_u32>("pri", kPut | kPatch | kFail | kRelease),
    option<&JobOptions::delay, duration>("delay", kPut | kPatch | kFail | kRelease),
    option<&JobOptions::due, moment>("due", kPut | kPatch),
    option<&JobOptions::ttr, ttr>("ttr", kPut | kPatch),
    option<&JobOptions::spread, duration>("spread", kPut),
    option<&JobOptions::expires_in, duration>("expires-in", kPut | kPatch),
    option<&JobOptions::expires_at, moment_or_never>("expires-at", kPut | kPatch),
    option<&JobOptions::at_expiry, at_expiry>("at-expiry", kPut | kPatch),
    Option{"key", kPut, [](const JobOptions& options) { return !options.key.empty(); },
           [](JobOptions& options, std::string_view text) { options.key = key(text); }},
    option<&JobOptions::on_conflict, on_conflict>("on-conflict", kPut),
    option<&JobOptions::key_window, duration>("key-window", kPut),
    Option{"group", kPut, [](const JobOptions& options) { return !options.group.empty(); },
           [](JobOptions& options, std::string_view text) { options.group = group(text); }},
    Option{
        "attributes", kPut | kPatch,
        [](const JobOptions& options) { return !options.attributes.empty(); },
        [](JobOptions& options, std::string_view text) { options.attributes = attributes(text); }},
    option<&JobOptions::body, number_u32>("body", kPatch),
    option<&JobOptions::max_attempts, number_u32>("max-attempts", kPut | kFail),
    option<&JobOptions::backoff, backoff>("backoff", kPut),
    option<&JobOptions::jitter, percent>("jitter", kPut),
    option<&JobOptions::lost_fails, lost_fails>("lost", kPut),
    option<&JobOptions::buried, yes>("buried", kPut),
    option<&JobOptions::ask, ask>("reserved", kCancel),
    Option{"once", kBatch, [](const JobOptions& options) { return !options.once.empty(); },
           [](JobOptions& options, std::string_view text) { options.once = key(text); }},
    option<&JobOptions::window, duration>("window", kBatch),
    option<&JobOptions::timeout, duration>("timeout", kReserve),
};

// A batch may name, for all its jobs, whatever a job may name, except the key.
bool is_of(const Option& option, OptionsOf of) {
  if ((option.of & bit(of)) != 0) return true;
  return of == OptionsOf::kBatch && (option.of & kPut) != 0 && option.name != "key";
}

const Option* find_option(std::string_view name, OptionsOf of) {
  return std::find_if(kOptions.begin(), kOptions.end(), [name, of](const Option& option) {
    return option.name == name && is_of(option, of);
  });
}

void check_expiry(const JobOptions& options, OptionsOf of) {
  if (options.expires_in && options.expires_at)
    refuse_option("expires-at: does not go with `expires-in`");
  if (options.expires_in == 0) refuse_option("expires-in: 0 is not allowed; `expires-at`=never is");
  if (!options.at_expiry || options.expires_in || options.expires_at) return;
  if (of == OptionsOf::kPut) refuse_option("at-expiry: needs `expires-in` or `expires-at`");
}

// Throws if the options do not go together.
void check(const JobOptions& options, OptionsOf of) {
  if (options.delay && options.due) refuse_option("due: does not go with `delay`");
  if (options.window && options.once.empty()) refuse_option("window: needs `once`");
  check_expiry(options, of);
  const bool has_key = !options.key.empty() || of == OptionsOf::kBatch;
  if (options.on_conflict && !has_key) refuse_option("on-conflict: needs `key`");
  if (options.key_window && !has_key) refuse_option("key-window: needs `key`");
}

// Returns the names of all options of the command, separated by spaces.
std::string option_names(OptionsOf of) {
  std::string names;
  for (const Option& option : kOptions) {
    if (is_of(option, of)) names += (names.empty() ? "" : " ") + std::string(option.name);
  }
  return names;
}

// Reads one option. Returns false if the command has no such option.
bool read_option(const OptionText& part, OptionsOf of, JobOptions& options) {
  const std::string_view name = part.name;
  const auto* const found = find_option(name, of);
  if (found == kOptions.end()) return false;
  if (!part.value) refuse_option(fmt::format("{}: {}=VALUE", name, name));
  if (found->is_set(options)) refuse_option(fmt::format("{}: comes twice", name));
  try {
    found->set(options, *part.value);
  } catch (const std::invalid_argument& error) {
    refuse_option(fmt::format("{}: {}", name, printable(error.what())));
  }
  return true;
}

queue::RetryPolicy retry_of(const JobOptions& options) {
  queue::RetryPolicy policy{.max_attempts = options.max_attempts.value_or(0),
                            .jitter = options.jitter.value_or(0),
                            .lost_fails = options.lost_fails.value_or(false)};
  if (options.backoff) {
    policy.backoff = options.backoff->first;
    policy.backoff_max = options.backoff->longest;
  }
  const bool names_one =
      options.max_attempts || options.backoff || options.jitter || options.lost_fails;
  policy.counts_empty = names_one && policy == queue::RetryPolicy();
  return policy;
}

}  // namespace

queue::PutOrder put_order(const JobOptions& options) {
  return {.priority = options.priority.value_or(kUsualPriority),
          .due_in = options.delay.value_or(0),
          .due_at = options.due,
          .ttr = options.ttr.value_or(queue::PutOrder{}.ttr),
          .key = options.key,
          .on_conflict = options.on_conflict.value_or(OnConflict::kReject),
          .key_window = options.key_window.value_or(0),
          .group = options.group,
          .retry = retry_of(options),
          .attributes = options.attributes,
          .expires_in = options.expires_in.value_or(0),
          .expires_at = options.expires_at,
          .at_expiry = options.at_expiry.value_or(queue::AtExpiry::kDrop),
          .spread = options.spread.value_or(0),
          .buried = options.buried.value_or(false)};
}

void set_defaults(std::string_view defaults, JobOptions& options) {
  const bool has_due = options.delay || options.due;
  const bool expires = options.expires_in || options.expires_at;
  while (const auto part = take_option(defaults)) {
    CARILLON_REQUIRE_DEBUG(find_option(part->name, OptionsOf::kBatch) != kOptions.end(),
                           part->name);
    const auto* const found = find_option(part->name, OptionsOf::kPut);
    if (found == kOptions.end() || found->is_set(options)) continue;
    if (has_due && (part->name == "delay" || part->name == "due")) continue;
    if (expires && (part->name == "expires-in" || part->name == "expires-at")) continue;
    found->set(options, *part->value);
  }
}

JobOptions parse_job_options(std::string_view text, OptionsOf of) {
  JobOptions options;
  while (const auto option = take_option(text)) {
    if (!read_option(*option, of, options))
      refuse_option(
          fmt::format("{}: no such option; there are {}", quoted(option->name), option_names(of)));
  }
  check(options, of);
  return options;
}

// --- Reads options and their values.

std::optional<OptionText> take_option(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (text.empty()) return std::nullopt;
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::size_t sign = text.substr(0, end).find('=');
  OptionText option{.name = text.substr(0, std::min(sign, end)), .value = {}};
  if (sign == std::string_view::npos) {
    text.remove_prefix(end);
    return option;
  }
  text.remove_prefix(sign + 1);
  if (!text.starts_with('"')) {
    option.value = text.substr(0, text.find(' '));
    text.remove_prefix(option.value->size());
    return option;
  }
  const std::size_t quote = text.find('"', 1);
  if (quote == std::string_view::npos)
    refuse_option(fmt::format("{}: the quote at its end is missing", quoted(option.name)));
  option.value = text.substr(1, quote - 1);
  text.remove_prefix(quote + 1);
  if (!text.empty() && text.front() != ' ')
    refuse_option(fmt::format("{}: a space must follow the quote at its end", quoted(option.name)));
  return option;
}

void refuse_option(const std::string& why) {
  throw std::invalid_argument(why);
}

// Returns the text, shortened, with a ? for each byte that is not printable.
std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown(text.substr(0, kShown));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return fmt::format("\"{}{}\"", shown, text.size() > kShown ? "..." : "");
}

// Returns a text that fits into one line of a reply.
std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 500;
  std::string line(text.substr(0, kMost));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

std::uint32_t number_u32(std::string_view text) {
  const auto value = whole_number<std::uint32_t>(text);
  if (!value)
    refuse_option(fmt::format("{}: not a number from 0 to {}", quoted(text),
                              std::numeric_limits<std::uint32_t>::max()));
  return *value;
}

bool yes(std::string_view text) {
  if (text == "yes") return true;
  if (text == "no") return false;
  refuse_option(fmt::format("{}: yes or no", quoted(text)));
}

queue::Millis duration(std::string_view text) {
  return static_cast<queue::Millis>(parse_duration(text).count());
}

std::string_view group(std::string_view text) {
  if (!is_key(text)) {
    refuse_option(fmt::format("{}: a group has {}", quoted(text), kKeyRule));
  }
  return text;
}

queue::Millis ttr(std::string_view text) {
  const queue::Millis value = duration(text);
  if (value < queue::kMinTtr || value > queue::kMaxTtr)
    refuse_option(fmt::format("{}: a ttr is 1s to {}s", quoted(text), queue::kMaxTtr / 1'000));
  return value;
}

// A client that sends seconds since 1970 instead of ms means a moment in January 1970 (command.h).
queue::UtcMs moment(std::string_view text) {
  const auto ms = whole_number<queue::UtcMs>(text);
  if (!ms) return parse_timestamp(text);
  if (*ms >= kFirstSeconds && *ms < kFirstMillis)
    refuse_option(fmt::format("{}: seconds since 1970? The unit is milliseconds", quoted(text)));
  return *ms;
}

}  // namespace carillon::server::beanstalk
