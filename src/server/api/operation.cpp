// Reads the request of an operation (operation.h).
#include "server/api/operation.h"
#include "server/api/json_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/json.hpp>
#include <string>
#include <utility>

#include "server/api/request.h"
#include "server/text/json_text.h"
#include "server/text/json_value.h"

namespace carillon::server {

namespace json = boost::json;

bool Operation::is_in_path(std::string_view field) const {
  for (std::size_t at = path.find('{'); at != path.npos; at = path.find('{', at + 1)) {
    const std::string_view rest = path.substr(at + 1);
    if (rest.starts_with(field) && rest.substr(field.size()).starts_with('}')) return true;
  }
  return false;
}

bool Operation::has_body() const {
  return !has_query() && std::any_of(request->fields.begin(), request->fields.end(),
                                     [this](const Field& one) { return !is_in_path(one.name); });
}

bool Operation::reads_header(std::string_view header) const {
  for (std::string_view left = headers; !left.empty();) {
    const std::string_view word = left.substr(0, left.find(' '));
    if (word == header) return true;
    left.remove_prefix(std::min(left.size(), word.size() + 1));
  }
  return false;
}

bool Operation::takes_plain_body() const {
  return std::any_of(request->fields.begin(), request->fields.end(),
                     [](const Field& one) { return one.rule.is_body; });
}

namespace {

constexpr std::string_view kHeaderPrefix = "carillon-";

// The names in the path, which come in the order of the braces.
void read_path(const RequestContext& x, const Shape& shape, void* into) {
  std::string_view left = x.operation->path;
  for (const std::string& name : x.names) {
    const std::size_t begin = left.find('{') + 1;
    const std::string_view field_name = left.substr(begin, left.find('}', begin) - begin);
    left.remove_prefix(begin + field_name.size());
    const auto field = std::find_if(shape.fields.begin(), shape.fields.end(),
                                    [&](const Field& one) { return one.name == field_name; });
    Reader reader(Source::kQuery);
    field->read(reader, *field, json::value(name), into);
    if (!reader.faults().empty()) throw Problem(kBadRequest, reader.faults().front().detail);
  }
}

// Reads the query, also of an operation without a query.
json::object query_of(const RequestContext& x, Reader& reader) {
  json::object from;
  for (const auto& [name, value] : x.request.query) {
    if (!x.operation->has_query()) {
      reader.fault_at("?" + name, fmt::format("a {} has no query; its body says what is meant",
                                              x.operation->method));
    } else if (!from.emplace(name, value).second) {
      reader.fault_at("?" + name, "comes twice");
    }
  }
  return from;
}

// Returns true if it takes a list of objects, such as jobs.
bool is_batch(const Operation& operation) {
  return std::any_of(operation.request->fields.begin(), operation.request->fields.end(),
                     [](const Field& one) { return one.is_list && one.type == Type::kObject; });
}

// Returns true if its JSON may have many values: it has bodies of jobs, which are any JSON.
bool may_be_long(const Shape& shape) {
  return std::any_of(shape.fields.begin(), shape.fields.end(), [](const Field& one) {
    return one.type == Type::kBody || (one.type == Type::kObject && may_be_long(*one.shape));
  });
}

// Only a body without a needed field may be left out: never the body of a PATCH or of a put.
json::object body_of(const RequestContext& x, Reader& reader) {
  const Operation& operation = *x.operation;
  const bool may_be_empty = operation.method != "PATCH" && !operation.takes_plain_body();
  if (x.request.body.empty() && may_be_empty) return {};
  json::object body = parse_object(
      x.request.body, may_be_long(*operation.request) ? kMostPartsOfBatch : kMostParts);
  if (!operation.has_query()) return body;
  for (const auto& member : body)
    reader.fault_at("/" + std::string(member.key()), "there is no such field");
  return {};
}

// Returns true if the header, in small letters and without its prefix, is that of the field:
// on-conflict is that of on_conflict.
bool is_header_of(std::string_view header, const Field& field) {
  return std::equal(header.begin(), header.end(), field.name.begin(), field.name.end(),
                    [](char of_header, char of_name) {
                      return of_header == of_name || (of_header == '-' && of_name == '_');
                    });
}

void read_headers(const RequestContext& x, Reader& reader, const Shape& shape, void* into) {
  for (const auto& [name, value] : x.request.headers) {
    if (!name.starts_with(kHeaderPrefix)) continue;
    const std::string_view header = std::string_view(name).substr(kHeaderPrefix.size());
    const auto found =
        std::find_if(shape.fields.begin(), shape.fields.end(), [header](const Field& field) {
          return field.rule.in_header && is_header_of(header, field);
        });
    if (found == shape.fields.end()) {
      reader.fault_at(name, "there is no such header");
    } else {
      found->read(reader, *found, json::value(value), into);
    }
  }
}

bool has_fields_in_headers(const Request& request) {
  return std::any_of(request.headers.begin(), request.headers.end(),
                     [](const auto& one) { return one.first.starts_with(kHeaderPrefix); });
}

// A JSON object with the type that curl sends by itself may describe the job, or be its body: to
// guess would lose the delay of the one, or the fields of the other.
void refuse_form(const RequestContext& x) {
  const std::string_view body = x.request.body;
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = body.find_first_not_of(kSpace);
  const bool is_object =
      first != body.npos && body[first] == '{' && body[body.find_last_not_of(kSpace)] == '}';
  if (!is_object || !x.request.is_of_type(kFormType) || has_fields_in_headers(x.request)) return;
  throw Problem(kWrongType,
                "the body looks like JSON, and its Content-Type is that of a form, which curl -d "
                "sends by itself: add -H 'Content-Type: application/json' if it describes the job, "
                "or another type, such as text/plain, if it is the job's body");
}

}  // namespace

bool has_plain_body(const RequestContext& x) {
  if (!x.operation->takes_plain_body()) return false;
  return !x.request.is_of_type(kJsonType) || has_fields_in_headers(x.request);
}

Reader reader_of(const RequestContext& x) {
  if (x.operation->has_query()) return Reader(Source::kQuery);
  if (has_plain_body(x)) return Reader(Source::kHeaders);
  return Reader(x.operation->method == "PATCH" ? Source::kPatch : Source::kJson);
}

void read_request(RequestContext& x, Reader& reader, const Shape& shape, void* into) {
  const Operation& operation = *x.operation;
  read_path(x, shape, into);
  const json::object query = query_of(x, reader);
  if (has_plain_body(x)) {
    refuse_form(x);
    return read_headers(x, reader, shape, into);
  }
  for (const auto& header : x.request.headers) {
    if (header.first.starts_with(kHeaderPrefix))
      reader.fault_at(header.first, "only a put with a plain body reads such headers");
  }
  json::object body = body_of(x, reader);
  if (is_batch(operation) || operation.merges) x.json.swap(body);  // it is read later
  if (operation.merges) return;
  const json::object& fields = operation.has_query() ? query : is_batch(operation) ? x.json : body;
  const auto is_elsewhere = [&](const Field& field) { return operation.is_in_path(field.name); };
  read_fields(reader, shape, fields, into, is_elsewhere);
}

namespace {

// A text takes the place of bytes in Base64, and the other way round.
void make_way(const Shape& shape, const json::object& change, json::object& settings) {
  for (const Field& field : shape.fields) {
    const std::string base64 = std::string(field.name).append(kBase64Suffix);
    if (field.has_base64() && (change.contains(field.name) || change.contains(base64))) {
      settings.erase(field.name);
      settings.erase(base64);
    }
    if (field.type != Type::kObject || field.is_list || !settings.contains(field.name)) continue;
    const json::value* const inner = change.if_contains(field.name);
    if (inner != nullptr && inner->is_object())
      make_way(*field.shape, inner->get_object(), settings[field.name].as_object());
  }
}

}  // namespace

void read_merged(const RequestContext& x, Reader& reader, json::object settings, const Shape& shape,
                 void* into) {
  const auto is_elsewhere = [&](const Field& one) { return x.operation->is_in_path(one.name); };
  for (const Field& field : shape.fields)
    if (is_elsewhere(field)) settings.erase(field.name);
  make_way(shape, x.json, settings);
  merge(x.json, settings);
  read_fields(reader, shape, settings, into, is_elsewhere);
}

std::string text_of_fields(const Shape& shape, const void* from) {
  return json_text(write_fields(shape, from));
}

void answer_at_once(RequestContext& x, const json::object& with) {
  x.answer({.status = x.operation->status_of_answer(), .body = json_text(with), .at_once = true});
}

void answer_fields(RequestContext& x, unsigned status, const Shape& shape, const void* answer,
                   std::string location) {
  Reply reply{.status = status,
              .body = text_of_fields(shape, answer),
              .durable_at = x.engine().last_sequence()};
  if (!location.empty()) reply.headers.emplace_back("Location", std::move(location));
  x.answer(std::move(reply));
}

}  // namespace carillon::server
