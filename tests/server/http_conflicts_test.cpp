// A put whose key is taken, as its on_conflict says.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

constexpr std::string_view kIgnoring = R"({"key":"k","on_conflict":"ignore","priority":1})";

class HttpConflicts : public HttpSession {
 protected:
  Answer put_with(std::string_view description, std::string_view headers) {
    return ask("POST", "/v1/tubes/mail/jobs", description,
               "Content-Type: application/json\r\n" + std::string(headers));
  }
  static bool has(const Answer& answer, std::string_view line) {
    return answer.head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
  }
  static std::string tag_of(const Answer& answer) {
    const std::size_t at = answer.head.find("ETag: ");
    return at == std::string::npos ? "none" : answer.head.substr(at + 6, 18);
  }
};

TEST_F(HttpConflicts, IgnoreIsAnsweredWithTheJobThatHasTheKey) {
  EXPECT_EQ(put(kIgnoring).status, 201);
  EXPECT_EQ(ask("PATCH", "/v1/jobs/1", R"({"priority":7})").status, 200);
  const Answer met = put(kIgnoring);
  EXPECT_EQ(met.status, 200);
  EXPECT_TRUE(has(met, "Location: /v1/jobs/1"));
  EXPECT_EQ(met.value().at("id"), 1);
  EXPECT_EQ(met.value().at("priority"), 7);
  EXPECT_FALSE(met.value().as_object().contains("body")) << "it is that of another client";
  EXPECT_EQ(tag_of(met), tag_of(ask("GET", "/v1/jobs/1")));
  EXPECT_EQ(ask("GET", "/v1/jobs/2").status, 404);

  const Answer plain = ask("POST", "/v1/tubes/mail/jobs", "x",
                           "Carillon-Key: k\r\nCarillon-On-Conflict: ignore\r\n");
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(plain.body, met.body);
  EXPECT_EQ(put(R"({"key":"k","on_conflict":"reject"})").status, 409);
  EXPECT_EQ(put(R"({"key":"k"})").status, 409);
}

TEST_F(HttpConflicts, IgnoreShowsAReservedJob) {
  put(R"({"key":"k"})");
  ask("POST", "/v1/tubes/mail:reserve");
  const Answer met = put(kIgnoring);
  EXPECT_EQ(met.status, 200);
  EXPECT_EQ(met.value().at("state"), "reserved");
  EXPECT_EQ(put(R"({"key":"k","on_conflict":"replace"})").status, 409);
}

TEST_F(HttpConflicts, IgnoreShowsFailedAttempts) {
  put(R"({"key":"k"})");
  const json::value reserved = ask("POST", "/v1/tubes/mail:reserve").value();
  const std::string lease(reserved.at("jobs").at(0).at("lease").as_string());
  ASSERT_EQ(ask("POST", "/v1/leases/" + lease + ":nack", R"({"error":"no"})").status, 200);
  EXPECT_EQ(put(kIgnoring).value().at("attempts").at(0).at("error"), "no");
}

// The key still counts, and nothing else is known of the job.
TEST_F(HttpConflicts, IgnoreTellsTheIdOfAJobThatIsDone) {
  put(R"({"key":"k","key_window":"1h"})");
  const json::value reserved = ask("POST", "/v1/tubes/mail:reserve").value();
  const std::string lease(reserved.at("jobs").at(0).at("lease").as_string());
  EXPECT_EQ(ask("POST", "/v1/leases/" + lease + ":ack").status, 204);
  const Answer met = put(kIgnoring);
  EXPECT_EQ(met.status, 200);
  EXPECT_EQ(met.body, R"({"id":1,"state":"done"})");
  EXPECT_TRUE(has(met, "Location: /v1/jobs/1"));
  EXPECT_EQ(tag_of(met), "none");
}

