// Why jobs are dead, and a retry of those of one reason, over HTTP: /v1/tubes/{tube}/dead.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

class HttpDead : public HttpSession {
 protected:
  // Lets a job of the tube die with the error.
  void die(const std::string& error) {
    put(R"({"retry":{"max_attempts":1}})");
    const json::value got = ask("POST", "/v1/tubes/mail:reserve", "{}").value();
    const std::string lease(got.at("jobs").at(0).at("lease").as_string());
    const std::string body = json::serialize(json::object{{"error", error}});
    EXPECT_EQ(ask("POST", "/v1/leases/" + lease + ":nack", body).status, 200);
  }
};

TEST_F(HttpDead, DeadJobsAreGroupedByReasonAndThoseOfOneRetried) {
  die("no paper\ntray 2");
  die("no ink");
  die("no paper\ntray 3");
  put("{}");
  const json::value dead = ask("GET", "/v1/tubes/mail/dead").value();
  ASSERT_EQ(dead.at("reasons").as_array().size(), 2U) << json::serialize(dead);
  const json::value& paper = dead.at("reasons").at(0);
  EXPECT_EQ(paper.at("reason").as_string(), "no paper");
  EXPECT_EQ(paper.at("error").as_string(), "no paper\ntray 2");
  EXPECT_EQ(paper.at("jobs").to_number<int>(), 2);
  EXPECT_EQ(paper.at("dead").to_number<int>(), 2);
  EXPECT_EQ(paper.at("example_id").to_number<int>(), 1);
  EXPECT_EQ(paper.at("oldest").as_string(), "2023-11-14T22:13:20.000Z");
  EXPECT_EQ(dead.at("looked_at").to_number<int>(), 3);
  EXPECT_TRUE(dead.at("next_page_token").is_null());
  const json::object retry{{"filter", paper.at("filter")}};
  const Answer retried = ask("POST", "/v1/jobs:retry", json::serialize(retry));
  EXPECT_EQ(retried.value().at("changed").to_number<int>(), 2) << retried.body;
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/dead").value().at("reasons").as_array().size(), 1U);
}

TEST_F(HttpDead, ReasonsThatAreNoTextAreToldApartAndAskedForInBase64) {
  const auto worker = server.engine.connect();
  server.engine.watch(worker, "mail");
  for (const auto& [id, error] : {std::pair{1u, "\xff\xfe"}, std::pair{2u, "\xfe\xff"}}) {
    put(R"({"retry":{"max_attempts":1}})");
    server.engine.reserve(worker, server.now, 0);
    server.engine.fail(worker, server.now, id, {.error = error});
  }
  const json::array reasons = ask("GET", "/v1/tubes/mail/dead").value().at("reasons").as_array();
  ASSERT_EQ(reasons.size(), 2u);
  for (const json::value& reason : reasons) {
    const bool is_first = reason.at("example_id") == 1;
    EXPECT_EQ(reason.at("reason_base64"), is_first ? "//4=" : "/v8=");
    EXPECT_EQ(reason.at("error_base64"), is_first ? "//4=" : "/v8=");
    const std::string retry = json::serialize(json::object{{"filter", reason.at("filter")}});
    EXPECT_EQ(ask("POST", "/v1/jobs:retry", retry).value().at("changed"), 1) << retry;
  }
}

// 1 000 bytes of an error are kept, 200 shown here, and 120 are its reason.
TEST_F(HttpDead, NoSignIsCutInTwo) {
  std::string error = "x";
  while (error.size() < 2'000) error += "\u00e9";
  die(error);
  const json::value reason = ask("GET", "/v1/tubes/mail/dead").value().at("reasons").at(0);
  EXPECT_EQ(reason.at("reason").as_string().size(), 119u);
  EXPECT_EQ(reason.at("error").as_string().size(), 199u);
  const json::value attempt = ask("GET", "/v1/jobs/1").value().at("attempts").at(0);
  EXPECT_EQ(attempt.at("error").as_string().size(), 999u);
}

TEST_F(HttpDead, ManyReasonsAreBounded) {
  for (int i = 0; i < 110; ++i) die("error " + std::to_string(i));
  const json::value dead = ask("GET", "/v1/tubes/mail/dead").value();
  EXPECT_EQ(dead.at("reasons").as_array().size(), 100U);
  EXPECT_EQ(dead.at("other_jobs").to_number<int>(), 10);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/dead?page_token=x").status, 400);
}

}  // namespace
}  // namespace carillon::server::http
