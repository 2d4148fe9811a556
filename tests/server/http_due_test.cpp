// How many jobs are due in each minute, hour or day, over HTTP: /v1/tubes/{tube}/due.
#include <gtest/gtest.h>

#include <string>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

// The server's clock starts at 2023-11-14T22:13:20Z.
class HttpDue : public HttpSession {
 protected:
  void put_for(const std::string& delay) { put(R"({"delay":")" + delay + R"("})"); }
  json::value due(const std::string& query) {
    return ask("GET", "/v1/tubes/mail/due" + query).value();
  }
};

TEST_F(HttpDue, CountsTheJobsOfEachSpan) {
  for (const char* const delay : {"0s", "10s", "20s", "50s", "2h"}) put_for(delay);
  const json::value told = due("?by=minute&spans=2");
  EXPECT_EQ(json::serialize(told),
            R"({"now":"2023-11-14T22:13:20.000Z","due":1,"delayed":4,"buried":0,"spans":[)"
            R"({"from":"2023-11-14T22:13:20.000Z","before":"2023-11-14T22:14:00.000Z",)"
            R"("jobs":2,"estimated":false},)"
            R"({"from":"2023-11-14T22:14:00.000Z","before":"2023-11-14T22:15:00.000Z",)"
            R"("jobs":1,"estimated":false}],"later":1,"later_estimated":false})");
  EXPECT_EQ(due("?by=hour").at("spans").as_array().size(), 2U);
  EXPECT_EQ(due("?by=day").at("later").to_number<int>(), 0);
}

}  // namespace
}  // namespace carillon::server::http
