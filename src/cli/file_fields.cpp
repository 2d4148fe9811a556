// The table of fields (file_fields.h).
#include "cli/file_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <stdexcept>
#include <utility>

#include "cli/arguments.h"
#include "cli/json_fields.h"
#include "server/text/duration.h"
#include "server/text/json_text.h"
#include "server/text/whole_number.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

// --- Values, from the API to a file. Null is left out.

json::value in_ms(const json::value& duration) {
  const auto ms = server::parse_duration(std::string_view(duration.as_string()));
  return json::value(fmt::format("{}ms", ms.count()));
}

json::value backoff_of(const json::value& backoff) {
  const json::value* const longest = backoff.as_object().if_contains("max");
  std::string text = text_of(in_ms(backoff.at("initial")));
  if (longest != nullptr) text += ".." + text_of(in_ms(*longest));
  return json::value(text);
}

json::value rate_of(const json::value& rate) {
  return json::value(text_of(rate.at("jobs")) + "/" + text_of(in_ms(rate.at("per"))));
}

json::value catch_up_of(const json::value& schedule) {
  const json::value* const window = schedule.as_object().if_contains("catch_up_window");
  if (window == nullptr) return schedule.at("catch_up");
  return json::value("all:" + text_of(in_ms(*window)));
}

// All that a job carries, also what the API shows beside "attributes".
json::value attributes_of(const json::value& job) {
  json::object kept;
  const json::object& shown = job.as_object();
  if (const json::value* const others = shown.if_contains("attributes")) kept = others->as_object();
  for (const char* const name : {"content_type", "metadata", "traceparent", "tracestate"})
    if (const json::value* const value = shown.if_contains(name)) kept[name] = *value;
  return kept.empty() ? json::value() : json::value(std::move(kept));
}

// --- From a file to the API.

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
  const auto jobs = server::whole_number<std::uint64_t>(std::string_view(text).substr(0, slash));
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

json::value catch_up_from(const std::string& text) {
  const std::size_t colon = text.find(':');
  if ((text.substr(0, colon) == "all") != (colon != text.npos)) {
    throw std::invalid_argument(
        fmt::format("\"{}\": none, last, or all: and how far back, as all:1h", text));
  }
  json::object fields{{"catch_up", text.substr(0, colon)}};
  if (colon != text.npos) fields["catch_up_window"] = text.substr(colon + 1);
  return fields;
}

// `yes` is the word for true.
json::value flag_from(const std::string& text, std::string_view yes, std::string_view no) {
  if (text == yes || text == no) return text == yes;
  throw std::invalid_argument(fmt::format("\"{}\": {} or {}", text, yes, no));
}

// --- The table.

struct Form {
  json::value (*to_file)(const json::value&) = nullptr;    // null: as it is
  json::value (*from_text)(const std::string&) = nullptr;  // null: as it is
  bool is_bytes = false;  // NAME_base64 stands for it if it is not UTF-8
};
constexpr Form kAsItIs;
constexpr Form kBytes{.is_bytes = true};
constexpr Form kSpan{in_ms, nullptr};
constexpr Form kCount{nullptr, parse_count};
constexpr Form kPriority{nullptr,
                         [](const std::string& t) { return json::value(parse_priority(t)); }};
constexpr Form kLimit{nullptr, parse_limit};
constexpr Form kRate{rate_of, parse_rate};
constexpr Form kRetention{in_ms, parse_retention};
constexpr Form kBackoff{backoff_of, parse_backoff};
constexpr Form kJitter{[](const json::value& v) { return json::value(text_of(v) + "%"); },
                       parse_jitter};
constexpr Form kLost{
    [](const json::value& v) { return json::value(v.as_bool() ? "fails" : "returns"); },
    parse_lost};
constexpr Form kPuts{
    [](const json::value& v) { return v.as_bool() ? json::value("refused") : json::value(); },
    [](const std::string& text) { return flag_from(text, "refused", "taken"); }};
constexpr Form kPaused{
    [](const json::value& v) { return v.as_bool() ? json::value("yes") : json::value(); },
    [](const std::string& text) { return flag_from(text, "yes", "no"); }};
constexpr Form kCatchUp{catch_up_of, catch_up_from};
constexpr Form kAttributes{attributes_of, nullptr};
constexpr Form kState{[](const json::value& v) { return v == "dead" ? json::value("buried") : v; },
                      nullptr};
