// Endpoints over HTTP that are stored already.
#include <gtest/gtest.h>

#include <string>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

// A program that embeds the queue may set any URL.
TEST_F(HttpSession, AnEndpointWhoseUrlIsNoneIsShownAsDisabled) {
  server.engine.set_endpoint(server.now, "e", {.url = "http://127.1/hook", .tube = "t"});
  const json::value told = ask("GET", "/v1/endpoints/e").value();
  EXPECT_EQ(told.at("state"), "disabled");
  EXPECT_NE(told.at("disabled").as_string().find("write it as 127.0.0.1"), std::string::npos);
  EXPECT_EQ(ask("PUT", "/v1/endpoints/e", R"({"url":"http://a.example/","tube":"t"})").status, 200);
  EXPECT_EQ(ask("GET", "/v1/endpoints/e").value().at("state"), "enabled");
}

}  // namespace
}  // namespace carillon::server::http
