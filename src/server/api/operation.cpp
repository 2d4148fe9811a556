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
void read_path(const RequestContext& x, void* into) {
  std::string_view left = x.operation->path;
  for (const std::string& name : x.names) {
    const std::size_t begin = left.find('{') + 1;
    const std::string_view field_name = left.substr(begin, left.find('}', begin) - begin);
    left.remove_prefix(begin + field_name.size());
    const auto fields = x.operation->request->fields;
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& one) { return one.name == field_name; });
    Reader reader("?");
    field->read(reader, *field, json::value(name), into);
    if (!reader.faults().empty()) throw Problem(kBadRequest, reader.faults().front().detail);
  }
}

}  // namespace

void read_request(const RequestContext& x, void* into) {
  const Operation& operation = *x.operation;
  read_path(x, into);
  json::object from;
  Reader query("?");
  for (const auto& [name, value] : x.request.query) {
    if (!operation.has_query()) {
      query.fault(name,
                  fmt::format("a {} has no query; its body says what is meant", operation.method));
    } else if (!from.emplace(name, value).second) {
      query.fault(name, "comes twice");
    }
  }
  query.throw_if_any();
  Reader reader(operation.has_query() ? "?" : "");
  if (!x.request.body.empty()) {
    json::object body = parse_object(x.request.body);
    if (operation.has_query()) {
      for (const auto& member : body) reader.fault(member.key(), "there is no such field");
    } else {
      from = std::move(body);
    }
  }
  const auto is_elsewhere = [&](const Field& field) { return operation.is_in_path(field.name); };
  read_fields(reader, *operation.request, from, into, is_elsewhere);
  reader.throw_if_any();
}

void answer_fields(RequestContext& x, const Shape& shape, const void* answer) {
  x.answer({.status = x.operation->status_of_answer(),
            .body = json::serialize(write_fields(shape, answer)),
            .durable_at = x.engine().last_sequence()});
}

}  // namespace carillon::server
