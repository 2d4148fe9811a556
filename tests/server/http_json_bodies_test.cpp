// Bodies of jobs that are JSON, and what their Content-Type says of them.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

constexpr std::string_view kForm = "Content-Type: application/x-www-form-urlencoded\r\n";

class HttpJsonBodies : public HttpSession {
 protected:
  json::value job(int id) { return ask("GET", "/v1/jobs/" + std::to_string(id)).value(); }
};

TEST_F(HttpJsonBodies, AnyJsonValueIsABodyAndIsKeptAsItsText) {
  const std::pair<std::string_view, std::string_view> bodies[] = {
      {R"({"a": 1})", R"({"a":1})"},
      {R"([1, 2.5, 1e30, "x\n", null, true])", R"([1,2.5,1e+30,"x\n",null,true])"},
      {"18446744073709551615", "18446744073709551615"},
      {"-0.025", "-0.025"},
      {"false", "false"},
      {"{}", "{}"}};
  int id = 0;
  for (const auto& [given, kept] : bodies) {
    const Answer made = put(R"({"body":)" + std::string(given) + "}");
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(job(++id).at("body").as_string(), kept);
    EXPECT_EQ(job(id).at("content_type"), "application/json");
  }
}

TEST_F(HttpJsonBodies, ATextIsABodyWithoutAType) {
  put(R"({"body":"{\"a\": 1}"})");
  EXPECT_EQ(job(1).at("body"), R"({"a": 1})");
  EXPECT_FALSE(job(1).as_object().contains("content_type"));
  put(R"({"body":null})");
  EXPECT_EQ(job(2).at("body"), "") << "null is left out";
  put(R"({"body":{"a":1},"content_type":"application/x.mine+json"})");
  EXPECT_EQ(job(3).at("content_type"), "application/x.mine+json");
}

TEST_F(HttpJsonBodies, TheyComeInBatchesPatchesKeysAndSchedulesToo) {
  ask("POST", "/v1/tubes/mail/jobs:batch", R"({"jobs":[{"body":{"a":1}},{"body":"x"}]})");
  EXPECT_EQ(job(1).at("body"), R"({"a":1})");
  EXPECT_EQ(job(1).at("content_type"), "application/json");
  EXPECT_EQ(ask("PATCH", "/v1/jobs/2", R"({"body":[1,2]})").value().at("body"), "[1,2]");
  EXPECT_EQ(job(2).at("content_type"), "application/json");
  ask("PUT", "/v1/tubes/mail/keys/k", R"({"body":7})", "Content-Type: application/json\r\n");
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/keys/k").value().at("body"), "7");
  const Answer made = ask("PUT", "/v1/schedules/s", R"({"every":"1h","job":{"body":{"a":1}}})");
  EXPECT_EQ(made.value().at("job").at("body"), R"({"a":1})");
  EXPECT_EQ(made.value().at("job").at("content_type"), "application/json");
}

TEST_F(HttpJsonBodies, MayHaveManyValues) {
  std::string list = "[1";
  for (int n = 0; n < 5'000; ++n) list += ",1";
  EXPECT_EQ(put(R"({"body":)" + list + "]}").status, 201);
  for (int n = 0; n < 20'000; ++n) list += ",1";
  EXPECT_EQ(put(R"({"body":)" + list + "]}").status, 400);
}

// curl -d sends the type of a form by itself. A guess would lose the delay of a description, or
// the fields of a body.
TEST_F(HttpJsonBodies, AJsonObjectWithTheTypeOfAFormIsRefused) {
  const std::string_view description = R"({"body": "x", "delay": "5s"})";
  for (const auto& [method, path] :
       {std::pair("POST", "/v1/tubes/mail/jobs"), std::pair("PUT", "/v1/tubes/mail/keys/k")}) {
    const Answer refused = ask(method, path, description, kForm);
    EXPECT_EQ(refused.status, 415);
    EXPECT_EQ(refused.value().at("type"), "/docs#wrong-type");
    EXPECT_NE(refused.detail().find("add -H 'Content-Type: application/json'"), std::string::npos);
  }
  EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", " {\"delay\": \"5s\",}\n",
                "content-type: Application/X-WWW-Form-Urlencoded; charset=utf-8\r\n")
                .status,
            415);
  EXPECT_EQ(ask("GET", "/v1/stats").value().at("jobs").at("put"), 0);
}

TEST_F(HttpJsonBodies, WhatIsNoJsonObjectKeepsItsWayWithTheTypeOfAForm) {
  for (const std::string_view body : {"hello", "a=1&b=2", "[1]", "{half", "7", ""})
    EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", body, kForm).status, 201) << body;
  EXPECT_FALSE(job(1).as_object().contains("content_type"));
  const std::string_view object = R"({"order":7})";
  EXPECT_EQ(
      ask("POST", "/v1/tubes/mail/jobs", object, std::string(kForm) + "Carillon-Delay: 5s\r\n")
          .status,
      201)
      << "a header describes the job";
  EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", object, "Content-Type: text/plain\r\n").status, 201);
  EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", object).status, 201) << "no type";
  EXPECT_EQ(ask("POST", "/v1/tubes/mail:reserve", R"({"max":2})", kForm).status, 200)
      << "it takes JSON alone";
}

TEST_F(HttpJsonBodies, AContentTypeThatNoHeaderCanHaveIsRefused) {
  for (const char* const type : {R"(a\r\nX-Evil: b)", R"(\u00e9)", R"(\u0000)", ""}) {
    const std::string field = R"("content_type":")" + std::string(type) + "\"";
    for (const Answer& refused :
         {put("{" + field + "}"), ask("PATCH", "/v1/jobs/1", "{" + field + "}"),
          ask("PUT", "/v1/schedules/s", R"({"every":"1h","job":{)" + field + "}}")}) {
      EXPECT_EQ(refused.status, 400);
      EXPECT_NE(refused.detail().find("not a content type: printable ASCII"), std::string::npos);
    }
    EXPECT_EQ(put(R"({"attributes":{)" + field + "}}").status, 400);
  }
  EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", "x", "Content-Type: a\xff\r\n").status, 400);
}

}  // namespace
}  // namespace carillon::server::http
