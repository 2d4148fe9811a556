// If-Match and If-None-Match over HTTP: they hold, or are refused.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

class HttpPreconditions : public HttpSession {
 protected:
  static std::string tag_of(const Answer& answer) {
    const std::string_view field = "\r\nETag: ";
    const std::size_t at = answer.head.find(field);
    if (at == std::string::npos) return "none";
    const std::size_t begin = at + field.size();
    return answer.head.substr(begin, answer.head.find('\r', begin) - begin);
  }
  static std::string if_match(const std::string& tag) { return "If-Match: " + tag + "\r\n"; }
  static std::string if_none_match(const std::string& tag) {
    return "If-None-Match: " + tag + "\r\n";
  }
  int with(const std::string& header, std::string_view method, std::string_view path,
           std::string_view body = "") {
    return ask(method, path, body, header).status;
  }
};

TEST_F(HttpPreconditions, WhatAnOperationDoesNotHonourIsRefusedAndNothingIsDone) {
  put("{}");
  const Answer refused =
      ask("POST", "/v1/jobs:cancel", R"({"filter":{"tube":"mail"}})", if_match("\"x\""));
  EXPECT_EQ(refused.status, 412);
  EXPECT_EQ(refused.value().at("type"), "/docs#no-precondition");
  EXPECT_EQ(refused.detail(), "POST /v1/jobs:cancel honours no If-Match; send it without");
  EXPECT_EQ(with(if_none_match("*"), "POST", "/v1/tubes/mail/jobs"), 412);
  EXPECT_EQ(with(if_match("*"), "GET", "/v1/tubes/mail/jobs"), 412);
  EXPECT_EQ(with("If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n", "DELETE", "/v1/jobs/1"),
            412);
  EXPECT_EQ(with("If-Modified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n", "GET", "/v1/jobs/1"), 200);
  EXPECT_EQ(with("If-Match:\r\n", "DELETE", "/v1/jobs/1"), 400);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").value().at("jobs").at("ready"), 1);
}

TEST_F(HttpPreconditions, AJobIsKickedOrBuriedOnlyIfItHasTheTag) {
  const Answer job = put(R"({"delay":"1h"})");
  EXPECT_EQ(with(if_match("\"x\""), "POST", "/v1/jobs/1:kick"), 412);
  EXPECT_EQ(with(if_match("\"x\""), "POST", "/v1/jobs/1:bury"), 412);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("state"), "delayed");
  const Answer kicked = ask("POST", "/v1/jobs/1:kick", "", if_match(tag_of(job)));
  EXPECT_EQ(kicked.value().at("state"), "ready");
  EXPECT_NE(tag_of(kicked), tag_of(job));
  EXPECT_EQ(with(if_match(tag_of(kicked)), "POST", "/v1/jobs/1:bury"), 200);
}

TEST_F(HttpPreconditions, ATubeIsChangedOnlyIfItsSettingsAreTheSame) {
  const char* const path = "/v1/tubes/pg";
  EXPECT_EQ(with(if_match("*"), "PATCH", path, R"({"draining":false})"), 412) << "it is not there";
  const std::string tag = tag_of(ask("PATCH", path, R"({"limits":{"max_running":4}})"));
  EXPECT_EQ(tag_of(ask("GET", path)), tag);
  EXPECT_EQ(with(if_none_match(tag), "GET", path), 304);
  put("{}", "pg");
  EXPECT_EQ(with(if_none_match(tag), "GET", path), 200) << "there is a job more";
  for (const char* const action : {":pause", ":resume", ":kick", ":clear"})
    EXPECT_EQ(with(if_match("\"x\""), "POST", path + std::string(action)), 412) << action;
  EXPECT_EQ(with(if_match(tag), "POST", path + std::string(":pause")), 200);
  const Answer drained = ask("PATCH", path, R"({"draining":true})", if_match("\"x\", " + tag));
  EXPECT_EQ(drained.status, 200) << "a job is no other setting";
  EXPECT_EQ(with(if_match(tag), "PATCH", path, R"({"draining":false})"), 412);
  EXPECT_EQ(with(if_match("W/" + tag_of(drained)), "PATCH", path, R"({"draining":false})"), 412);
  EXPECT_EQ(ask("GET", path).value().at("draining"), true);
}

