// openapi.json has the paths and methods that the server has, and no others.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>

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
  const json::value api = json::parse(find_web_file("openapi.json")->text);
  for (const auto& [path, methods] : api.at("paths").as_object())
    for (const auto& [method, operation] : methods.as_object())
      described.insert(std::string(method) + " " + std::string(path));
  std::set<std::string> served;
  for (const Route& route : routes())
    served.insert(in_small_letters(std::string(route.method)) + " " + std::string(route.pattern));
  EXPECT_EQ(described, served);
}

// Each reference leads somewhere, and each schema is used.
TEST(OpenApi, ItsReferencesAreWhole) {
  const std::string text(find_web_file("openapi.json")->text);
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
