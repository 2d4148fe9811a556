// The text in which the store keeps attributes (attributes.h).
#include "server/api/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <stdexcept>
#include <utility>

#include "carillon/queue/job.h"

namespace carillon::server {

namespace {

void merge(const boost::json::object& change, boost::json::object& into) {
  for (const auto& member : change) {
    if (member.value().is_null()) {
      into.erase(member.key());
    } else if (const auto* const inner = member.value().if_object()) {
      boost::json::value& old = into[member.key()];
      if (!old.is_object()) old.emplace_object();
      merge(*inner, old.get_object());
    } else {
      into[member.key()] = member.value();
    }
  }
}

// Takes the attribute out of the object if it is a text, as an attribute of this name must be.
std::optional<std::string> take_text(boost::json::object& from, std::string_view name) {
  const boost::json::value* const found = from.if_contains(name);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  std::optional<std::string> text(std::string_view(found->get_string()));
  from.erase(name);
  return text;
}

}  // namespace

// The form is version-trace-parent-flags in small hexadecimal digits (W3C Trace Context, 3.2). An
// id of zeros means that there is no trace, or no parent (3.2.2.3 and 3.2.2.4).
bool is_traceparent(std::string_view text) {
  constexpr std::string_view kForm = "00-00000000000000000000000000000000-0000000000000000-00";
  const bool has_form =
      text.size() == kForm.size() &&
      std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
        return form == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      });
  if (!has_form || text.starts_with("ff")) return false;
  constexpr std::size_t kTrace = 3;
  constexpr std::size_t kParent = 36;
  return text.substr(kTrace, 32) != kForm.substr(kTrace, 32) &&
         text.substr(kParent, 16) != kForm.substr(kParent, 16);
}

std::string kept_attributes(Reader& reader, const Attributes& attributes) {
  boost::json::object kept;
  if (attributes.content_type) kept["content_type"] = *attributes.content_type;
  if (attributes.traceparent) kept["traceparent"] = *attributes.traceparent;
  if (attributes.tracestate) kept["tracestate"] = *attributes.tracestate;
  if (attributes.metadata) kept["metadata"] = attributes.metadata->object;
  if (attributes.traceparent && !is_traceparent(*attributes.traceparent))
    reader.fault("traceparent",
                 "not as W3C Trace Context has it: 00-TRACE-PARENT-FLAGS, and no id is all zeros");
  if (attributes.tracestate && !attributes.traceparent)
    reader.fault("tracestate", "needs a traceparent");
  if (attributes.attributes)
    for (const auto& [name, value] : attributes.attributes->object) kept.emplace(name, value);
  if (kept.empty()) return {};
  try {
    return attributes_of(kept);
  } catch (const std::invalid_argument& error) {
    reader.fault(attributes.metadata     ? "metadata"
                 : attributes.attributes ? "attributes"
                                         : std::string_view(kept.begin()->key()),
                 error.what());
    return {};
  }
}

void show_attributes(const std::string& kept, Attributes& into) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(kept, error);
  if (error || !value.is_object()) return;
  boost::json::object& left = value.get_object();
  into.content_type = take_text(left, "content_type");
  into.traceparent = take_text(left, "traceparent");
  into.tracestate = take_text(left, "tracestate");
  if (boost::json::value* const metadata = left.if_contains("metadata");
      metadata != nullptr && metadata->is_object()) {
    into.metadata = Json{std::move(metadata->get_object())};
    left.erase("metadata");
  }
  if (!left.empty()) into.attributes = Json{std::move(left)};
}

std::string attributes_of(std::string_view json) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(json, error);
  if (error) throw std::invalid_argument("not JSON: " + error.message());
  if (!value.is_object()) throw std::invalid_argument("not a JSON object");
  return attributes_of(value.get_object());
}

std::string attributes_of(const boost::json::object& attributes) {
  std::string word;
  for (const char c : boost::json::serialize(attributes)) {
    if (c == ' ') {
      word += "\\u0020";
    } else {
      word += c;
    }
  }
  if (word.size() > queue::kMaxAttributes) {
    throw std::invalid_argument(
        fmt::format("{} bytes as JSON; the most is {}", word.size(), queue::kMaxAttributes));
  }
  return word;
}

std::string merged_attributes(std::string_view attributes, const boost::json::object& change) {
  boost::json::object merged;
  if (!attributes.empty()) merged = boost::json::parse(attributes).as_object();
  merge(change, merged);
  return merged.empty() ? std::string() : attributes_of(merged);
}

}  // namespace carillon::server