TEST_F(HttpConflicts, TheKeyOfAJobThatWasCancelledIsFree) {
  const std::string_view job = R"({"key":"k","key_window":"1h","delay":"1h"})";
  EXPECT_EQ(put(job).status, 201);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1").status, 204);
  EXPECT_EQ(put(job).status, 201);
  EXPECT_EQ(ask("DELETE", "/v1/tubes/mail/keys/k").status, 204);
  EXPECT_EQ(put(job).status, 201);
  EXPECT_EQ(ask("POST", "/v1/tubes/mail:clear").value().at("changed"), 1);
  EXPECT_EQ(put(job).status, 201);
  EXPECT_EQ(ask("POST", "/v1/jobs:cancel", R"({"filter":{"tube":"mail"}})").status, 200);
  EXPECT_EQ(put(job).status, 201);
}

TEST_F(HttpConflicts, ARefusalTellsTheStateOfTheJobThatHasTheKey) {
  put(R"({"key":"k","delay":"1h"})");
  const Answer delayed = put(R"({"key":"k"})");
  EXPECT_EQ(delayed.status, 409);
  EXPECT_EQ(delayed.value().at("state"), "delayed");
  EXPECT_EQ(delayed.detail(), "job 1 has the key, and is delayed");
  ASSERT_EQ(ask("PATCH", "/v1/jobs/1", R"({"delay":"0s","retry":{"max_attempts":1}})").status, 400);
  put(R"({"key":"k","on_conflict":"replace","retry":{"max_attempts":1}})");
  const json::value reserved = ask("POST", "/v1/tubes/mail:reserve").value();
  const std::string lease(reserved.at("jobs").at(0).at("lease").as_string());
  ASSERT_EQ(ask("POST", "/v1/leases/" + lease + ":nack", R"({"error":"no"})").status, 200);
  const Answer dead = put(R"({"key":"k"})");
  EXPECT_EQ(dead.status, 409);
  EXPECT_EQ(dead.value().at("state"), "dead");
  EXPECT_EQ(dead.detail(),
            "job 1 has the key, and is dead: no worker gets it before it is kicked, retried or "
            "replaced");
  const Answer create = ask("PUT", "/v1/tubes/mail/keys/k", "x", "If-None-Match: *\r\n");
  EXPECT_EQ(create.status, 412);
  EXPECT_EQ(create.value().at("state"), "dead");
  const Answer batch = ask("POST", "/v1/tubes/mail/jobs:batch",
                           R"({"jobs":[{"key":"k","on_conflict":"ignore"},{"key":"k2"}]})",
                           "Content-Type: application/json\r\n");
  EXPECT_EQ(batch.value().at("jobs").at(0).at("state"), "dead");
  EXPECT_EQ(put(R"({"key":"k","on_conflict":"ignore"})").value().at("state"), "dead");
}

TEST_F(HttpConflicts, AnIgnoredPutThatIsSentAgainIsAnsweredAsBefore) {
  const std::string_view key = "Idempotency-Key: \"abc\"\r\n";
  put(R"({"key":"k"})");
  const Answer first = put_with(kIgnoring, key);
  EXPECT_EQ(first.status, 200);
  EXPECT_FALSE(has(first, "Idempotent-Replayed: true"));
  ask("PATCH", "/v1/jobs/1", R"({"priority":7})");
  for (int n = 0; n < 2; ++n) {
    const Answer again = put_with(kIgnoring, key);
    EXPECT_EQ(again.status, 200);
    EXPECT_EQ(again.body, first.body);
    EXPECT_EQ(tag_of(again), tag_of(first));
    EXPECT_TRUE(has(again, "Location: /v1/jobs/1"));
    EXPECT_TRUE(has(again, "Idempotent-Replayed: true"));
  }
  EXPECT_EQ(put_with(R"({"key":"k","on_conflict":"ignore"})", key).status, 422);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1").status, 204);
  EXPECT_EQ(put_with(kIgnoring, key).body, first.body) << "the key is free, and nothing was put";
  EXPECT_EQ(put_with(kIgnoring, "").status, 201);
}

}  // namespace
}  // namespace carillon::server::http
