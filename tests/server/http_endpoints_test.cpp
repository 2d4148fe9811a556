// Endpoints over HTTP: what is refused, and those that are stored already.
#include <gtest/gtest.h>

#include <string>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

// A program that embeds the queue may set any URL.
TEST_F(HttpSession, AnEndpointWithAWrongUrlIsShownAsDisabled) {
  server.engine.set_endpoint(server.now, "e", {.url = "http://127.1/hook", .tube = "t"});
  const json::value told = ask("GET", "/v1/endpoints/e").value();
  EXPECT_EQ(told.at("state"), "disabled");
  EXPECT_NE(told.at("disabled").as_string().find("write it as 127.0.0.1"), std::string::npos);
  EXPECT_EQ(ask("PUT", "/v1/endpoints/e", R"({"url":"http://a.example/","tube":"t"})").status, 200);
  EXPECT_EQ(ask("GET", "/v1/endpoints/e").value().at("state"), "enabled");
}

// What only the function can check is named with the rest.
TEST_F(HttpSession, AllThatIsWrongWithAnEndpointIsNamedAtOnce) {
  const Answer refused = ask("PUT", "/v1/endpoints/e",
                             R"({"url":"ftp://a.example/","tube":"a b","secrets":["x"],)"
                             R"("timeout":"1h","headers":{"Host":"x","A":"b\r\n","a b":""}})");
  ASSERT_EQ(refused.status, 400) << refused.body;
  std::string pointers;
  const json::value told = refused.value();
  for (const json::value& error : told.at("errors").as_array())
    pointers += std::string(error.at("pointer").as_string()) + " ";
  EXPECT_EQ(pointers, "/tube /secrets/0 /timeout /url /headers/Host /headers/A /headers/a b ");
  EXPECT_EQ(ask("GET", "/v1/endpoints/e").status, 404);
}

TEST_F(HttpSession, AnEndpointTellsItsNewSecretOnce) {
  const std::string endpoint = R"({"url":"http://a.example/","tube":"t"})";
  const Answer made = ask("PUT", "/v1/endpoints/e", endpoint);
  EXPECT_EQ(made.status, 201);
  EXPECT_TRUE(made.value().at("secret").as_string().starts_with("whsec_"));
  EXPECT_FALSE(ask("PUT", "/v1/endpoints/e", endpoint).value().as_object().contains("secret"));
}

}  // namespace
}  // namespace carillon::server::http
