// Reading what an operation is asked (operation.h).
#include "server/api/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <utility>

#include "server/api/fields.h"

namespace carillon::server {

namespace json = boost::json;

bool Operation::is_in_path(std::string_view field) const {
  return path.find(fmt::format("{{{}}}", field)) != std::string_view::npos;
}

bool Operation::has_body() const {
  return !has_query() && std::any_of(request->fields.begin(), request->fields.end(),
                                     [this](const Field& one) { return !is_in_path(one.name); });
}

namespace {

// The names in the path, which come in the order of the braces.
void read_path(const RequestContext& x, const Shape& shape, void* into) {
  std::string_view left = x.operation->path;
  for (const std::string& name : x.names) {
    const std::size_t begin = left.find('{') + 1;
    const std::string_view field_name = left.substr(begin, left.find('}', begin) - begin);
    left.remove_prefix(begin + field_name.size());
    const auto field = std::find_if(shape.fields.begin(), shape.fields.end(),
                                    [&](const Field& one) { return one.name == field_name; });
    Reader reader("?");
    field->read(reader, *field, json::value(name), into);
    if (!reader.faults().empty()) throw Problem(kBadRequest, reader.faults().front().detail);
  }
}

// The names of a query are noted, also where there should be none.
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

// Only a body without a needed field may be left out. That of a PATCH may not.
json::object body_of(const RequestContext& x, Reader& reader) {
  const bool may_be_empty = x.operation->method != "PATCH";
  if (x.request.body.empty() && may_be_empty) return {};
  json::object body = parse_object(x.request.body);
  if (!x.operation->has_query()) return body;
  for (const auto& member : body)
    reader.fault_at("/" + std::string(member.key()), "there is no such field");
  return {};
}

}  // namespace

Reader reader_of(const RequestContext& x) {
  return Reader(x.operation->has_query() ? "?" : "");
}

void read_request(const RequestContext& x, Reader& reader, const Shape& shape, void* into) {
  const Operation& operation = *x.operation;
  read_path(x, shape, into);
  const json::object query = query_of(x, reader);
  const json::object body = body_of(x, reader);
  const auto is_elsewhere = [&](const Field& field) { return operation.is_in_path(field.name); };
  read_fields(reader, shape, operation.has_query() ? query : body, into, is_elsewhere);
}

void answer_at_once(RequestContext& x, const json::object& with) {
  x.answer({.status = x.operation->status_of_answer(), .body = json::serialize(with)});
}

void answer_fields(RequestContext& x, unsigned status, const Shape& shape, const void* answer,
                   std::string location) {
  Reply reply{.status = status,
              .body = json::serialize(write_fields(shape, answer)),
              .durable_at = x.engine().last_sequence()};
  if (!location.empty()) reply.headers.emplace_back("Location", std::move(location));
  x.answer(std::move(reply));
}

}  // namespace carillon::server
