// Arguments from fields, and fields from arguments (asked.h).
#include "cli/asked.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <optional>

#include "cli/exit_status.h"
#include "cli/wait.h"
#include "server/text/duration.h"
#include "server/text/timestamp.h"
#include "server/text/whole_number.h"

namespace carillon::cli {

namespace json = boost::json;
using server::Type;

namespace {

// Returns what stands behind "NAME:" in the list, NAME in capitals if there is only that, and none
// if the name is not in it.
std::optional<std::string> label_in(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(' '));
    list.remove_prefix(std::min(word.size() + 1, list.size()));
    const std::size_t colon = std::min(word.find(':'), word.size());
    if (word.substr(0, colon) != name) continue;
    std::string label(word.substr(std::min(colon + 1, word.size())));
    if (!label.empty()) return label;
    label = name;
    std::transform(label.begin(), label.end(), label.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return label;
  }
  return std::nullopt;
}

// Returns the name of a value in the help.
std::string value_name(const server::Field& field) {
  switch (field.type) {
    case Type::kNumber:
      return "N";
    case Type::kDuration:
      return "DURATION";
    case Type::kMoment:
      return "WHEN";
    case Type::kWord: {
      std::string words;
      for (const std::string_view word : field.words)
        words.append(words.empty() ? "" : "|").append(word);
      constexpr std::size_t kShort = 12;
      return words.size() <= kShort ? words : "WORD";
    }
    default:
      return label_in(field.name, field.name).value_or("TEXT");
  }
}

// Returns the help of the field without its full stop. Null in JSON is "never" on a command line.
std::string description_of(const server::Field& field, const AskedOptions& options) {
  std::string sentence(field.help);
  for (const auto& [name, help] : options.helps)
    if (name == field.name) sentence = help;
  const std::size_t null = field.is_patch ? sentence.find("null") : sentence.npos;
  if (null != sentence.npos) sentence.replace(null, 4, "never");
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

// Returns true if the text about an argument continues it: `"x": not a number`, "needs --key".
// Others are sentences of their own: "the scheme of the URL is neither http nor https".
bool continues_argument(std::string_view text) {
  if (!text.empty() && (text.front() == '"' || (text.front() >= '0' && text.front() <= '9')))
    return true;
  for (const std::string_view verb : {"needs ", "does not ", "is ", "comes ", "goes "})
    if (text.starts_with(verb)) return true;
  return false;
}

json::value value_of(const server::Field& field, const std::string& text) {
  if (field.is_patch && text == "never") return nullptr;
  if (field.type == Type::kMoment) return parse_moment(text);
  if (field.type == Type::kDuration)
    return json::value(fmt::format("{}ms", server::parse_duration(text).count()));
  const auto number = server::whole_number<std::uint64_t>(text);
  return field.type == Type::kNumber && number ? json::value(*number) : json::value(text);
}

}  // namespace

std::string option_named(std::string_view field) {
  std::string name = "--" + std::string(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string replace_fields(std::string_view text,
                           const std::function<std::string(std::string_view field)>& name) {
  std::string replaced;
  while (true) {
    const std::size_t begin = text.find('`');
    const std::size_t end = begin == text.npos ? begin : text.find('`', begin + 1);
    if (end == text.npos) return replaced.append(text);
    replaced.append(text.substr(0, begin)).append(name(text.substr(begin + 1, end - begin - 1)));
    text.remove_prefix(end + 1);
  }
}

std::uint64_t parse_moment(const std::string& text) {
  if (text.find_first_of("T:") != std::string::npos) return server::parse_timestamp(text);
  const auto in = static_cast<std::uint64_t>(server::parse_duration(text).count());
  return in > UINT64_MAX / 2 ? in : utc_now_ms() + in;
}

void Asked::add_one(CLI::App& command, const server::Field& field, const std::string& pointer,
                    const std::string& name, const AskedOptions& options, bool is_needed) {
  const auto set_text = [this, &field, pointer, name](const std::string& text) {
    const auto parse = [&field](const std::string& from) { return value_of(field, from); };
    set(pointer, parse_argument(name, parse, text), name);
  };
  const std::string form = name.starts_with('-') ? name + " " + value_name(field) : name;
  const Argument added = add_text(command, form, set_text, description_of(field, options));
  if (is_needed) added.required();
}

void Asked::add(CLI::App& command, const server::Shape& shape, const AskedOptions& options,
                const std::string& at) {
  for (const server::Field& field : shape.fields) {
    const std::string pointer = at + "/" + std::string(field.name);
    if (label_in(options.without, field.name) || label_in(options.positionals, field.name))
      continue;
    const std::string name =
        option_named(label_in(options.names, field.name).value_or(std::string(field.name)));
    if (field.type == Type::kObject) {
      add(command, *field.shape, options, pointer);
    } else if (field.type == Type::kFlag) {
      add_flag(
          command, name, [this, pointer, name] { set(pointer, true, name); },
          description_of(field, options));
    } else {
      add_one(command, field, pointer, name, options);
    }
  }
}

namespace {

// Calls `found` with the field of this name, of the shape or of an object within.
template <class Found>
void find_field(const server::Shape& shape, std::string_view name, const std::string& at,
                Found found) {
  for (const server::Field& field : shape.fields) {
    const std::string pointer = at + "/" + std::string(field.name);
    if (field.name == name) return found(field, pointer);
    if (field.type == Type::kObject) find_field(*field.shape, name, pointer, found);
  }
}

}  // namespace

void Asked::add_arguments(CLI::App& command, const server::Shape& shape,
                          const AskedOptions& options) {
  for (std::string_view left = options.positionals; !left.empty();) {
    const std::string_view word = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(word.size() + 1, left.size()));
    const std::string_view name = word.substr(0, word.find(':'));
    find_field(shape, name, "", [&](const server::Field& field, const std::string& pointer) {
      // A name that is empty would be that of nothing.
      const bool is_name = field.rule.needed || field.rule.form != nullptr;
      add_one(command, field, pointer, *label_in(options.positionals, name), options,
              is_name && !field.is_optional && !label_in(options.optional, name));
    });
  }
  add(command, shape, options, "");
}

void Asked::set(std::string_view pointer, json::value value, std::string_view argument) {
  arguments_.emplace_back(pointer, argument);
  json::object* object = &fields_;
  std::string_view left = pointer.substr(1);
  for (std::size_t slash = left.find('/'); slash != left.npos; slash = left.find('/')) {
    json::value& inner = (*object)[left.substr(0, slash)];
    if (!inner.is_object()) inner.emplace_object();
    object = &inner.get_object();
    left.remove_prefix(slash + 1);
  }
  (*object)[left] = std::move(value);
}

bool Asked::has(std::string_view pointer) const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [pointer](const auto& one) { return one.first == pointer; });
}

