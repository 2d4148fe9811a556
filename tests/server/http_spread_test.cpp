// A storm that is dealt out over a longer time, over HTTP: /v1/jobs:spread.
#include <gtest/gtest.h>

#include <string>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

// The server's clock starts at 2023-11-14T22:13:20Z.
class HttpSpread : public HttpSession {
 protected:
  void put_many(int jobs, const std::string& delay) {
    for (int i = 0; i < jobs; ++i) put(R"({"delay":")" + delay + R"("})");
  }
};

TEST_F(HttpSpread, AStormIsCountedAndSpread) {
  put_many(50, "10m");
  put_many(10, "12h");
  const std::string filter =
      R"({"filter":{"tube":"mail","due_after":1700000580000,"due_before":1700000640000},)";
  const Answer dry = ask("POST", "/v1/jobs:spread", filter + R"("over":"1h","dry_run":true})");
  EXPECT_EQ(dry.value().at("changed").to_number<int>(), 49) << dry.body;
  EXPECT_EQ(dry.value().at("over").as_string(), "3600s");
  EXPECT_EQ(ask("POST", "/v1/jobs:spread", filter + R"("over":"1h"})").status, 200);
  const json::value left =
      ask("GET", "/v1/tubes/mail/jobs?due_before=1700000640000&page_size=1000").value();
  EXPECT_EQ(left.at("jobs").as_array().size(), 1U);
  const json::value action = ask("GET", "/v1/audit?page_size=1").value().at("actions").at(0);
  EXPECT_EQ(action.at("action").as_string(), "jobs:spread");
}

TEST_F(HttpSpread, ASpreadThatIsNotClearIsRefused) {
  put_many(1, "10m");
  const Answer none = ask("POST", "/v1/jobs:spread", R"({"filter":{"tube":"mail"},"over":"1h"})");
  EXPECT_EQ(none.status, 400);
  EXPECT_EQ(none.value().at("errors"), json::parse(R"([
    {"pointer":"/filter/due_after","detail":"is needed: Due from this moment on."},
    {"pointer":"/filter/due_before","detail":"is needed: Due before this moment."}])"));
  const Answer state =
      ask("POST", "/v1/jobs:spread",
          R"({"filter":{"tube":"mail","state":"ready","due_after":1,"due_before":2},"over":"1h"})");
  EXPECT_EQ(state.status, 400);
  EXPECT_EQ(state.value().at("errors").at(0).at("pointer").as_string(), "/filter/state");
}

}  // namespace
}  // namespace carillon::server::http
