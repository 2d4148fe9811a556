// Fields: values of JSON, each checked (fields.h).
#include "server/api/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <stdexcept>

#include "server/api/names.h"
#include "server/text/duration.h"
#include "server/text/timestamp.h"

namespace carillon::server {

namespace json = boost::json;

namespace {

// Reading a JSON within these limits takes up to 3 ms, and no other client is served meanwhile.
// 4 MiB of "[],[],[]" take 110 ms.
constexpr std::size_t kMostJson = 1 << 20;

struct Parts {
  std::size_t values = 0;
  std::size_t members = 0;  // of objects
};

// Counts the parts of a JSON, up to `most` values.
Parts parts_of(std::string_view text, std::size_t most) {
  Parts parts;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size() && parts.values <= most; ++i) {
    const char c = text[i];
    if (c == '"') in_text = !in_text;
    if (in_text && c == '\\') ++i;
    if (in_text) continue;
    if (c == ',' || c == '[' || c == '{') ++parts.values;
    if (c == ':') ++parts.members;
  }
  return parts;
}

std::size_t members_of(const json::value& value) {
  std::size_t members = 0;
  if (const json::object* const object = value.if_object()) {
    members = object->size();
    for (const auto& member : *object) members += members_of(member.value());
  } else if (const json::array* const array = value.if_array()) {
    for (const json::value& each : *array) members += members_of(each);
  }
  return members;
}

std::string shown(const json::value& value) {
  std::string text = json::serialize(value);
  constexpr std::size_t kMost = 60;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

}  // namespace

void FieldFaults::throw_if_any() {
  if (faults_.empty()) return;
  std::string first = faults_.front().pointer + ": " + faults_.front().detail;
  if (faults_.size() > 1)
    first += fmt::format("; {}{} more", faults_.size() - 1, is_full() ? " or" : "");
  throw Problem(kBadField, std::move(first), std::move(faults_));
}

json::object parse_object(std::string_view text, std::size_t most_parts) {
  if (text.size() > kMostJson) {
    throw Problem(kTooLarge, fmt::format("the JSON has {} bytes; the limit is {}. A body that is "
                                         "not JSON may be larger",
                                         text.size(), kMostJson));
  }
  const Parts parts = parts_of(text, most_parts);
  if (parts.values > most_parts)
    throw Problem(kBadRequest, fmt::format("the JSON has more than {} values", most_parts));
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error) throw Problem(kBadRequest, "the body is no JSON: " + error.message());
  if (!value.is_object()) throw Problem(kBadRequest, "the body is no JSON object");
  // The last one would count, and a proxy or a program that checks the request may see the first.
  if (members_of(value) != parts.members)
    throw Problem(kBadRequest, "an object of the JSON has a name twice");
  return std::move(value.get_object());
}

const json::value* Fields::find(std::string_view name) {
  known_.insert(name);
  const json::value* const found = object_.if_contains(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string Fields::pointer(std::string_view name) const {
  std::string text = at_ + "/";
  for (const char c : name) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

std::optional<std::string_view> Fields::text(std::string_view name) {
  const json::value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string_view(value->get_string());
  fault(name, shown(*value) + ": not a text");
  return std::nullopt;
}

std::optional<std::uint64_t> Fields::number(std::string_view name, std::uint64_t least,
                                            std::uint64_t most) {
  const json::value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  json::error_code error;
  const auto number = value->to_number<std::uint64_t>(error);
  if (!error && number >= least && number <= most) return number;
  fault(name, fmt::format("{}: not a whole number from {} to {}", shown(*value), least, most));
  return std::nullopt;
}

std::optional<bool> Fields::flag(std::string_view name) {
  const json::value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  fault(name, shown(*value) + ": write true or false");
  return std::nullopt;
}

std::optional<queue::Millis> Fields::duration(std::string_view name) {
  const auto written = text(name);
  if (!written) return std::nullopt;
  try {
    return static_cast<queue::Millis>(parse_duration(*written).count());
  } catch (const std::invalid_argument& error) {
    fault(name, error.what());
    return std::nullopt;
  }
}

std::optional<queue::UtcMs> Fields::moment(std::string_view name) {
  const json::value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    const auto ms = number(name, 0, queue::kLastDue);
    if (!ms || *ms < kFirstSeconds || *ms >= kFirstMillis) return ms;
    fault(name, fmt::format("{}: seconds since 1970? The unit is milliseconds", *ms));
    return std::nullopt;
  }
  try {
    return parse_timestamp(std::string_view(value->get_string()));
  } catch (const std::invalid_argument& error) {
    fault(name, error.what());
    return std::nullopt;
  }
}

std::optional<std::size_t> Fields::choice(std::string_view name,
                                          std::initializer_list<std::string_view> of) {
  const auto written = text(name);
  if (!written) return std::nullopt;
  const auto found = std::find(of.begin(), of.end(), *written);
  if (found != of.end()) return static_cast<std::size_t>(found - of.begin());
  fault(name, fmt::format("\"{}\": write one of {}", *written, fmt::join(of, ", ")));
  return std::nullopt;
}

const json::object* Fields::object(std::string_view name) {
  const json::value* const value = find(name);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return &value->get_object();
  fault(name, shown(*value) + ": not an object");
  return nullptr;
}

const json::array* Fields::array(std::string_view name) {
  const json::value* const value = find(name);
  if (value == nullptr) return nullptr;
  if (value->is_array()) return &value->get_array();
  fault(name, shown(*value) + ": not a list");
  return nullptr;
}

std::optional<std::string> Fields::word(std::string_view name) {
  const json::value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  if (value->is_uint64() || value->is_int64()) return json::serialize(*value);
  fault(name, shown(*value) + ": neither a text nor a whole number");
  return std::nullopt;
}

bool Fields::is_null(std::string_view name) {
  known_.insert(name);
  const json::value* const found = object_.if_contains(name);
  return found != nullptr && found->is_null();
}

void Fields::finish() {
  for (const auto& member : object_) {
    if (faults_.is_full()) return;
    const std::string_view name = member.key();
    if (!known_.contains(name)) fault(name, "there is no such field");
  }
}

}  // namespace carillon::server
