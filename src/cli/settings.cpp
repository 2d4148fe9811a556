// Values of options as fields of the API (settings.h).
#include "cli/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <stdexcept>

#include "cli/arguments.h"
#include "server/text/duration.h"

namespace carillon::cli {

namespace json = boost::json;

namespace {

constexpr Setting kRetrySettings[] = {
    {"--max-attempts", "/max_attempts", "N", "A job is dead after N failed attempts (0: never)",
     parse_count},
    {"--backoff", "/backoff", "DURATION",
     "How long a failed job waits: 30s, or 1s..1h, which doubles", parse_backoff},
    {"--jitter", "/backoff/jitter", "PERCENT", "Up to this part is added to that: 20%",
     parse_jitter},
    {"--lost", "/lost_fails", "HOW", "A lost connection of a worker: fails or returns (returns)",
     parse_lost}};

void add_setting(CLI::App& command, Asked& asked, const Setting& setting,
                 const std::string& pointer) {
  const std::string name = setting.option;
  const auto set = [&asked, name, pointer, parse = setting.parse](const std::string& text) {
    asked.set(pointer, parse_argument(name, parse, text), name);
  };
  add_text(command, name + " " + setting.type, set, setting.help);
}

}  // namespace

json::value parse_text(const std::string& text) {
  return json::value(text);
}

json::value parse_count(const std::string& text) {
  return parse_number(text, 0, UINT32_MAX);
}

json::value parse_limit(const std::string& text) {
  const std::uint32_t number = parse_number(text, 0, UINT32_MAX);
  return number == 0 ? json::value(nullptr) : json::value(number);
}

json::value parse_rate(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (text == "0") return nullptr;
  const auto jobs = whole_number<std::uint64_t>(std::string_view(text).substr(0, slash));
  if (slash == text.npos || !jobs)
    throw std::invalid_argument(
        fmt::format("\"{}\": 0, or a number in a duration, as 100/1m", text));
  return json::object{{"jobs", *jobs}, {"per", text.substr(slash + 1)}};
}

json::value parse_retention(const std::string& text) {
  return server::parse_duration(text).count() == 0 ? json::value(nullptr) : json::value(text);
}

json::value parse_backoff(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos) return json::object{{"type", "fixed"}, {"initial", text}};
  return json::object{
      {"type", "exponential"}, {"initial", text.substr(0, dots)}, {"max", text.substr(dots + 2)}};
}

json::value parse_jitter(const std::string& text) {
  const bool has_sign = text.ends_with('%');
  return parse_number(text.substr(0, text.size() - (has_sign ? 1 : 0)), 0, 100);
}

json::value parse_lost(const std::string& text) {
  if (text == "fails" || text == "returns") return text == "fails";
  throw std::invalid_argument(fmt::format("\"{}\": write fails or returns", text));
}

void add_settings(CLI::App& command, Asked& asked, std::span<const Setting> settings) {
  for (const Setting& setting : settings) add_setting(command, asked, setting, setting.pointer);
}

void add_retry_settings(CLI::App& command, Asked& asked, const std::string& at) {
  for (const Setting& setting : kRetrySettings)
    add_setting(command, asked, setting, at + setting.pointer);
}

}  // namespace carillon::cli
