// Reads options and their values (option_values.h).
#include "server/beanstalk/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>

#include "server/api/names.h"
#include "server/text/duration.h"
#include "server/text/timestamp.h"

namespace carillon::server::beanstalk {

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

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::uint32_t number_u32(std::string_view text) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const auto value = number(text);
  if (!value || *value > kMost)
    refuse_option(fmt::format("{}: not a number from 0 to {}", quoted(text), kMost));
  return static_cast<std::uint32_t>(*value);
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
  const auto ms = number(text);
  if (!ms) return parse_timestamp(text);
  if (*ms >= kFirstSeconds && *ms < kFirstMillis)
    refuse_option(fmt::format("{}: seconds since 1970? The unit is milliseconds", quoted(text)));
  return *ms;
}

}  // namespace carillon::server::beanstalk