TEST_F(HttpPreconditions, AGroupHasATagToo) {
  const char* const path = "/v1/tubes/pg/groups/g";
  EXPECT_EQ(with(if_match("*"), "PATCH", path, R"({"weight":2})"), 412);
  const Answer set = ask("PATCH", path, R"({"weight":2})");
  EXPECT_EQ(set.value().at("weight"), 2);
  EXPECT_EQ(with(if_none_match(tag_of(set)), "GET", path), 304);
  EXPECT_EQ(with(if_match("\"x\""), "PATCH", path, R"({"weight":3})"), 412);
  EXPECT_EQ(with(if_match(tag_of(set)), "PATCH", path, R"({"weight":3})"), 200);
}

TEST_F(HttpPreconditions, AScheduleIsChangedOnlyIfItHasTheTag) {
  const char* const path = "/v1/schedules/a";
  const std::string_view every = R"({"every":"1h","job":{"tube":"mail"}})";
  EXPECT_EQ(with(if_match("\"x\""), "PUT", path, every), 412) << "it is not there";
  const Answer made = ask("PUT", path, every, if_none_match("*"));
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(tag_of(ask("GET", path)), tag_of(made));
  EXPECT_EQ(with(if_none_match(tag_of(made)), "GET", path), 304);
  EXPECT_EQ(with(if_none_match("\"x\""), "PUT", path, every), 400) << "write * here";
  for (const char* const action : {":pause", ":resume", ":trigger"})
    EXPECT_EQ(with(if_match("\"x\""), "POST", path + std::string(action)), 412) << action;
  for (const auto& [method, body] :
       {std::pair("PUT", every), std::pair("DELETE", std::string_view()),
        std::pair("PATCH", std::string_view(R"({"paused":true})"))})
    EXPECT_EQ(with(if_match("\"x\""), method, path, body), 412) << method;
  const Answer paused = ask("POST", path + std::string(":pause"), "", if_match(tag_of(made)));
  EXPECT_EQ(paused.value().at("paused"), true);
  EXPECT_EQ(with(if_match(tag_of(made)), "DELETE", path), 412) << "somebody has paused it";
  pass(3'600'000);
  EXPECT_EQ(with(if_match(tag_of(paused)), "PUT", path, every), 200)
      << "a skipped time is no change";
  EXPECT_EQ(with(if_match("*"), "DELETE", path), 204);
}

TEST_F(HttpPreconditions, AScheduleThatWasMadeAnewHasAnotherTag) {
  const std::string_view every = R"({"every":"1h","start":0,"job":{"tube":"mail"}})";
  const std::string tag = tag_of(ask("PUT", "/v1/schedules/a", every));
  ask("DELETE", "/v1/schedules/a");
  pass(1);
  EXPECT_NE(tag_of(ask("PUT", "/v1/schedules/a", every)), tag);
  EXPECT_EQ(with(if_match(tag), "DELETE", "/v1/schedules/a"), 412);
}

TEST_F(HttpPreconditions, ATriggerIsAnsweredAgainThoughTheScheduleHasAnotherTag) {
  const std::string tag =
      tag_of(ask("PUT", "/v1/schedules/a", R"({"every":"1h","job":{"tube":"mail"}})"));
  const std::string headers = if_match(tag) + "Idempotency-Key: k\r\n";
  EXPECT_EQ(with(headers, "POST", "/v1/schedules/a:trigger"), 201);
  ask("POST", "/v1/schedules/a:pause");
  const Answer again = ask("POST", "/v1/schedules/a:trigger", "", headers);
  EXPECT_EQ(again.status, 201);
  EXPECT_NE(again.head.find("Idempotent-Replayed: true"), std::string::npos);
}

TEST_F(HttpPreconditions, AnEndpointIsChangedOnlyIfItHasTheTag) {
  const char* const path = "/v1/endpoints/e";
  const std::string_view body = R"({"url":"https://example.org/a","tube":"mail"})";
  EXPECT_EQ(with(if_match("*"), "PUT", path, body), 412);
  const Answer made = ask("PUT", path, body, if_none_match("*"));
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string tag = tag_of(ask("GET", path));
  EXPECT_EQ(with(if_none_match(tag), "GET", path), 304);
  EXPECT_EQ(with(if_match("\"x\""), "DELETE", path), 412);
  for (const char* const action : {":pause", ":resume", ":rotate", ":test"})
    EXPECT_EQ(with(if_match("\"x\""), "POST", path + std::string(action)), 412) << action;
  EXPECT_EQ(with(if_match(tag_of(made)), "POST", path + std::string(":rotate")), 200);
  EXPECT_EQ(with(if_match(tag), "PUT", path, body), 412) << "it has another secret";
  EXPECT_EQ(with(if_none_match("*"), "PUT", path, body), 412);
}

}  // namespace
}  // namespace carillon::server::http
