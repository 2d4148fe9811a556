// Batches and Idempotency-Key over HTTP.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "http_fixture.h"
#include "server/api/field.h"

namespace carillon::server::http {
namespace {

class HttpBatches : public HttpSession {
 protected:
  Answer batch(std::string_view body, std::string_view headers = "") {
    return ask("POST", "/v1/tubes/mail/jobs:batch", body, headers);
  }
  // Returns the rest of the header's line after the name; empty if the header has no such line.
  static std::string line_of(const Answer& answer, std::string_view name) {
    const std::size_t at = answer.head.find(name);
    return at == std::string::npos ? "" : answer.head.substr(at, answer.head.find('\r', at) - at);
  }
  std::int64_t puts() {
    return ask("GET", "/v1/stats").value().at("jobs").at("put").to_number<std::int64_t>();
  }
};

TEST_F(HttpBatches, PutsAllJobsWithOneAppend) {
  const queue::Sequence before = server.engine.last_sequence();
  const Answer put = batch(R"({"jobs":[{"body":"a"},{"body":"b","delay":"30s","key":"k"}]})");
  EXPECT_EQ(put.status, 200);
  const json::value told = put.value();
  EXPECT_EQ(told.at("jobs").as_array().size(), 2u);
  EXPECT_EQ(told.at("jobs").at(1).at("status"), 201);
  EXPECT_EQ(told.at("jobs").at(1).at("id"), 2);
  EXPECT_EQ(server.engine.last_sequence(), before + 1);
  EXPECT_EQ(ask("GET", "/v1/jobs/2").value().at("state"), "delayed");
}

TEST_F(HttpBatches, PutsAllOrNone) {
  batch(R"({"jobs":[{"key":"taken"}]})");
  const Answer refused = batch(R"({"jobs":[{"body":"a"},{"key":"taken"}]})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.value().at("errors").at(0).at("pointer"), "/jobs/1/key");
  EXPECT_EQ(puts(), 1);
  const Answer left_out =
      batch(R"({"jobs":[{"body":"a"},{"key":"taken","on_conflict":"ignore"}]})");
  EXPECT_EQ(left_out.value().at("jobs").at(0).at("status"), 201);
  EXPECT_EQ(left_out.value().at("jobs").at(1).at("status"), 200);
  EXPECT_EQ(left_out.value().at("jobs").at(1).at("id"), 1);
}

TEST_F(HttpBatches, NamesEachWrongFieldOfEachJob) {
  const Answer wrong = batch(R"({"jobs":[{"ttr":"1ms"},7,{"delay":"30"},{"colour":"red"}]})");
  EXPECT_EQ(wrong.status, 400);
  std::string pointers;
  const json::value problem = wrong.value();
  for (const json::value& error : problem.at("errors").as_array())
    pointers += std::string(error.at("pointer").as_string()) + " ";
  EXPECT_EQ(pointers, "/jobs/0/ttr /jobs/1 /jobs/2/delay /jobs/3/colour ");
  EXPECT_EQ(batch(R"({"jobs":[{}],"x":1})").value().at("errors").at(0).at("pointer"), "/x");
  EXPECT_EQ(batch(R"({"jobs":[{"key":"k"},{"key":"k"}]})").value().at("errors").at(0).at("pointer"),
            "/jobs/1/key");
  EXPECT_EQ(puts(), 0);
}

// A hostile client gets no long answer, and takes little time.
TEST_F(HttpBatches, NamesSomeOfVeryManyFaults) {
  std::string fields = R"("a0":1)";
  for (int n = 1; n < 19'000; ++n) fields += ",\"a" + std::to_string(n) + "\":1";
  const Answer refused = batch("{\"jobs\":[{" + fields + "}]}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.value().at("errors").as_array().size(), kMostFaults);
  EXPECT_TRUE(refused.detail().ends_with("; 19 or more")) << refused.detail();
}

TEST_F(HttpBatches, TakesAThousandJobsAndNoMore) {
  const auto jobs = [](int count) {
    std::string all = R"({"jobs":[{"body":"x","delay":"1h"})";
    for (int n = 1; n < count; ++n) all += R"(,{"body":"x","delay":"1h"})";
    return all + "]}";
  };
  EXPECT_EQ(batch(jobs(1'001)).status, 400);
  EXPECT_EQ(batch(R"({"jobs":[]})").status, 400);
  EXPECT_EQ(batch("{}").status, 400);
  EXPECT_EQ(batch(jobs(1'000)).value().at("jobs").as_array().size(), 1'000u);
  EXPECT_EQ(puts(), 1'000);
}

TEST_F(HttpBatches, ABodyThatIsTooLargeIsRefused) {
  const std::string large(server.service.options().max_job_size + 1, 'x');
  const Answer refused = batch(R"({"jobs":[{"body":")" + large + R"("}]})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.value().at("errors").at(0).at("pointer"), "/jobs/0/body");
}

TEST_F(HttpBatches, ARequestThatIsSentAgainPutsNothingMore) {
  const std::string_view key = "Idempotency-Key: \"8e03978e-40d5-43dd-bc93-6894a57f9324\"\r\n";
  const std::string_view body = R"({"jobs":[{"body":"a"},{"body":"b"}]})";
  const Answer first = batch(body, key);
  EXPECT_EQ(first.head.find("Idempotent-Replayed"), std::string::npos);
  const Answer second = batch(body, key);
  EXPECT_EQ(second.body, first.body);
  EXPECT_NE(second.head.find("Idempotent-Replayed: true"), std::string::npos);
  EXPECT_EQ(puts(), 2);
  const Answer other = batch(R"({"jobs":[{"body":"c"}]})", key);
  EXPECT_EQ(other.status, 422);
  pass(86'400'000);
  EXPECT_EQ(batch(body, key).status, 200) << "a day later it is a new request";
  EXPECT_EQ(puts(), 4);
}

TEST_F(HttpBatches, OneJobIsPutOnce) {
  const auto put = [&](std::string_view body, std::string_view headers) {
    return ask("POST", "/v1/tubes/mail/jobs", body, headers);
  };
  const std::string_view key = "Idempotency-Key: abc\r\nCarillon-Delay: 3s\r\n";
  const Answer first = put("hello", key);
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.value().at("state"), "delayed");
  EXPECT_NE(first.head.find("Location: /v1/jobs/1\r\n"), std::string::npos);
  const auto expect_first = [&](const Answer& again) {
    EXPECT_EQ(again.status, first.status);
    EXPECT_EQ(again.body, first.body);
    for (const std::string_view name : {"Location: ", "ETag: "})
      EXPECT_EQ(line_of(again, name), line_of(first, name));
    EXPECT_NE(again.head.find("Idempotent-Replayed: true\r\n"), std::string::npos);
  };
  expect_first(put("hello", key));
  EXPECT_EQ(ask("PATCH", "/v1/jobs/1", R"({"priority":7})").status, 200);
  expect_first(put("hello", key));
  EXPECT_EQ(put("other", key).status, 422);
  EXPECT_EQ(put("hello", "Idempotency-Key: abc\r\nCarillon-Delay: 4s\r\n").status, 422);
  EXPECT_EQ(put("hello", "Carillon-Delay: 3s\r\nIdempotency-Key: \"abc\";a=1\r\n").status, 201);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1").status, 204);
  expect_first(put("hello", key));  // the job is gone, the answer is not
  EXPECT_EQ(puts(), 1);
}

TEST_F(HttpBatches, AJobThatHasExpiredWhenItIsPutIsReported) {
  const Answer put = ask("POST", "/v1/tubes/mail/jobs", R"({"body":"a","expires_at":1})",
                         "Content-Type: application/json\r\n");
  EXPECT_EQ(put.status, 201);
  EXPECT_NE(line_of(put, "ETag: "), "");
  EXPECT_EQ(put.value().at("expires_at"), "1970-01-01T00:00:00.001Z");
}

// Also of one that replaces another, and has its due time.
TEST_F(HttpBatches, TheTagOfAPutIsThatOfTheJob) {
  const auto put = [&](const std::string& fields, std::string_view headers = "") {
    return ask("POST", "/v1/tubes/mail/jobs",
               R"({"group":"acme","metadata":{"a":1})" + fields + "}",
               "Content-Type: application/json\r\n" + std::string(headers));
  };
  const auto tag_now = [&](const Answer& answer) {
    const std::int64_t id = answer.value().at("id").as_int64();
    return line_of(ask("GET", "/v1/jobs/" + std::to_string(id)), "ETag: ");
  };
  for (const char* fields :
       {"", R"(,"delay":"1h","key":"k")", R"(,"expires_in":"1h")",
        R"(,"key":"k","on_conflict":"keep_due")", R"(,"key":"k","on_conflict":"replace")"}) {
    const Answer answer = put(fields);
    EXPECT_EQ(line_of(answer, "ETag: "), tag_now(answer)) << fields;
  }
  const std::string replace = R"(,"key":"k","delay":"2h","on_conflict":"replace")";
  const Answer first = put(replace, "Idempotency-Key: abc\r\n");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(put(R"(,"key":"k","on_conflict":"replace")").status, 200);
  const Answer again = put(replace, "Idempotency-Key: abc\r\n");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, first.body);
}

TEST_F(HttpBatches, AScheduleIsTriggeredOnce) {
  ask("PUT", "/v1/schedules/s", R"({"every":"1h","job":{"tube":"mail","body":"x"}})");
  const auto trigger = [&](std::string_view headers) {
    return ask("POST", "/v1/schedules/s:trigger", "", headers);
  };
  const Answer first = trigger("Idempotency-Key: abc\r\n");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(trigger("Idempotency-Key: abc\r\n").body, first.body);
  EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", "x", "Idempotency-Key: abc\r\n").status, 422);
  EXPECT_EQ(puts(), 1);
  EXPECT_EQ(trigger("Idempotency-Key: def\r\n").status, 201);
  EXPECT_EQ(trigger("").status, 201);
  EXPECT_EQ(puts(), 3);
  durable = server.engine.last_sequence();
  Session other(server.service, names);
  EXPECT_EQ(trigger("Idempotency-Key: ghi\r\n").status, 0) << "it waits for the disk";
  speaker = &other;
  EXPECT_EQ(trigger("Idempotency-Key: ghi\r\n").status, 409);
  speaker = &session;
  durable = server.engine.last_sequence();
  EXPECT_EQ(next().status, 201);
  durable = UINT64_MAX;
  ask("DELETE", "/v1/schedules/s", "");
  EXPECT_EQ(trigger("Idempotency-Key: abc\r\n").body, first.body);
}

// draft-ietf-httpapi-idempotency-key-header, 2.6.
TEST_F(HttpBatches, ARequestWhoseFirstAnswerIsNotOutYetIsRefusedAtOnce) {
  const auto put = [&](std::string_view body) {
    return ask("POST", "/v1/tubes/mail/jobs", body, "Idempotency-Key: abc\r\n");
  };
  Session other(server.service, names);
  durable = server.engine.last_sequence();
  EXPECT_EQ(put("hello").status, 0) << "it waits for the disk";
  speaker = &other;
  const Answer refused = put("hello");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.value().at("type"), "/docs#in-flight");
  EXPECT_EQ(refused.detail(), "the request with the key abc is still carried out");
  EXPECT_NE(refused.head.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_EQ(put("other").status, 0) << "what it tells of is not durable";
  durable = server.engine.last_sequence();
  EXPECT_EQ(next().status, 422);
  const Answer again = put("hello");
  EXPECT_EQ(again.status, 201);
  EXPECT_NE(again.head.find("Idempotent-Replayed: true"), std::string::npos);
  speaker = &session;
  EXPECT_EQ(next().body, again.body);
  EXPECT_EQ(puts(), 1);
}

TEST_F(HttpBatches, ABatchThatIsReadIsInFlight) {
  const std::string_view key = "Idempotency-Key: abc\r\n";
  std::string body = R"({"jobs":[{})";
  for (int n = 1; n < 250; ++n) body += ",{}";
  body += "]}";
  server.reading_takes_ns = 2'000;  // a turn has one step
  auto first = std::make_unique<Session>(server.service, names);
  const std::string head = "POST /v1/tubes/mail/jobs:batch HTTP/1.1\r\nHost: localhost\r\n" +
                           std::string(key) + "Content-Length: " + std::to_string(body.size());
  const std::string request = head + "\r\n\r\n" + body;
  std::string_view left = request;
  while (!left.empty()) left.remove_prefix(first->receive(left, server.now.mono_ns + 1'000));
  first->receive("", server.now.mono_ns + 1'000);  // it reads the first jobs
  ASSERT_EQ(first->wants(), Protocol::Wants::kTurn);
  EXPECT_EQ(puts(), 0);
  EXPECT_EQ(batch(body, key).status, 409);
  EXPECT_EQ(batch(R"({"jobs":[{}]})", key).status, 422);
  first.reset();
  EXPECT_EQ(batch(body, key).status, 200) << "its client has left, and nothing was put";
  EXPECT_EQ(puts(), 250);
}

TEST_F(HttpBatches, APutThatHasFailedIsNotInFlight) {
  const auto put = [&] {
    return ask("POST", "/v1/tubes/mail/jobs", "hello", "Idempotency-Key: abc\r\n").status;
  };
  server.store.appends_fail = true;
  EXPECT_EQ(put(), 500);
  server.store.appends_fail = false;
  EXPECT_EQ(put(), 201);
}

TEST_F(HttpBatches, TheOrderOfHeadersDoesNotMakeAnotherRequest) {
  const auto put = [&](const std::string& headers) {
    return ask("POST", "/v1/tubes/mail/jobs", "x", "Idempotency-Key: abc\r\n" + headers).status;
  };
  EXPECT_EQ(put("Carillon-Delay: 3s\r\nCarillon-Priority: 5\r\n"), 201);
  EXPECT_EQ(put("Carillon-Priority: 5\r\nCarillon-Delay: 3s\r\n"), 201);
  EXPECT_EQ(puts(), 1);
}

TEST_F(HttpBatches, RefusesAWrongKey) {
  for (const char* wrong : {"\"\"", "a b", "\"", "\"a\"b\"", "a\"b", "\"a\"b", "\"a;b"}) {
    const Answer refused =
        ask("POST", "/v1/tubes/mail/jobs", "x", "Idempotency-Key: " + std::string(wrong) + "\r\n");
    EXPECT_EQ(refused.status, 400) << wrong;
  }
  EXPECT_EQ(puts(), 0);
}

}  // namespace
}  // namespace carillon::server::http