std::string Asked::argument_within(std::string_view pointer) const {
  const auto found = std::find_if(arguments_.begin(), arguments_.end(), [pointer](const auto& one) {
    return one.first.starts_with(pointer);
  });
  return found == arguments_.end() ? "" : found->second;
}

// The argument that has set the field, or an object that it stands in, or one within it.
std::string Asked::argument_of(std::string_view pointer) const {
  std::string found;
  std::size_t longest = 0;
  for (const auto& [set, argument] : arguments_) {
    const bool fits = pointer.starts_with(set) || std::string_view(set).starts_with(pointer);
    if (!fits || set.size() < longest) continue;
    longest = set.size();
    found = argument;
  }
  return found.empty() ? option_named(pointer.substr(pointer.rfind('/') + 1)) : found;
}

std::string Asked::text_of(const std::vector<server::FieldFault>& faults) const {
  std::string text;
  for (const server::FieldFault& fault : faults) {
    const std::string object = fault.pointer.substr(0, fault.pointer.rfind('/') + 1);
    const auto argument = [&](std::string_view field) {
      return argument_of(object + std::string(field));
    };
    text += fmt::format("{}{}{} {}", text.empty() ? "" : "; ", argument_of(fault.pointer),
                        continues_argument(fault.detail) ? "" : ":",
                        replace_fields(fault.detail, argument));
  }
  return text;
}

void Asked::read_into(const server::Shape& shape, void* into) const {
  server::Reader reader;
  server::read_fields(reader, shape, fields_, into);
  if (!reader.faults().empty()) throw UsageError(text_of(reader.faults()));
}

void Asked::throw_usage(const Refusal& refusal) const {
  if (refusal.faults.empty()) throw refusal;
  throw UsageError(text_of(refusal.faults));
}

}  // namespace carillon::cli
