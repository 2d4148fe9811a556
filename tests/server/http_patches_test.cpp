// PATCH of schedules and endpoints: what is not named stays (RFC 7396).
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

class HttpPatches : public HttpSession {
 protected:
  Answer patch(std::string_view path, std::string_view change) {
    return ask("PATCH", path, change, "Content-Type: application/merge-patch+json\r\n");
  }
  std::string pointer(std::string_view path, std::string_view change) {
    const Answer refused = patch(path, change);
    EXPECT_EQ(refused.status, 400) << change << refused.body;
    return std::string(refused.value().at("errors").at(0).at("pointer").as_string());
  }
};

TEST_F(HttpPatches, AScheduleKeepsWhatIsNotNamed) {
  const char* const path = "/v1/schedules/a";
  ask("PUT", path,
      R"({"cron":"30 2 * * *","time_zone":"Europe/Berlin","overlap":"skip","job":{"tube":"mail",)"
      R"("body":"x","group":"g","metadata":{"a":1,"b":2},"retry":{"max_attempts":3}}})");
  const Answer changed = patch(path, R"({"cron":"0 3 * * *","job":{"metadata":{"a":null,"c":3}}})");
  ASSERT_EQ(changed.status, 200) << changed.body;
  const json::value shown = ask("GET", path).value();
  EXPECT_EQ(shown, changed.value());
  EXPECT_EQ(shown.at("cron"), "0 3 * * *");
  EXPECT_EQ(shown.at("time_zone"), "Europe/Berlin");
  EXPECT_EQ(shown.at("overlap"), "skip");
  EXPECT_EQ(shown.at("job").at("body"), "x");
  EXPECT_EQ(shown.at("job").at("group"), "g");
  EXPECT_EQ(shown.at("job").at("retry").at("max_attempts"), 3);
  EXPECT_EQ(json::serialize(shown.at("job").at("metadata")), R"({"b":2,"c":3})");
  EXPECT_EQ(patch(path, R"({"paused":true})").value().at("paused"), true);
  EXPECT_EQ(patch(path, R"({"overlap":null})").value().at("overlap"), "allow");
  EXPECT_EQ(patch(path, R"({"paused":false})").value().at("paused"), false);
}

TEST_F(HttpPatches, AScheduleGoesFromCronToAPeriodAndBack) {
  const char* const path = "/v1/schedules/a";
  ask("PUT", path, R"({"cron":"30 2 * * *","time_zone":"Europe/Berlin","job":{"tube":"mail"}})");
  const Answer every = patch(path, R"({"every":"1h"})");
  ASSERT_EQ(every.status, 200) << every.body;
  EXPECT_FALSE(every.value().as_object().contains("cron"));
  const Answer cron = patch(path, R"({"cron":"@daily"})");
  ASSERT_EQ(cron.status, 200) << cron.body;
  EXPECT_FALSE(cron.value().as_object().contains("every"));
}

TEST_F(HttpPatches, ATextTakesThePlaceOfBytes) {
  const char* const path = "/v1/schedules/a";
  ask("PUT", path, R"({"every":"1h","job":{"tube":"mail","body_base64":"/w=="}})");
  EXPECT_EQ(patch(path, R"({"job":{"body":"x"}})").value().at("job").at("body"), "x");
  EXPECT_EQ(patch(path, R"({"job":{"body_base64":"/w=="}})").value().at("job").at("body_base64"),
            "/w==");
}

TEST_F(HttpPatches, AWrongChangeOfAScheduleIsNamed) {
  const char* const path = "/v1/schedules/a";
  EXPECT_EQ(patch(path, "{}").status, 404);
  ask("PUT", path, R"({"every":"1h","job":{"tube":"mail"}})");
  EXPECT_EQ(pointer(path, R"({"colour":"red"})"), "/colour");
  EXPECT_EQ(pointer(path, R"({"name":"b"})"), "/name");
  EXPECT_EQ(pointer(path, R"({"job":{"delay":"1s"}})"), "/job/delay");
  EXPECT_EQ(pointer(path, R"({"job":null})"), "/job");
  EXPECT_EQ(pointer(path, R"({"every":null})"), "/cron");
  EXPECT_EQ(pointer(path, R"({"every":"1h","cron":"@daily"})"), "/every");
  EXPECT_EQ(patch(path, "").status, 400);
  EXPECT_EQ(patch(path, "[]").status, 400);
}

TEST_F(HttpPatches, AnEndpointKeepsWhatIsNotNamed) {
  const char* const path = "/v1/endpoints/e";
  ask("PUT", path,
      R"({"url":"https://example.org/a","tube":"mail","concurrency":3,)"
      R"("headers":{"X-Key":"secret","X-Other":"1"}})");
  ask("POST", "/v1/endpoints/e:pause");
  const json::value before = ask("GET", path).value();
  const Answer changed = patch(path, R"({"timeout":"5s","headers":{"X-Other":null,"X-New":"2"}})");
  ASSERT_EQ(changed.status, 200) << changed.body;
  const json::value after = changed.value();
  EXPECT_EQ(after.at("timeout"), "5s");
  EXPECT_EQ(after.at("concurrency"), 3);
  EXPECT_EQ(after.at("secrets"), before.at("secrets"));
  EXPECT_EQ(after.at("state"), "paused");
  EXPECT_EQ(json::serialize(after.at("headers")), R"(["X-Key","X-New"])");
  EXPECT_FALSE(after.as_object().contains("secret"));
}

TEST_F(HttpPatches, AWrongChangeOfAnEndpointIsNamed) {
  const char* const path = "/v1/endpoints/e";
  EXPECT_EQ(patch(path, "{}").status, 404);
  ask("PUT", path, R"({"url":"https://example.org/a","tube":"mail"})");
  EXPECT_EQ(pointer(path, R"({"url":null})"), "/url");
  EXPECT_EQ(pointer(path, R"({"secrets":null})"), "/secrets");
  EXPECT_EQ(pointer(path, R"({"concurrency":0})"), "/concurrency");
  EXPECT_EQ(pointer(path, R"({"state":"enabled"})"), "/state");
}

}  // namespace
}  // namespace carillon::server::http
