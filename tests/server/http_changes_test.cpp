// What a change of one job must agree with: the preconditions of HTTP, and merge patches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

TEST_F(HttpSession, PreconditionsAreThoseOfHttp) {
  const std::string_view path = "/v1/tubes/mail/keys/order-7";
  EXPECT_EQ(ask("PUT", path, "a", "If-Match: *\r\n").status, 412);  // there is no job
  EXPECT_EQ(ask("PUT", path, "a", "If-None-Match: \"x\"\r\n").status, 400);
  EXPECT_EQ(ask("PUT", path, "a", "If-None-Match: *\r\n").status, 201);
  const Answer refused = ask("PUT", path, "b", "If-None-Match: *\r\n");
  EXPECT_EQ(refused.status, 412);
  EXPECT_NE(refused.head.find("Location: /v1/jobs/1\r\n"), std::string::npos);
  const std::string head = ask("GET", path).head;
  const std::string tag = head.substr(head.find("ETag: ") + 6, 18);
  EXPECT_EQ(ask("PUT", path, "b", "If-Match: W/" + tag + "\r\n").status, 412);
  EXPECT_EQ(ask("PUT", path, "b", "If-Match: \"x\", " + tag + "\r\n").status, 200);
}

// RFC 7396; and the tag tells it, so that nobody else's change is overwritten.
TEST_F(HttpSession, APatchMergesMetadata) {
  put(R"({"body":"a","metadata":{"a":1,"b":{"c":2,"d":3}},"content_type":"text/plain"})");
  const std::string head = ask("GET", "/v1/jobs/1").head;
  const std::string tag = head.substr(head.find("ETag: ") + 6, 18);
  const json::value changed =
      ask("PATCH", "/v1/jobs/1",
          R"({"metadata":{"a":null,"b":{"c":"x y"},"e":[]},"content_type":null})")
          .value();
  EXPECT_EQ(changed.at("metadata"), json::parse(R"({"b":{"c":"x y","d":3},"e":[]})"));
  EXPECT_EQ(changed.as_object().if_contains("content_type"), nullptr);
  EXPECT_EQ(ask("PATCH", "/v1/jobs/1", R"({"priority":1})", "If-Match: " + tag + "\r\n").status,
            412);
  EXPECT_EQ(ask("PATCH", "/v1/jobs/1", R"({"metadata":[]})").status, 400);
  const std::string large(600, 'x');
  EXPECT_EQ(ask("PATCH", "/v1/jobs/1", R"({"metadata":{"a":")" + large + R"("}})").detail(),
            "/metadata: 655 bytes as JSON; the most is 512");
  EXPECT_EQ(
      ask("PATCH", "/v1/jobs/1", R"({"metadata":null})").value().as_object().count("metadata"), 0u);
  EXPECT_EQ(ask("PATCH", "/v1/jobs/2", R"({"metadata":{}})").status, 404);
}

TEST_F(HttpSession, ADurationMayBeInWeeks) {
  const json::value job = put(R"({"body":"a","ttr":"P2W"})").value();
  EXPECT_EQ(job.at("ttr"), "1209600s");
  for (const char* const wrong : {"P2W1D", "P1.5W", "PW", "P99999999999999999999W", "P1M", "P1Y"})
    EXPECT_EQ(put(fmt::format(R"({{"ttr":"{}"}})", wrong)).status, 400) << wrong;
}

}  // namespace
}  // namespace carillon::server::http