constexpr Form kUnlessZero{
    [](const json::value& v) { return v.to_number<std::uint64_t>() > 0 ? v : json::value(); },
    nullptr};

constexpr unsigned bit(FileObject of) {
  return static_cast<unsigned>(of);
}
constexpr unsigned kJob = bit(FileObject::kJob);
constexpr unsigned kTube = bit(FileObject::kTube);
constexpr unsigned kGroup = bit(FileObject::kGroup);
constexpr unsigned kPutJob = bit(FileObject::kScheduledJob);
constexpr unsigned kSchedule = bit(FileObject::kSchedule);

struct FileField {
  unsigned of;
  std::string_view name;     // in files
  std::string_view pointer;  // in the API; empty: the object itself
  Form form = kAsItIs;
};

constexpr std::array kFields = {
    FileField{kJob, "id", "/id"},
    FileField{kJob | kGroup | kPutJob, "tube", "/tube"},
    FileField{kJob, "state", "/state", kState},
    FileField{kJob, "due", "/due"},
    FileField{kJob | kPutJob, "pri", "/priority", kPriority},
    FileField{kJob | kPutJob, "ttr", "/ttr", kSpan},
    FileField{kJob, "created", "/created"},
    FileField{kJob | kPutJob, "group", "/group", kBytes},
    FileField{kGroup, "group", "/name", kBytes},
    FileField{kGroup, "ready", "/jobs/ready"},
    FileField{kGroup, "reserved", "/jobs/reserved"},
    FileField{kGroup, "delayed", "/jobs/delayed"},
    FileField{kGroup, "buried", "/jobs/buried"},
    FileField{kGroup, "weight", "/weight", kCount},
    FileField{kJob, "key", "/key", kBytes},
    FileField{kJob, "key_window", "/key_window", kSpan},
    FileField{kJob | kTube | kPutJob, "max_attempts", "/retry/max_attempts", kCount},
    FileField{kJob | kTube | kPutJob, "backoff", "/retry/backoff", kBackoff},
    FileField{kJob | kTube | kPutJob, "jitter", "/retry/backoff/jitter", kJitter},
    FileField{kJob | kTube | kPutJob, "lost", "/retry/lost_fails", kLost},
    FileField{kTube | kGroup, "max_running", "/limits/max_running", kLimit},
    FileField{kTube | kGroup, "rate", "/limits/rate", kRate},
    FileField{kTube | kGroup, "burst", "/limits/rate/burst", kCount},
    FileField{kTube, "put_rate", "/limits/put_rate", kRate},
    FileField{kTube, "put_burst", "/limits/put_rate/burst", kCount},
    FileField{kTube, "retention", "/retention", kRetention},
    FileField{kTube, "puts", "/draining", kPuts},
    FileField{kJob, "attempts", "/failed_attempts", kUnlessZero},
    FileField{kJob, "dead", "/died"},
    FileField{kJob, "cancel_asked", "/cancel_requested"},
    FileField{kJob | kPutJob, "attributes", "", kAttributes},
    FileField{kJob, "expires_at", "/expires_at"},
    FileField{kPutJob, "expires_in", "/expires_in", kSpan},
    FileField{kJob | kPutJob, "at_expiry", "/at_expiry"},
    FileField{kJob, "reserves", "/reserves"},
    FileField{kJob, "timeouts", "/timed_out"},
    FileField{kJob, "releases", "/releases"},
    FileField{kJob, "buries", "/buries"},
    FileField{kJob, "kicks", "/kicks"},
    FileField{kJob, "worker", "/worker", kBytes},
    FileField{kJob, "body_bytes", "/body_bytes"},
    FileField{kJob | kPutJob, "body", "/body", kBytes},
    FileField{kSchedule, "name", "/name"},
    FileField{kSchedule, "every", "/every", kSpan},
    FileField{kSchedule, "start", "/start"},
    FileField{kSchedule, "cron", "/cron"},
    FileField{kSchedule, "zone", "/time_zone"},
    FileField{kSchedule, "gap", "/gap"},
    FileField{kSchedule, "catch_up", "", kCatchUp},
    FileField{kSchedule, "overlap", "/overlap"},
    FileField{kSchedule, "spread", "/spread", kSpan},
    FileField{kSchedule, "paused", "/paused", kPaused},
};

const FileField* field_named(unsigned of, std::string_view name) {
  const auto* const found = std::find_if(
      kFields.begin(), kFields.end(),
      [&](const FileField& field) { return (field.of & of) != 0 && field.name == name; });
  return found == kFields.end() ? nullptr : found;
}

