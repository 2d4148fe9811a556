// Values of options as fields of the API (setting_values.h).
#include "cli/setting_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cstdint>
#include <stdexcept>

#include "cli/arguments.h"
#include "server/api/names.h"
#include "server/text/duration.h"

namespace carillon::cli {

namespace json = boost::json;

// "100/1m": the server reads both parts. 0 ends a limit, for which null stands.
json::value parse_rate(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (text == "0") return nullptr;
  std::uint64_t jobs = 0;
  const char* const end = text.data() + std::min(slash, text.size());
  if (slash == text.npos || std::from_chars(text.data(), end, jobs).ptr != end || slash == 0)
    throw std::invalid_argument(
        fmt::format("\"{}\": 0, or a number in a duration, as 100/1m", text));
  return json::object{{"jobs", jobs}, {"per", text.substr(slash + 1)}};
}

json::value parse_limit(const std::string& text) {
  const std::uint32_t number = parse_number(text, 0, UINT32_MAX);
  return number == 0 ? json::value(nullptr) : json::value(number);
}

json::value parse_count(const std::string& text) {
  return parse_number(text, 0, UINT32_MAX);
}

json::value parse_retention(const std::string& text) {
  return server::parse_duration(text).count() == 0 ? json::value(nullptr) : json::value(text);
}

// "10s" is the same each time, "10s..1h" doubles.
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

std::string parse_group(const std::string& text) {
  if (server::is_key(text)) return text;
  throw std::invalid_argument(fmt::format("\"{}\": a group has {}", text, server::kKeyRule));
}

}  // namespace carillon::cli
