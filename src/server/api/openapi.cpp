// Makes OpenAPI from rows (operations.h).
#include "server/api/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/text/json_text.h"

namespace carillon::server {

namespace json = boost::json;

namespace {

json::object reference(std::string_view kind, std::string_view name) {
  return {{"$ref", fmt::format("#/components/{}/{}", kind, name)}};
}

// What a struct is described for. kMerged: a PATCH of what a PUT takes, in which any field may be
// left out, or null.
enum class Use : std::uint8_t { kAsked, kAnswered, kMerged };

std::string name_of(const Shape& shape, Use use) {
  return std::string(shape.name) + (use == Use::kMerged ? "Patch" : "");
}

json::object describe_shape(const Shape& shape, Use use, const Operation* of,
                            json::object& schemas);

json::object number_schema(const Rule& rule) {
  json::object schema{{"type", "integer"}, {"minimum", rule.least}};
  if (rule.most != UINT64_MAX) schema["maximum"] = rule.most;
  return schema;
}

json::object text_schema(const Rule& rule) {
  if (rule.form == &kTubeForm || rule.form == &kNameForm) return reference("schemas", "Name");
  json::object schema{{"type", "string"}};
  if (rule.form == &kTypeForm) schema["pattern"] = "^[ -~]+$";
  if (rule.form == &kKeyForm) {
    schema["minLength"] = 1;
    schema["maxLength"] = queue::kMaxKey;
  }
  if (rule.least > 0) schema["minLength"] = rule.least;
  if (rule.most != UINT64_MAX) schema["maxLength"] = rule.most;
  if (!rule.format.empty()) schema["format"] = rule.format;
  return schema;
}

// Returns the schema of a value, without the rules that only this field has.
json::object value_schema(const Field& field, Use use, json::object& schemas) {
  switch (field.type) {
    case Type::kText:
    case Type::kBytes:
      return text_schema(field.rule);
    case Type::kBody:  // any JSON
      return use == Use::kAnswered ? text_schema(field.rule) : json::object();
    case Type::kNumber:
      return number_schema(field.rule);
    case Type::kReal:
      return {{"type", "number"}};
    case Type::kFlag:
      return {{"type", "boolean"}};
    case Type::kDuration:
      return reference("schemas", "Duration");
    case Type::kMoment:
      if (use == Use::kAnswered) return {{"type", "string"}, {"format", "date-time"}};
      return reference("schemas", "Moment");
    case Type::kWord:
      return {{"enum", json::array(field.words.begin(), field.words.end())}};
    case Type::kAnyObject:
      return {{"type", "object"}};
    case Type::kObject: {
      const std::string name = name_of(*field.shape, use);
      if (!schemas.contains(name)) {
        schemas[name] = nullptr;  // it may contain itself
        schemas[name] = describe_shape(*field.shape, use, nullptr, schemas);
      }
      return reference("schemas", name);
    }
  }
  return {};
}

std::string help_of(const Field& field) {
  std::string help(field.help);
  if (!field.rule.usual.empty()) help += fmt::format(" Default: {}.", field.rule.usual);
  return help;
}

json::object field_schema(const Field& field, Use use, json::object& schemas) {
  Field item = field;
  if (field.is_list) item.rule = {.form = field.rule.form, .format = field.rule.format};
  json::object schema = value_schema(item, use, schemas);
  if (field.is_list) {
    schema = {{"type", "array"}, {"items", std::move(schema)}};
    if (field.rule.least > 0) schema["minItems"] = field.rule.least;
    if (field.rule.most != UINT64_MAX) schema["maxItems"] = field.rule.most;
  }
  const bool may_be_null = field.is_patch || field.rule.shows_null || use == Use::kMerged;
  if (may_be_null && !schema.empty())
    schema = {{"oneOf", json::array{std::move(schema), {{"type", "null"}}}}};
  schema["description"] = help_of(field);
  return schema;
}

// Leaves out the fields in the path of `of`.
json::object describe_shape(const Shape& shape, Use use, const Operation* of,
                            json::object& schemas) {
  json::object properties;
  json::array required;
  for (const Field& field : shape.fields) {
    if (of != nullptr && of->is_in_path(field.name)) continue;
    properties[field.name] = field_schema(field, use, schemas);
    if (field.has_base64())
      properties[fmt::format("{}{}", field.name, kBase64Suffix)] = {
          {"type", "string"}, {"description", "The same bytes, if they are no UTF-8, in Base64."}};
    const bool is_there = use == Use::kAnswered ? !field.is_optional && !field.has_base64()
                          : use == Use::kAsked  ? field.rule.needed
                                                : false;
    if (is_there || field.rule.shows_null) required.push_back(json::string(field.name));
  }
  json::object schema{
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  if (!shape.help.empty()) schema["description"] = shape.help;
  if (use == Use::kMerged)
    schema["description"] = "What is not named stays; null takes it away (RFC 7396).";
  return schema;
}

// Calls `each` with each of the words, which have a space between two.
template <class Each>
void for_each_word(std::string_view text, Each each) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    each(word);
  }
}

// on_conflict: Carillon-On-Conflict.
std::string header_of(const Field& field) {
  std::string header = "Carillon";
  bool begins = true;
  for (const char c : field.name) {
    if (begins) header += '-';
    if (c != '_') header += begins ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return header;
}

json::array parameters_of(const Operation& operation, json::object& schemas) {
  json::array parameters;
  for (const Field& field : operation.request->fields) {
    const bool in_path = operation.is_in_path(field.name);
    const bool in_query = !in_path && operation.has_query();
    if (!in_path && !in_query && !field.rule.in_header) continue;
    json::object parameter{{"name", json::value(field.name)},
                           {"in", in_path    ? "path"
                                  : in_query ? "query"
                                             : "header"},
                           {"schema", value_schema(field, Use::kAsked, schemas)},
                           {"description", help_of(field)}};
    if (in_path || (in_query && field.rule.needed)) parameter["required"] = true;
    if (!in_path && !in_query) {
      parameter["name"] = header_of(field);
      parameter["schema"] = {{"type", "string"}};
      parameter["description"] = fmt::format("With a plain body: the field {}.", field.name);
    }
    parameters.push_back(std::move(parameter));
  }
  for_each_word(operation.headers, [&](std::string_view name) {
    parameters.push_back(reference("parameters", name));
  });
  if (operation.method != "GET") parameters.push_back(reference("parameters", "Idempotency-Key"));
  return parameters;
}

Use use_of(const Operation& operation) {
  return operation.merges ? Use::kMerged : Use::kAsked;
}

json::object request_body_of(const Operation& operation) {
  const Shape& shape = *operation.request;
  const json::object schema{{"schema", reference("schemas", name_of(shape, use_of(operation)))}};
  json::object content{{"application/json", schema}};
  if (operation.method == "PATCH") content["application/merge-patch+json"] = schema;
  if (operation.takes_plain_body()) content["*/*"] = {{"schema", json::object()}};
  const bool is_needed =
      operation.method == "PATCH" || operation.takes_plain_body() ||
      std::any_of(shape.fields.begin(), shape.fields.end(), [&](const Field& field) {
        return field.rule.needed && !operation.is_in_path(field.name);
      });
  return {{"required", is_needed}, {"content", std::move(content)}};
}

json::object answer_of(const Operation& operation, std::string_view help, const Shape* shape) {
  json::object told{{"description", help}};
  if (!operation.media.empty()) told["content"] = {{operation.media, json::object()}};
  if (shape != nullptr) {
    json::object schema = reference("schemas", shape->name);
    if (operation.brief != nullptr && shape == operation.answer)
      schema = {{"anyOf", json::array{schema, reference("schemas", operation.brief->name)}}};
    told["content"] = {{"application/json", {{"schema", std::move(schema)}}}};
  }
  json::object headers;
  const auto add = [&](std::string_view name) { headers[name] = reference("headers", name); };
  for_each_word(operation.answer_headers, add);
  if (operation.method != "GET") add("Idempotent-Replayed");
  if (!headers.empty()) told["headers"] = std::move(headers);
  return told;
}

// Returns the statuses of its problems. 400: at least a field that it does not have is refused. So
// is a precondition that it does not honour: 412.
std::set<std::string_view> problems_of(const Operation& operation) {
  std::set<std::string_view> all = {"400", "412"};
  if (operation.method == "PATCH" || operation.takes_plain_body()) all.insert("415");
  if (operation.method != "GET") all.insert("422");
  for_each_word(operation.problems, [&](std::string_view status) { all.insert(status); });
  return all;
}

json::object responses_of(const Operation& operation) {
  const Shape* const shape = operation.answer;
  json::object responses{
      {std::to_string(operation.status_of_answer()), answer_of(operation, "Done.", shape)}};
  if (const Success& also = operation.also; also.status == 304) {
    json::object known = answer_of(operation, also.help, nullptr);
    known.erase("content");
    responses["304"] = std::move(known);
  } else if (also.status != 0) {
    responses[std::to_string(also.status)] = answer_of(operation, also.help, also.answer);
  }
  for (const std::string_view status : problems_of(operation))
    responses[status] = reference("responses", status == "429" ? "TooFast" : "Problem");
  responses["default"] = reference("responses", "Problem");
  return responses;
}

json::object describe_one(const Operation& operation, json::object& schemas) {
  json::object told{{"operationId", operation.name}};
  if (operation.rights.needs == Needs::kNothing) {
    told["security"] = json::array();
  } else if (const std::string_view scope = name_of(operation.rights.needs); !scope.empty()) {
    told["security"] = {json::object(), {{"token", json::array{json::value(scope)}}}};
  }
  told["tags"] = json::array{json::value(operation.tag)};
  told["summary"] = operation.summary;
  if (!operation.audited_as.empty()) told["x-audit"] = operation.audited_as;
  told["parameters"] = parameters_of(operation, schemas);
  if (operation.has_body()) {
    const Shape& shape = *operation.request;
    const Use use = use_of(operation);
    schemas[name_of(shape, use)] = describe_shape(shape, use, &operation, schemas);
    told["requestBody"] = request_body_of(operation);
  }
  for (const Shape* const shape : {operation.answer, operation.brief, operation.also.answer})
    if (shape != nullptr)
      schemas[shape->name] = describe_shape(*shape, Use::kAnswered, nullptr, schemas);
  told["responses"] = responses_of(operation);
  return told;
}

}  // namespace

void describe(std::span<const Operation* const> operations, json::object& document) {
  json::object& paths = document["paths"].as_object();
  json::object& schemas = document["components"].as_object()["schemas"].as_object();
  // A struct that is asked for and answered is described as asked for: there it needs fewer fields.
  for (const Operation* const operation : operations)
    describe_shape(*operation->request, use_of(*operation), operation, schemas);
  for (const Operation* const operation : operations) {
    std::string method(operation->method);
    std::transform(method.begin(), method.end(), method.begin(),
                   [](char c) { return static_cast<char>(c - 'A' + 'a'); });
    json::object& path = paths[operation->path].is_object()
                             ? paths[operation->path].as_object()
                             : paths[operation->path].emplace_object();
    path[method] = describe_one(*operation, schemas);
  }
}

}  // namespace carillon::server
