// Reads and writes the lines of files of jobs (job_file.h).

#include "cli/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cli/arguments.h"
#include "server/api/attributes.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

// What list-jobs tells of a job's past and present: no option of a put.
constexpr std::array<std::string_view, 15> kNoOptions = {
    "type",         "id",     "created",    "reserves", "timeouts",
    "releases",     "buries", "kicks",      "attempts", "dead",
    "cancel_asked", "worker", "body_bytes", "due_ms",   "worker_base64"};

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw std::invalid_argument(fmt::format("\"{}\": {}", name, why));
}

std::string text_of(std::string_view name, const json::value& value) {
  if (!value.is_string()) refuse(name, "not a text");
  return std::string(std::string_view(value.get_string()));
}

std::uint64_t number_of(std::string_view name, const json::value& value) {
  json::error_code failed;
  const auto number = value.to_number<std::uint64_t>(failed);
  if (failed) refuse(name, "not a whole number");
  return number;
}

constexpr std::string_view kBase64 = "_base64";

// Returns the bytes of a text, and takes _base64 off the name; nothing of what is no text.
std::string take_text(std::string_view& name, const json::value& value) {
  if (!name.ends_with(kBase64)) return value.is_string() ? text_of(name, value) : "";
  std::optional<std::string> bytes = server::from_base64(text_of(name, value));
  if (!bytes) refuse(name, "not Base64");
  name.remove_suffix(kBase64.size());
  return *std::move(bytes);
}

// Returns name=value as put-job takes it.
std::string option_of(std::string_view name, const json::value& value, const std::string& text) {
  std::string option(name);
  std::replace(option.begin(), option.end(), '_', '-');
  if (value.is_bool()) return option + (value.get_bool() ? "=yes" : "=no");
  if (value.is_object()) {
    try {
      return option + "=" + server::attributes_of(json::serialize(value));
    } catch (const std::invalid_argument& error) {
      refuse(name, error.what());
    }
  }
  if (value.is_number()) return fmt::format("{}={}", option, number_of(name, value));
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; };
  if (text.empty()) refuse(name, "is empty");
  if (std::any_of(text.begin(), text.end(), is_control)) refuse(name, "has a control character");
  if (text.find(' ') == std::string::npos && text.front() != '"') return option + "=" + text;
  if (text.front() == '"') refuse(name, "begins with a quote");
  if (text.find('"') != std::string::npos) refuse(name, "has a space and a quote");
  return fmt::format("{}=\"{}\"", option, text);
}

void add_option(std::string& options, const std::string& option) {
  options += (options.empty() ? "" : " ") + option;
}

void set_field(FileJob& job, std::string_view name, const json::value& value) {
  if (std::find(kNoOptions.begin(), kNoOptions.end(), name) != kNoOptions.end()) return;
  std::string text = take_text(name, value);
  if (name == "body") {
    if (!value.is_string()) refuse(name, "not a text");
    job.body = std::move(text);
  } else if (name == "tube") {
    job.tube = parse_tube(text);
  } else if (name == "state") {
    constexpr std::array<std::string_view, 4> kStates = {"delayed", "ready", "reserved", "buried"};
    if (std::find(kStates.begin(), kStates.end(), text) == kStates.end())
      refuse(name, "write delayed, ready, reserved or buried");
    job.buried = text == "buried";
  } else if (name == "pri") {
    job.priority =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(number_of(name, value), UINT32_MAX));
    if (job.priority != number_of(name, value)) refuse(name, "more than 4294967295");
  } else if (name == "due" || name == "delay") {
    if (!job.when.empty()) refuse(name, "there is a due or a delay already");
    job.when = option_of(name, value, text);
  } else {
    const std::string option = option_of(name, value, text);
    if (name == "key") job.key = option.substr(option.find('=') + 1);
    add_option(job.options, option);
  }
}

