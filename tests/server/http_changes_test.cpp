// What a change of one job must agree with: the preconditions of HTTP, and merge patches.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

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
  EXPECT_EQ(ask("PUT", path, "b", "If-Match: W/" + tag + ", " + tag + "\r\n").status, 200);
  const std::string next = ask("GET", path).head;
  const std::string next_tag = next.substr(next.find("ETag: ") + 6, 18);
  const std::string lines = "If-Match: " + tag + "\r\nIf-Match: " + next_tag + "\r\n";
  EXPECT_EQ(ask("PUT", path, "b", lines).status, 200);
}

TEST_F(HttpSession, AScheduleOrAnEndpointIsMadeOrChangedAsItsPreconditionSays) {
  const std::pair<const char*, const char*> things[] = {
      {"/v1/schedules/a", R"({"every":"1h","job":{"tube":"t"}})"},
      {"/v1/endpoints/a", R"({"tube":"t","url":"https://example.org/"})"}};
  for (const auto& thing : things) {
    const char* const path = thing.first;
    const auto set = [&](std::string_view headers) {
      return ask("PUT", path, thing.second, headers);
    };
    EXPECT_EQ(set("If-Match: *\r\n").status, 412);
    EXPECT_EQ(set("If-Match: \"x\"\r\n").status, 412);
    EXPECT_EQ(ask("GET", path).status, 404);
    EXPECT_EQ(set("If-None-Match: *\r\n").status, 201);
    EXPECT_EQ(set("If-None-Match: *\r\n").status, 412);
    EXPECT_EQ(set("If-Match: *\r\n").status, 200);
    EXPECT_EQ(set("If-Match: \"x\"\r\n").status, 412);
    EXPECT_EQ(set("If-None-Match: \"x\"\r\n").status, 400);
  }
  EXPECT_EQ(ask("PUT", "/v1/schedules/a", things[0].second, "If-None-Match: *\r\n").detail(),
            "the schedule a is there already");
}

// RFC 7396: null takes away, and a job has these.
TEST_F(HttpSession, APatchWithNullTakesAwayOrIsRefused) {
  put(R"({"body":"a","expires_in":"1h","content_type":"x/y"})");
  for (const char* name :
       {"priority", "delay", "due", "ttr", "body", "body_base64", "expires_in"}) {
    const Answer refused = ask("PATCH", "/v1/jobs/1", "{\"" + std::string(name) + "\":null}");
    EXPECT_EQ(refused.status, 400) << name;
    EXPECT_EQ(refused.value().at("errors").at(0).at("pointer").as_string(),
              "/" + std::string(name));
  }
  const json::value job =
      ask("PATCH", "/v1/jobs/1", R"({"expires_at":null,"content_type":null})").value();
  EXPECT_FALSE(job.as_object().contains("expires_at"));
  EXPECT_FALSE(job.as_object().contains("content_type"));
}

TEST_F(HttpSession, NullEndsADrainAndGivesAGroupTheUsualWeight) {
  const auto drains = [&](const char* patch) {
    return ask("PATCH", "/v1/tubes/t", patch).value().at("draining");
  };
  EXPECT_EQ(drains(R"({"draining":true})"), true);
  EXPECT_EQ(drains("{}"), true);
  EXPECT_EQ(drains(R"({"draining":null})"), false) << "though the tube is forgotten then";
  const char* const group = "/v1/tubes/t/groups/g";
  put(R"({"group":"g"})", "t");
  ask("PATCH", group, R"({"weight":3})");
  EXPECT_EQ(ask("GET", group).value().at("weight"), 3);
  EXPECT_EQ(ask("PATCH", group, R"({"weight":null})").status, 200);
  EXPECT_EQ(ask("GET", group).value().at("weight"), 1);
}

TEST_F(HttpSession, SaysWhichFieldIsBeyondTheYear9999) {
  put(R"({"body":"a"})");
  const auto wrong = [](const Answer& answer) {
    return answer.status == 400 ? json::serialize(answer.value().at("errors").at(0).at("pointer"))
                                : std::to_string(answer.status);
  };
  const std::string far = "4000000d";
  const auto all = [&](const std::string& name) {
    return R"({"body":"a",")" + name + "\":\"" + far + "\"}";
  };
  for (const std::string name : {"delay", "spread", "expires_in"}) {
    const std::string pointer = "\"/" + name + "\"";
    EXPECT_EQ(wrong(put(all(name))), pointer);
    EXPECT_EQ(
        wrong(ask("PUT", "/v1/tubes/t/keys/k", all(name), "Content-Type: application/json\r\n")),
        pointer);
    EXPECT_EQ(wrong(ask("POST", "/v1/tubes/t/jobs", all(name),
                        "Content-Type: application/json\r\nIdempotency-Key: " + name + "\r\n")),
              pointer);
    EXPECT_EQ(wrong(ask("POST", "/v1/tubes/t/jobs:batch", R"({"jobs":[{},)" + all(name) + "]}")),
              "\"/jobs/1/" + name + "\"");
  }
  EXPECT_EQ(wrong(put(R"({"key":"k","key_window":"40000000d"})")), "\"/key_window\"");
  EXPECT_EQ(wrong(ask("PATCH", "/v1/jobs/1", R"({"delay":"4000000d"})")), "\"/delay\"");
  EXPECT_EQ(wrong(ask("PATCH", "/v1/jobs/1", R"({"expires_in":"4000000d"})")), "\"/expires_in\"");
}

// RFC 9110, 13.1.2.
TEST_F(HttpSession, AJobThatTheClientKnowsIsNotSentAgain) {
  const std::string_view path = "/v1/tubes/mail/keys/order-7";
  ask("PUT", path, "a");
  const auto tag_now = [&] {
    const std::string head = ask("GET", path).head;
    return head.substr(head.find("ETag: ") + 6, 18);
  };
  const auto look = [&](std::string_view method, std::string_view at, const std::string& known) {
    return ask(method, at, "", "If-None-Match: " + known + "\r\n");
  };
  const std::string tag = tag_now();
  const Answer known = look("GET", path, tag);
  EXPECT_EQ(known.status, 304);
  EXPECT_NE(known.head.find("ETag: " + tag), std::string::npos);
  EXPECT_EQ(known.body, "");
  EXPECT_EQ(look("GET", "/v1/jobs/1", "\"x\", W/" + tag).status, 304);
  EXPECT_EQ(look("HEAD", "/v1/jobs/1", "*").status, 304);
  EXPECT_EQ(look("GET", "/v1/jobs/1", "\"x\"").status, 200);
  EXPECT_EQ(look("GET", "/v1/jobs/2", "*").status, 404);
  EXPECT_EQ(ask("PATCH", path, R"({"priority":1})").status, 200);
  EXPECT_EQ(look("GET", path, tag).status, 200);
}

TEST_F(HttpSession, WhateverAJobShowsIsInItsTag) {
  put(R"({"body":"a","retry":{"max_attempts":9}})");
  std::set<std::string> tags;
  const auto look = [&] {
    const std::string head = ask("GET", "/v1/jobs/1").head;
    tags.insert(head.substr(head.find("ETag: ") + 6, 18));
  };
  look();
  const json::value jobs = ask("POST", "/v1/tubes/mail:reserve").value().at("jobs");
  look();
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1?if_reserved=ask").status, 202);
  look();
  EXPECT_EQ(tags.size(), 3u) << "its cancel was asked for";
  put(R"({"body":"b"})");
  tags.clear();
  const auto look_at_second = [&] {
    const std::string head = ask("GET", "/v1/jobs/2").head;
    tags.insert(head.substr(head.find("ETag: ") + 6, 18));
  };
  look_at_second();
  EXPECT_EQ(ask("POST", "/v1/jobs:move", R"({"filter":{"tube":"mail"},"to":"other"})").status, 200);
  look_at_second();
  EXPECT_EQ(tags.size(), 2u) << "it is in another tube";
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

TEST_F(HttpSession, ADurationIsWrittenAsOnACommandLine) {
  EXPECT_EQ(put(R"({"body":"a","ttr":"14d"})").value().at("ttr"), "1209600s");
  EXPECT_EQ(put(R"({"ttr":"PT30S"})").detail(),
            "/ttr: \"PT30S\": not a duration; use e.g. 250ms, 3s, 2h, 40d");
}

TEST_F(HttpSession, AHeaderThatIsNotReadIsRefused) {
  const Answer batch = ask("POST", "/v1/tubes/mail/jobs:batch", R"({"jobs":[{"body":"x"}]})",
                           "Content-Type: application/json\r\nCarillon-Delay: 1h\r\n");
  EXPECT_EQ(batch.status, 400) << "the delay would be lost";
  EXPECT_EQ(batch.detail(), "carillon-delay: only a put with a plain body reads such headers");
  EXPECT_FALSE(server.engine.tube_stats(server.now, "mail"));
}

TEST_F(HttpSession, AChangeThatAStopInterruptsIsNotToBeSentAgain) {
  for (int n = 0; n < 100; ++n) put(R"({"delay":"1h"})");
  const std::string kick =
      "POST /v1/tubes/mail:kick HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n"
      R"({"max":1000})";
  server.reading_takes_ns = 1'000;
  session.receive(kick, server.now.mono_ns + 1);
  const auto kicked = [&] { return server.engine.tube_stats(server.now, "mail")->jobs.ready; };
  for (int steps = 0; steps < 10 && kicked() == 0; ++steps)
    session.receive("", server.now.mono_ns + 1);
  ASSERT_GT(kicked(), 0u);
  ASSERT_LT(kicked(), 100u);
  session.close();
  const Answer told = next();
  EXPECT_EQ(told.status, 503) << told.body;
  EXPECT_EQ(told.head.find("Retry-After"), std::string::npos) << told.head;
}

TEST_F(HttpSession, AJobThatNobodyHasReservedIsBuried) {
  put(R"({"body":"a","priority":5})");
  EXPECT_EQ(ask("POST", "/v1/jobs/1:bury").status, 200);
  const json::value kept = ask("GET", "/v1/jobs/1").value();
  EXPECT_EQ(kept.at("state"), "buried");
  EXPECT_EQ(kept.at("priority"), 5);
  EXPECT_EQ(kept.at("failed_attempts"), 0);
  EXPECT_EQ(ask("POST", "/v1/jobs/1:kick").status, 200);
  EXPECT_EQ(ask("POST", "/v1/jobs/1:bury", R"({"priority":7})").status, 200);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("priority"), 7);
  EXPECT_EQ(ask("POST", "/v1/jobs/1:kick").status, 200);
  EXPECT_EQ(ask("POST", "/v1/tubes/mail:reserve").status, 200);
  EXPECT_EQ(ask("POST", "/v1/jobs/1:bury").detail(), "job 1 is reserved");
  EXPECT_EQ(ask("POST", "/v1/jobs/2:bury").detail(), "there is no job 2");
  EXPECT_EQ(ask("POST", "/v1/jobs/1:bury", R"({"priority":-1})").status, 400);
}

}  // namespace
}  // namespace carillon::server::http
