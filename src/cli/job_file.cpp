// Reads the lines of files of jobs (job_file.h).

#include "cli/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "cli/arguments.h"
#include "cli/file_fields.h"
#include "server/api/job.h"
#include "server/api/names.h"
#include "server/text/json_text.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

// Fields of an export that tell the past and present of a job, and are no options of a put.
constexpr std::array<std::string_view, 14> kNoOptions = {
    "id",       "created", "reserves",     "timeouts", "releases",   "buries", "kicks",
    "attempts", "dead",    "cancel_asked", "worker",   "body_bytes", "due_ms", "worker_base64"};

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw std::invalid_argument(fmt::format("\"{}\": {}", name, why));
}

std::string text_field(std::string_view name, const json::value& value) {
  if (!value.is_string()) refuse(name, "not a text");
  return std::string(std::string_view(value.get_string()));
}

std::uint64_t number_of(std::string_view name, const json::value& value) {
  json::error_code failed;
  const auto number = value.to_number<std::uint64_t>(failed);
  if (failed) refuse(name, "not a whole number");
  return number;
}

// Returns the bytes of a text, and takes _base64 off the name; nothing of what is no text.
std::string take_text(std::string_view& name, const json::value& value) {
  if (!name.ends_with(server::kBase64Suffix))
    return value.is_string() ? text_field(name, value) : "";
  std::optional<std::string> bytes = server::from_base64(text_field(name, value));
  if (!bytes) refuse(name, "not Base64");
  name.remove_suffix(server::kBase64Suffix.size());
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

// Says what is wrong with the fields of a line, by their names in the file.
void throw_faults(FileObject of, const server::Reader& reader) {
  std::string text;
  for (const server::FieldFault& fault : reader.faults())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", file_name_of(of, fault.pointer),
                        fault.detail);
  if (!text.empty()) throw std::invalid_argument(text);
}

// Takes a text out of the object.
std::string take(json::object& from, const std::string& name) {
  for (const std::string& as : {name, name + std::string(server::kBase64Suffix)}) {
    const json::value* const value = from.if_contains(as);
    if (value == nullptr) continue;
    std::string_view plain = as;
    if (!value->is_string()) refuse(as, "not a text");
    std::string text = take_text(plain, *value);
    from.erase(as);
    return text;
  }
  refuse(name, "is missing");
}

template <class Request>
Request request_of(FileObject of, const json::object& object, Request request) {
  server::Reader reader;
  json::object fields = api_fields(of, object);
  // The caller has set what a file has of its job.
  if (of == FileObject::kSchedule) fields.emplace("job", json::object());
  server::read_fields(reader, server::kShape<Request>, fields, &request);
  if constexpr (std::is_same_v<Request, server::NewSchedule>) server::schedule_of(reader, request);
  throw_faults(of, reader);
  return request;
}

server::PatchTube tube_of(json::object object) {
  server::PatchTube patch;
  patch.tube = parse_tube(take(object, "tube"));
  return request_of(FileObject::kTube, object, std::move(patch));
}

server::PatchGroup group_of(json::object object) {
  server::PatchGroup patch;
  patch.tube = parse_tube(take(object, "tube"));
  patch.group = take(object, "group");
  return request_of(FileObject::kGroup, object, std::move(patch));
}

server::NewSchedule schedule_of(json::object object) {
  server::NewSchedule schedule;
  schedule.job.tube = parse_tube(take(object, "tube"));
  schedule.name = parse_name(take(object, "name"));
  schedule.job.body = server::JobBody{.bytes = take(object, "body")};
  return request_of(FileObject::kSchedule, object, std::move(schedule));
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

FilePage page_of(const json::object& object) {
  FilePage page{.tube = parse_tube(text_field("tube", field(object, "tube"))),
                .incomplete = object.contains("incomplete")};
  if (const json::value& after = field(object, "after"); !after.is_null())
    page.after = text_field("after", after);
  if (const json::value* const damaged = object.if_contains("damaged")) {
    if (!damaged->is_array()) refuse("damaged", "not an array");
    for (const json::value& id : damaged->get_array())
      page.damaged.push_back(number_of("damaged", id));
  }
  return page;
}

}  // namespace

// An export's own ids are shorter.
constexpr std::size_t kLongestId = 64;

FileLine parse_file_line(std::string_view text) {
  json::object object = object_of(text);
  const auto* named = object.if_contains("type");
  const std::string type = named == nullptr ? "job" : text_field("type", *named);
  object.erase("type");
  if (type == "job") return job_of(object);
  if (type == "tube") return tube_of(std::move(object));
  if (type == "group") return group_of(std::move(object));
  if (type == "schedule") return schedule_of(std::move(object));
  if (type == "page") return page_of(object);
  if (type == "end") return FileEnd{};
  if (type != "export") return FileOther{type};
  const std::uint64_t version = number_of("version", field(object, "version"));
  if (version != kJobFileVersion)
    refuse("version", fmt::format("is {}; this Carillon knows {}", version, kJobFileVersion));
  // The id becomes a part of a command line.
  const std::string id = text_field("id", field(object, "id"));
  if (id.size() > kLongestId || !server::is_word(id))
    refuse("id",
           fmt::format("{} bytes; an export has up to {}, without spaces and control characters",
                       id.size(), kLongestId));
  const json::value* const server = object.if_contains("server");
  return FileHead{id, server == nullptr ? "" : text_field("server", *server)};
}

}  // namespace carillon::cli
