// Idempotency-Key of requests that put nothing: the first answer is kept in memory, and comes
// again.
#include "server/api/idempotency_cache.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"
#include "server/net/memory_pool.h"

namespace carillon::server::http {
namespace {

constexpr std::uint64_t kDayMs = 86'400'000;

TEST(IdempotencyCache, AreKeptForADay) {
  MemoryPool memory(1 << 20);
  IdempotencyCache answers(memory);
  answers.keep("a", "seven", {.status = 202, .body = "{}"}, 10);
  const auto* first = answers.find("a", 10 + kDayMs - 1);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->fingerprint, "seven");
  EXPECT_EQ(first->reply.status, 202U);
  EXPECT_EQ(first->reply.body, "{}");
  EXPECT_EQ(answers.find("b", 10), nullptr);
  EXPECT_GT(memory.used(), 100U);
  EXPECT_EQ(answers.find("a", 10 + kDayMs), nullptr);
  EXPECT_EQ(memory.used(), 0U);
}

TEST(IdempotencyCache, TakeAPartOfTheMemory) {
  MemoryPool memory(1 << 20);
  IdempotencyCache answers(memory);
  for (int n = 0; n < 100; ++n) {
    answers.keep(std::to_string(n), "", {.body = std::string(1'000, 'x')}, 0);
    EXPECT_LE(memory.used(), 32U << 10);
  }
  EXPECT_EQ(answers.find("0", 0), nullptr);
  EXPECT_NE(answers.find("99", 0), nullptr);
  answers.keep("large", "", {.body = std::string(33 << 10, 'x')}, 0);
  EXPECT_EQ(answers.find("large", 0), nullptr);
  EXPECT_EQ(memory.used(), 0U);
}

class HttpFirstAnswers : public HttpSession {
 protected:
  static constexpr std::string_view kKey = "Idempotency-Key: \"abc\"\r\n";

  Answer reserve(std::string_view body = "{}", std::string_view headers = kKey) {
    return ask("POST", "/v1/tubes/mail:reserve", body, headers);
  }
  static bool is_replayed(const Answer& answer) {
    return answer.head.find("Idempotent-Replayed: true\r\n") != std::string::npos;
  }
  // The lease of the first job.
  static std::string lease_of(const Answer& answer) {
    return std::string(answer.value().at("jobs").at(0).at("lease").as_string());
  }
};

TEST_F(HttpFirstAnswers, AWorkerThatGotNoAnswerGetsTheSameJobs) {
  for (const char* body : {"a", "b", "c"}) put(json::serialize(json::object{{"body", body}}));
  const Answer first = reserve(R"({"max":2})");
  EXPECT_EQ(first.status, 200);
  EXPECT_FALSE(is_replayed(first));
  const Answer again = reserve(R"({"max":2})");
  EXPECT_EQ(again.body, first.body);
  EXPECT_TRUE(is_replayed(again));
  EXPECT_EQ(server.engine.stats(server.now).jobs.reserved, 2U);
  EXPECT_EQ(reserve(R"({"max":3})").status, 422);
  EXPECT_EQ(ask("POST", "/v1/tubes/other:reserve", R"({"max":2})", kKey).status, 422);
  EXPECT_EQ(server.engine.stats(server.now).jobs.reserved, 2U);
  EXPECT_NE(reserve(R"({"max":2})", "Idempotency-Key: def\r\n").body, first.body);
}

TEST_F(HttpFirstAnswers, AWorkerKnowsThatItsJobIsDone) {
  put("{}");
  const std::string ack = "/v1/leases/" + lease_of(reserve()) + ":ack";
  const std::string_view key = "Idempotency-Key: ack\r\n";
  EXPECT_EQ(ask("POST", ack, "", key).status, 204);
  EXPECT_EQ(ask("POST", ack, "").status, 409);
  const Answer again = ask("POST", ack, "", key);
  EXPECT_EQ(again.status, 204);
  EXPECT_TRUE(is_replayed(again));
}

TEST_F(HttpFirstAnswers, AChangeIsMadeOnce) {
  for (int n = 0; n < 3; ++n) put(R"({"delay":"1h"})");
  const std::string_view some = R"({"filter":{"tube":"mail"},"max":1})";
  const Answer first = ask("POST", "/v1/jobs:cancel", some, kKey);
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(ask("POST", "/v1/jobs:cancel", some, kKey).body, first.body);
  EXPECT_EQ(server.engine.stats(server.now).jobs.delayed, 2U);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/2", "", "Idempotency-Key: d\r\n").status, 204);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/2", "").status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/2", "", "Idempotency-Key: d\r\n").status, 204);
}

TEST_F(HttpFirstAnswers, TheQueryTellsRequestsApart) {
  put(R"({"delay":"1h"})");
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1?if_reserved=ask", "", kKey).status, 204);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1", "", kKey).status, 422);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1?if_reserved=ask", "", kKey).status, 204);
}

TEST_F(HttpFirstAnswers, AKeyIsOfOneRequestAlone) {
  const auto put_with = [&](std::string_view key) {
    return ask("POST", "/v1/tubes/mail/jobs", "x", key).status;
  };
  EXPECT_EQ(put_with(kKey), 201);
  EXPECT_EQ(reserve().status, 422);
  pass(kDayMs + 1'000);
  EXPECT_EQ(reserve().status, 200);
  EXPECT_EQ(put_with(kKey), 422);
  pass(kDayMs + 1'000);
  EXPECT_EQ(put_with(kKey), 201);
}

// The same request may succeed later.
TEST_F(HttpFirstAnswers, ARefusalIsNotKept) {
  const auto patch = [&] { return ask("PATCH", "/v1/jobs/1", R"({"priority":5})", kKey).status; };
  EXPECT_EQ(patch(), 404);
  put(R"({"delay":"1h"})");
  EXPECT_EQ(patch(), 200);
}

TEST_F(HttpFirstAnswers, WhileTheFirstOneWaitsTheSecondIsRefused) {
  EXPECT_EQ(reserve(R"({"wait":"20s"})").status, 0);
  Session other(server.service, names);
  speaker = &other;
  EXPECT_EQ(reserve(R"({"wait":"20s"})").status, 409);
  EXPECT_EQ(reserve(R"({"wait":"10s"})").status, 422);
  session.close();
  put("{}");
  const Answer got = reserve(R"({"wait":"20s"})");
  EXPECT_EQ(got.status, 200) << "who has left is not waited for";
  EXPECT_FALSE(is_replayed(got));
}

// Else a client that left while it waited, and asks again, would get none for a day.
TEST_F(HttpFirstAnswers, NoJobIsNoAnswerToKeep) {
  EXPECT_EQ(reserve(R"({"wait":"20s"})").status, 0);
  session.end_of_input();
  deliver();
  EXPECT_EQ(next().body, R"({"jobs":[]})");
  put("{}");
  Session other(server.service, names);
  speaker = &other;
  const Answer got = reserve(R"({"wait":"20s"})");
  EXPECT_FALSE(is_replayed(got));
  EXPECT_FALSE(lease_of(got).empty());
}

TEST_F(HttpFirstAnswers, APreconditionTellsRequestsApart) {
  put(R"({"delay":"1h"})");
  const std::string key(kKey);
  const auto patch = [&](const std::string& headers) {
    return ask("PATCH", "/v1/jobs/1", R"({"priority":5})", headers).status;
  };
  EXPECT_EQ(patch(key), 200);
  EXPECT_EQ(patch(key + "If-Match: \"x\"\r\n"), 422);
}

TEST_F(HttpFirstAnswers, UntilTheChangeIsDurableTheRequestIsInFlight) {
  put("{}");
  const std::string ack = "/v1/leases/" + lease_of(reserve()) + ":ack";
  const std::string_view key = "Idempotency-Key: ack\r\n";
  durable = server.engine.last_sequence();
  EXPECT_EQ(ask("POST", ack, "", key).status, 0) << "it waits for the disk";
  Session other(server.service, names);
  speaker = &other;
  EXPECT_EQ(ask("POST", ack, "", key).status, 409);
  durable = server.engine.last_sequence();
  EXPECT_EQ(ask("POST", ack, "", key).status, 204);
}

TEST_F(HttpFirstAnswers, AReadHasNoUseForTheKey) {
  put("{}");
  EXPECT_EQ(ask("GET", "/v1/jobs/1", "", kKey).status, 200);
  EXPECT_EQ(reserve().status, 200);
  EXPECT_EQ(ask("GET", "/v1/jobs/1", "", kKey).value().at("state"), "reserved");
}

}  // namespace
}  // namespace carillon::server::http
