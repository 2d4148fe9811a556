// openapi.json has the paths and methods that the server has, and no others.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "server/beanstalk/command.h"
#include "server/http/routes.h"
#include "server/http/web.h"

namespace carillon::server::http {
namespace {

namespace json = boost::json;

std::string in_small_letters(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

TEST(OpenApi, HasEachRouteAndNoOther) {
  std::set<std::string> described;
  const json::value api = json::parse(openapi_text());
  for (const auto& [path, methods] : api.at("paths").as_object())
    for (const auto& [method, operation] : methods.as_object())
      described.insert(std::string(method) + " " + std::string(path));
  std::set<std::string> served;
  for (const Route& route : routes())
    served.insert(in_small_letters(std::string(route.method)) + " " + std::string(route.pattern));
  EXPECT_EQ(described, served);
}

// Each name of a query is described. A row describes itself.
TEST(OpenApi, HasWhatEachRouteTakes) {
  const json::value api = json::parse(openapi_text());
  for (const Route& route : routes()) {
    if (route.operation != nullptr) continue;
    const json::object& operation = api.at("paths")
                                        .at(route.pattern)
                                        .at(in_small_letters(std::string(route.method)))
                                        .as_object();
    std::string query;
    const json::value* const described = operation.if_contains("parameters");
    for (const json::value& one : described ? described->as_array() : json::array()) {
      const json::value* const to = one.as_object().if_contains("$ref");
      const json::value parameter =
          to ? api.at_pointer(std::string_view(to->as_string()).substr(1)) : one;
      if (parameter.at("in") != "query") continue;
      query += (query.empty() ? "" : " ") + std::string(parameter.at("name").as_string());
    }
    EXPECT_EQ(query, route.query) << route.pattern;
    EXPECT_FALSE(operation.contains("requestBody")) << route.pattern;
  }
}

TEST(OpenApi, SaysWhatNamesAndIdsAPathTakes) {
  const json::value api = json::parse(openapi_text());
  const auto schema = [&](std::string_view path, const char* method) {
    return api.at("paths").at(path).at(method).at("parameters").at(0).at("schema");
  };
  EXPECT_EQ(schema("/v1/jobs/{id}", "get"),
            json::parse(R"({"type":"integer","minimum":1,"maximum":8796093022207})"));
  EXPECT_EQ(schema("/v1/tubes/{tube}", "get").at("$ref"), "#/components/schemas/Name");
  EXPECT_EQ(schema("/v1/schedules/{name}", "put").at("$ref"), "#/components/schemas/Name");
  const auto pattern = api.at("components").at("schemas").at("Name").at("pattern").as_string();
  const std::regex form{std::string(pattern)};
  for (int c = 0; c < 256; ++c) {
    const std::string one(1, static_cast<char>(c));
    for (const std::string& text : {one, "a" + one})
      EXPECT_EQ(std::regex_match(text, form), is_tube_name(text)) << c;
  }
  EXPECT_FALSE(std::regex_match("", form));
  EXPECT_TRUE(std::regex_match(std::string(200, 'a'), form));
  EXPECT_FALSE(std::regex_match(std::string(201, 'a'), form));
}

// Each reference leads somewhere, and each schema is used.
TEST(OpenApi, ItsReferencesAreWhole) {
  const std::string text(openapi_text());
  const json::value api = json::parse(text);
  const json::object& schemas = api.at("components").at("schemas").as_object();
  const std::string start = "#/components/schemas/";
  std::set<std::string> used;
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const std::size_t begin = at + start.size();
    used.insert(text.substr(begin, text.find('"', begin) - begin));
  }
  std::set<std::string> there;
  for (const auto& [name, schema] : schemas) there.insert(std::string(name));
  EXPECT_EQ(used, there);
}

}  // namespace
}  // namespace carillon::server::http
