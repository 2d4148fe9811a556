// Fields: their values, read and written by type (field.h).
#include "server/api/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <stdexcept>

#include "server/api/names.h"
#include "server/text/duration.h"
#include "server/text/json_text.h"
#include "server/text/json_value.h"
#include "server/text/timestamp.h"
#include "server/text/whole_number.h"

namespace carillon::server {

namespace json = boost::json;

namespace {

std::string shown_value(const json::value& value) {
  std::string text = json_text(value);
  constexpr std::size_t kMost = 60;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// Returns the text. Notes a fault and returns null if the value is no text.
const json::string* text_of(Reader& reader, const Field& field, const json::value& value) {
  if (const json::string* const text = value.if_string()) return text;
  reader.fault(field.name, shown_value(value) + ": not a text");
  return nullptr;
}

// Returns the value if it is a whole number that fits, or none.
std::optional<std::uint64_t> number_of(const json::value& value) {
  json::error_code error;
  const auto number = value.to_number<std::uint64_t>(error);
  return error ? std::nullopt : std::optional(number);
}

std::string range_of(const Rule& rule, std::string_view unit) {
  if (rule.most == UINT64_MAX) return fmt::format("at least {}{} is", rule.least, unit);
  return fmt::format("{} to {}{} are", rule.least, rule.most, unit);
}

bool is_in_range(Reader& reader, const Field& field, std::uint64_t ms) {
  if (ms >= field.rule.least && ms <= field.rule.most) return true;
  reader.fault(field.name, fmt::format("{} ms: {} allowed", ms, range_of(field.rule, " ms")));
  return false;
}

}  // namespace

const Form kTubeForm{
    is_tube_name,
    "not the name of a tube: 1 to 200 letters, digits and any of -+/;.$_(), and no - in front"};
const Form kNameForm{
    is_tube_name, "not a name: 1 to 200 letters, digits and any of -+/;.$_(), and no - in front"};
const Form kKeyForm{is_key, kKeyRule};
const Form kTypeForm{is_content_type, "not a content type: printable ASCII, such as text/plain"};

// --- Reader

std::string Reader::pointer_part(std::string_view field) {
  std::string part = "/";
  for (const char c : field) part += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return part;
}

void Reader::fault_at(std::string pointer, std::string detail) {
  if (!is_full()) faults_.push_back({std::move(pointer), std::move(detail)});
}

void Reader::fault(std::string_view field, std::string detail) {
  const bool is_query = source_ == Source::kQuery;
  fault_at(is_query ? at_ + std::string(field) : at_ + pointer_part(field), std::move(detail));
}

void Reader::throw_if_any() const {
  if (faults_.empty()) return;
  std::string first = faults_.front().pointer + ": " + faults_.front().detail;
  if (faults_.size() > 1)
    first += fmt::format("; {}{} more", faults_.size() - 1, is_full() ? " or" : "");
  throw Problem(kBadField, std::move(first), faults_);
}

// --- Objects

namespace {

// Returns true if there was a value to read.
bool read_one(Reader& reader, const Field& field, const json::value* value, void* into) {
  if (value == nullptr) return false;
  if (!value->is_null() || field.is_patch) {
    field.read(reader, field, *value, into);
    return true;
  }
  if (!reader.refuses_null()) return false;
  reader.fault(field.name, "null: it cannot be taken away; what is left out stays as it is");
  return true;
}

void fault_unknown(Reader& reader, const Shape& shape, const json::object& from,
                   const std::function<bool(const Field&)>& is_elsewhere) {
  for (const auto& member : from) {
    if (reader.is_full()) return;
    const std::string_view name = member.key();
    const bool is_known =
        std::any_of(shape.fields.begin(), shape.fields.end(), [&](const Field& field) {
          const bool is_it = name == field.name ||
                             (field.has_base64() && name.ends_with(kBase64Suffix) &&
                              name.substr(0, name.size() - kBase64Suffix.size()) == field.name);
          return is_it && !(is_elsewhere && is_elsewhere(field));
        });
    if (!is_known) reader.fault(name, "there is no such field");
  }
}

}  // namespace

// Each put is read here, so unknown members are searched only if there are more than known ones.
void read_fields(Reader& reader, const Shape& shape, const json::object& from, void* into,
                 const std::function<bool(const Field&)>& is_elsewhere) {
  std::size_t known = 0;  // members of the object
  for (const Field& field : shape.fields) {
    const json::value* const value = from.if_contains(field.name);
    std::string base64;
    if (field.has_base64()) base64.append(field.name).append(kBase64Suffix);
    const json::value* const other = base64.empty() ? nullptr : from.if_contains(base64);
    if (value == nullptr && other == nullptr && !field.rule.needed) continue;
    if (is_elsewhere && is_elsewhere(field)) continue;
    known += (value != nullptr ? 1U : 0U) + (other != nullptr ? 1U : 0U);
    bool is_there = read_one(reader, field, value, into);
    if (is_there && other != nullptr) {
      reader.fault(base64, fmt::format("there is a {} already", field.name));
    } else if (other != nullptr) {
      Field as_base64 = field;
      as_base64.name = base64;
      is_there = read_one(reader, as_base64, other, into);
    }
    if (!is_there && field.rule.needed)
      reader.fault(field.name, fmt::format("is needed: {}", field.help));
  }
  if (known < from.size() && !reader.passes_over_unknown())
    fault_unknown(reader, shape, from, is_elsewhere);
}

json::object write_fields(const Shape& shape, const void* from) {
  json::object to;
  for (const Field& field : shape.fields) field.write(field, from, to);
  return to;
}

// --- Values

namespace {

// Returns true if the field may have these bytes. `shown`: how an error shows them.
bool may_be(Reader& reader, const Field& field, std::string_view bytes, std::string_view shown) {
  if (field.rule.form != nullptr && !field.rule.form->is_good(bytes)) {
    reader.fault(field.name, fmt::format("\"{}\": {}", shown, field.rule.form->fault));
    return false;
  }
  if (bytes.size() < field.rule.least || bytes.size() > field.rule.most) {
    reader.fault(field.name, fmt::format("it has {} bytes: {} allowed", bytes.size(),
                                         range_of(field.rule, "")));
    return false;
  }
  return true;
}

}  // namespace

bool read_value(Reader& reader, const Field& field, const json::value& value, std::string& into) {
  const json::string* const text = text_of(reader, field, value);
  if (text == nullptr || !may_be(reader, field, *text, *text)) return false;
  into = std::string_view(*text);
  return true;
}

bool read_value(Reader& reader, const Field& field, const json::value& value, Bytes& into) {
  if (!field.name.ends_with(kBase64Suffix)) return read_value(reader, field, value, into.bytes);
  const json::string* const text = text_of(reader, field, value);
  if (text == nullptr) return false;
  std::optional<std::string> bytes = from_base64(std::string_view(*text));
  if (!bytes) {
    reader.fault(field.name, "not Base64 (RFC 4648, section 4, with padding)");
    return false;
  }
  if (!may_be(reader, field, *bytes, *text)) return false;
  into.bytes = *std::move(bytes);
  return true;
}

bool read_value(Reader& reader, const Field& field, const json::value& value, JobBody& into) {
  Bytes bytes;
  into.is_json = !value.is_string() && !field.name.ends_with(kBase64Suffix);
  if (into.is_json) {
    into.bytes = json_text(value);
    return may_be(reader, field, into.bytes, into.bytes);
  }
  if (!read_value(reader, field, value, bytes)) return false;
  into.bytes = std::move(bytes.bytes);
  return true;
}

bool read_value(Reader& reader, const Field& field, const json::value& value, bool& into) {
  const json::string* const text = reader.has_texts() ? value.if_string() : nullptr;
  const bool is_word = text != nullptr && (*text == "true" || *text == "false");
  if (value.is_bool() || is_word) {
    into = is_word ? *text == "true" : value.get_bool();
    return true;
  }
  reader.fault(field.name, shown_value(value) + ": write true or false");
  return false;
}

bool read_value(Reader& reader, const Field& field, const json::value& value, double& into) {
  json::error_code error;
  into = value.to_number<double>(error);
  if (error) reader.fault(field.name, shown_value(value) + ": not a number");
  return !error;
}

bool read_value(Reader& reader, const Field& field, const json::value& value, Duration& into) {
  const json::string* const text = text_of(reader, field, value);
  if (text == nullptr) return false;
  try {
    into.ms = static_cast<std::uint64_t>(parse_duration(std::string_view(*text)).count());
  } catch (const std::invalid_argument& error) {
    reader.fault(field.name, error.what());
    return false;
  }
  return is_in_range(reader, field, into.ms);
}

bool read_value(Reader& reader, const Field& field, const json::value& value, Moment& into) {
  if (const json::string* const text = value.if_string()) {
    try {
      into.at = parse_timestamp(std::string_view(*text));
      return true;
    } catch (const std::invalid_argument& error) {
      const bool is_number = reader.has_texts() && whole_number<std::uint64_t>(*text);
      if (!is_number) return reader.fault(field.name, error.what()), false;
    }
  }
  Field in_ms = field;
  in_ms.rule = {.most = queue::kLastDue};
  if (!read_number(reader, in_ms, value, into.at)) return false;
  if (into.at < kFirstSeconds || into.at >= kFirstMillis) return true;
  reader.fault(field.name,
               fmt::format("{}: seconds since 1970? The unit is milliseconds", into.at));
  return false;
}

bool read_value(Reader& reader, const Field& field, const json::value& value, Json& into) {
  if (!value.is_object()) {
    reader.fault(field.name, shown_value(value) + ": not an object");
    return false;
  }
  into.object = value.get_object();
  return true;
}

bool read_number(Reader& reader, const Field& field, const json::value& value,
                 std::uint64_t& into) {
  const json::string* const text = reader.has_texts() ? value.if_string() : nullptr;
  const auto number = text != nullptr ? whole_number<std::uint64_t>(*text) : number_of(value);
  if (number && *number >= field.rule.least && *number <= field.rule.most) {
    into = *number;
    return true;
  }
  reader.fault(field.name, fmt::format("{}: not a whole number from {} to {}", shown_value(value),
                                       field.rule.least, field.rule.most));
  return false;
}

bool read_word(Reader& reader, const Field& field, const json::value& value, std::size_t& into) {
  const json::string* const text = text_of(reader, field, value);
  if (text == nullptr) return false;
  const auto found = std::find(field.words.begin(), field.words.end(), std::string_view(*text));
  if (found == field.words.end()) {
    reader.fault(field.name, fmt::format("\"{}\": write one of {}", std::string_view(*text),
                                         fmt::join(field.words, ", ")));
    return false;
  }
  into = static_cast<std::size_t>(found - field.words.begin());
  return true;
}

bool read_object(Reader& reader, const Field& field, const json::value& value, void* into) {
  if (!value.is_object()) {
    reader.fault(field.name, shown_value(value) + ": not an object");
    return false;
  }
  const std::size_t before = reader.faults().size();
  reader.within(field.name, [&] { read_fields(reader, *field.shape, value.get_object(), into); });
  return reader.faults().size() == before;
}

const json::array* read_list(Reader& reader, const Field& field, const json::value& value) {
  const json::array* const list = value.if_array();
  if (list == nullptr) {
    reader.fault(field.name, shown_value(value) + ": not a list");
  } else if (list->size() < field.rule.least || list->size() > field.rule.most) {
    reader.fault(field.name,
                 fmt::format("{} of them: {} allowed", list->size(), range_of(field.rule, "")));
    return nullptr;
  }
  return list;
}

json::value to_json(const std::string& text) {
  return json::value(to_utf8(text));
}

json::value to_json(Duration duration) {
  return json::value(shown_duration(duration.ms));
}

json::value to_json(Moment moment) {
  return json::value(format_timestamp(moment.at));
}

void write_bytes(const Field& field, std::string_view bytes, json::object& to) {
  if (is_utf8(bytes)) {
    to[field.name] = bytes;
  } else {
    to[fmt::format("{}{}", field.name, kBase64Suffix)] = to_base64(bytes);
  }
}

}  // namespace carillon::server