FileJob job_of(const json::object& object) {
  FileJob job;
  job.tube = kDefaultTube;
  if (!object.contains("body") && !object.contains("body_base64"))
    throw std::invalid_argument("the job has no \"body\"");
  job.was_listed = object.contains("created");
  for (const auto& [name, value] : object) set_field(job, name, value);
  if (const auto* id = object.if_contains("id")) job.id = number_of("id", *id);
  const auto* due = object.if_contains("due_ms");
  if (due != nullptr && job.when.empty())
    job.when = fmt::format("due={}", number_of("due_ms", *due));
  return job;
}

// `type` is tube, group or schedule.
FileSetting setting_of(const json::object& object, std::string_view type) {
  FileSetting setting;
  const bool is_schedule = type == "schedule";
  for (const auto& entry : object) {
    std::string_view name = entry.key();
    const json::value& value = entry.value();
    if (name == "type") continue;
    std::string text = take_text(name, value);
    if (name == "tube") {
      setting.tube = parse_tube(text);
    } else if (is_schedule && name == "name") {
      setting.schedule = parse_tube(text);
    } else if (is_schedule && name == "body") {
      if (!value.is_string()) refuse(name, "not a text");
      setting.body = std::move(text);
    } else if (!is_schedule &&
               ((name == "puts" && text == "refused") || name.starts_with("put_"))) {
      add_option(setting.at_end, option_of(name, value, text));
    } else {
      add_option(setting.options, option_of(name, value, text));
    }
  }
  if (setting.tube.empty()) refuse("tube", "is missing");
  if (type == "group" && !object.contains("group") && !object.contains("group_base64"))
    refuse("group", "is missing");
  if (!is_schedule) return setting;
  if (setting.schedule.empty()) refuse("name", "is missing");
  if (!object.contains("body") && !object.contains("body_base64")) refuse("body", "is missing");
  return setting;
}

json::object object_of(std::string_view text) {
  json::error_code failed;
  json::value value = json::parse(text, failed);
  if (failed) throw std::invalid_argument(fmt::format("not JSON: {}", failed.message()));
  if (!value.is_object()) throw std::invalid_argument("not a JSON object");
  return std::move(value.get_object());
}

const json::value& field(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr) refuse(name, "is missing");
  return *value;
}

std::string line_of(const json::object& object) {
  return json::serialize(object) + "\n";
}

}  // namespace

FileLine parse_file_line(std::string_view text) {
  using Kind = FileLine::Kind;
  const json::object object = object_of(text);
  FileLine line;
  const auto* type = object.if_contains("type");
  line.type = type == nullptr ? "job" : text_of("type", *type);
  if (line.type == "job") {
    line.kind = Kind::kJob;
    line.job = job_of(object);
  } else if (line.type == "tube" || line.type == "group" || line.type == "schedule") {
    line.kind = Kind::kSetting;
    line.setting = setting_of(object, line.type);
  } else if (line.type == "export") {
    line.kind = Kind::kExport;
    const std::uint64_t version = number_of("version", field(object, "version"));
    if (version != kJobFileVersion)
      refuse("version", fmt::format("is {}; this Carillon knows {}", version, kJobFileVersion));
    line.id = text_of("id", field(object, "id"));
  } else if (line.type == "page") {
    line.kind = Kind::kPage;
    line.tube = parse_tube(text_of("tube", field(object, "tube")));
    if (const json::value& after = field(object, "after"); !after.is_null())
      line.after = text_of("after", after);
    line.incomplete = object.contains("incomplete");
    if (const json::value* const damaged = object.if_contains("damaged")) {
      if (!damaged->is_array()) refuse("damaged", "not an array");
      for (const json::value& id : damaged->get_array())
        line.damaged.push_back(number_of("damaged", id));
    }
  } else if (line.type == "end") {
    line.kind = Kind::kEnd;
    line.jobs = number_of("jobs", field(object, "jobs"));
  }
  return line;
}

ListedJob parse_listed_job(std::string_view text) {
  const json::object object = object_of(text);
  return {.id = number_of("id", field(object, "id")),
          .has_body = object.contains("body") || object.contains("body_base64"),
          .is_damaged = object.contains("body_error")};
}