// Merges objects: parts of one, such as a rate and its burst, come one after the other.
void put_at(json::object& into, std::string_view pointer, const json::value& value) {
  if (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view name = pointer.substr(0, pointer.find('/'));
    json::value& at = into[name];
    pointer.remove_prefix(name.size());
    if (!pointer.empty() || (value.is_object() && at.is_object())) {
      if (!at.is_object()) at.emplace_object();
      return put_at(at.get_object(), pointer, value);
    }
    at = value;
    return;
  }
  for (const auto& [name, part] : value.as_object()) into[name] = part;
}

json::value value_from(const FileField& field, const json::value& value) try {
  return field.form.from_text == nullptr ? value : field.form.from_text(text_of(value));
} catch (const std::invalid_argument& error) {
  throw std::invalid_argument(fmt::format("{}: {}", field.name, error.what()));
}

// Returns the kinds of fields that an object of a file may have. A schedule has those of its job,
// too.
unsigned all_of(FileObject of) {
  return of == FileObject::kSchedule ? kSchedule | kPutJob : bit(of);
}

// The pointer in a request.
std::string pointer_of(FileObject of, const FileField& field) {
  const bool is_of_job = of == FileObject::kSchedule && (field.of & kPutJob) != 0;
  return fmt::format("{}{}", is_of_job ? "/job" : "",
                     field.name == "attributes" ? "/attributes" : field.pointer);
}

[[noreturn]] void refuse_name(unsigned of, std::string_view name) {
  std::string names;
  for (const FileField& field : kFields)
    if ((field.of & of) != 0) names += fmt::format(" {}", field.name);
  throw std::invalid_argument(fmt::format("\"{}\": no such option; there are{}", name, names));
}

}  // namespace

json::object file_fields(FileObject of, const json::value& shown) {
  json::object line;
  json::error_code ignored;
  for (const FileField& field : kFields) {
    if ((field.of & bit(of)) == 0) continue;
    std::string_view end;
    const json::value* value = shown.find_pointer(field.pointer, ignored);
    if (value == nullptr && field.form.is_bytes) {
      end = server::kBase64Suffix;
      value = shown.find_pointer(std::string(field.pointer) + std::string(end), ignored);
    }
    if (value == nullptr) continue;
    json::value told = field.form.to_file == nullptr ? *value : field.form.to_file(*value);
    if (!told.is_null()) line[std::string(field.name) + std::string(end)] = std::move(told);
  }
  return line;
}

json::object api_fields(FileObject of, const json::object& from) {
  json::object fields;
  const unsigned all = all_of(of);
  for (const auto& entry : from) {
    std::string_view name = entry.key();
    const bool is_base64 = name.ends_with(server::kBase64Suffix);
    if (is_base64) name.remove_suffix(server::kBase64Suffix.size());
    const FileField* const field = field_named(all, name);
    if (field == nullptr || (is_base64 && !field->form.is_bytes)) refuse_name(all, entry.key());
    std::string pointer = pointer_of(of, *field);
    if (is_base64) pointer += server::kBase64Suffix;
    put_at(fields, pointer, value_from(*field, entry.value()));
  }
  return fields;
}

std::vector<std::pair<std::string, json::value>> api_field(FileObject of, std::string_view name,
                                                           const std::string& text) {
  const FileField& field = *field_named(all_of(of), name);
  json::value value =
      field.form.from_text == nullptr ? json::value(text) : field.form.from_text(text);
  if (!field.pointer.empty()) return {{pointer_of(of, field), std::move(value)}};
  std::vector<std::pair<std::string, json::value>> parts;
  for (auto& [part, its] : value.as_object()) parts.emplace_back("/" + std::string(part), its);
  return parts;
}

std::string file_name_of(FileObject of, std::string_view pointer) {
  if (pointer.starts_with("/job/")) {
    of = FileObject::kScheduledJob;
    pointer.remove_prefix(std::string_view("/job").size());
  }
  std::string_view name = pointer;
  std::size_t longest = 0;
  for (const FileField& field : kFields) {
    const bool is_it = (field.of & bit(of)) != 0 && pointer.starts_with(field.pointer);
    if (!is_it || field.pointer.size() <= longest) continue;
    longest = field.pointer.size();
    name = field.name;
  }
  if (longest == 0 && name.starts_with('/')) name.remove_prefix(1);
  return std::string(name);
}

}  // namespace carillon::cli