std::string job_file_line(std::string_view listed, const std::optional<std::string>& body) {
  const json::object from = object_of(listed);
  json::object object;
  object["type"] = "job";
  for (const auto& [name, value] : from) {
    object[name] = value;
    if (name == "due") object["due_ms"] = server::parse_timestamp(text_of(name, value));
  }
  if (body && server::is_utf8(*body)) object["body"] = *body;
  if (body && !server::is_utf8(*body)) object["body_base64"] = server::to_base64(*body);
  return line_of(object);
}

// stats-tube tells the parts of these as numbers.
std::string tube_file_line(std::string_view tube, const StatsFields& stats) {
  json::object object{{"type", "tube"}, {"tube", tube}};
  const std::size_t none = object.size();
  const auto number = [&stats](std::string_view name) {
    return stats.has(name) ? stats.number(name) : 0;
  };
  for (const auto& [name, field] :
       {std::pair{"max_attempts", "max-attempts"}, std::pair{"max_running", "max-running"}})
    if (stats.has(field)) object[name] = number(field);
  const std::uint64_t first = number("backoff-ms");
  if (stats.has("backoff-longest-ms")) {
    object["backoff"] = fmt::format("{}ms..{}ms", first, number("backoff-longest-ms"));
  } else if (first > 0) {
    object["backoff"] = fmt::format("{}ms", first);
  }
  if (stats.has("jitter-percent")) object["jitter"] = fmt::format("{}%", number("jitter-percent"));
  if (stats.has("lost")) object["lost"] = stats.text("lost");
  if (stats.has("rate")) {
    object["rate"] = fmt::format("{}/{}ms", number("rate"), number("rate-period-ms"));
    object["burst"] = number("burst");
  }
  if (stats.has("retention-ms")) object["retention"] = fmt::format("{}ms", number("retention-ms"));
  if (stats.has("put-rate")) {
    object["put_rate"] = fmt::format("{}/{}ms", number("put-rate"), number("put-rate-period-ms"));
    object["put_burst"] = number("put-burst");
  }
  if (stats.has("puts")) object["puts"] = stats.text("puts");
  return object.size() == none ? "" : line_of(object);
}

std::string group_file_line(std::string_view listed) {
  const json::object from = object_of(listed);
  const bool has_limits = from.contains("max_running") || from.contains("rate");
  if (number_of("weight", field(from, "weight")) == 1 && !has_limits) return {};
  json::object object{{"type", "group"}};
  for (const std::string_view name :
       {"tube", "group", "group_base64", "weight", "max_running", "rate", "burst"})
    if (const json::value* const value = from.if_contains(name)) object[name] = *value;
  return line_of(object);
}

std::string schedule_file_line(std::string_view shown) {
  json::object object{{"type", "schedule"}};
  for (const auto& [name, value] : object_of(shown)) object[name] = value;
  return line_of(object);
}

std::string tube_of_schedule(std::string_view shown) {
  return text_of("tube", field(object_of(shown), "tube"));
}

std::string export_file_line(std::string_view id, std::string_view server, std::uint64_t now_ms) {
  json::object object;
  object["type"] = "export";
  object["version"] = kJobFileVersion;
  object["id"] = id;
  object["server"] = server;
  object["time"] = server::format_timestamp(now_ms);
  object["time_ms"] = now_ms;
  return line_of(object);
}

std::string page_file_line(std::string_view tube, const std::optional<std::string>& after,
                           const std::vector<std::uint64_t>& damaged, bool incomplete) {
  json::object object;
  object["type"] = "page";
  object["tube"] = tube;
  if (after) {
    object["after"] = *after;
  } else {
    object["after"] = nullptr;
  }
  if (!damaged.empty()) object["damaged"] = json::array(damaged.begin(), damaged.end());
  if (incomplete) object["incomplete"] = true;
  return line_of(object);
}

std::string end_file_line(std::uint64_t jobs, std::uint64_t tubes) {
  json::object object;
  object["type"] = "end";
  object["jobs"] = jobs;
  object["tubes"] = tubes;
  return line_of(object);
}

}  // namespace carillon::cli
