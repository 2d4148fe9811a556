// Times that are out of range are refused wherever a request may name one, and never changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

constexpr const char* kTooEarly[] = {"0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z",
                                     "1970-01-01T00:00:00+14:00"};
constexpr const char* kTooLate[] = {"9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59-01:00"};

// Fails unless the answer names `pointer` alone, and the range of times.
void expect_refused(const Answer& answer, std::string_view pointer) {
  ASSERT_EQ(answer.status, 400) << answer.body;
  const json::array errors = answer.value().at("errors").as_array();
  EXPECT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors.at(0).at("pointer").as_string(), pointer);
  EXPECT_NE(answer.detail().find("from 1970-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z"),
            std::string::npos)
      << answer.detail();
}

TEST_F(HttpSession, ATimeOutsideOf1970To9999IsRefused) {
  put(R"({"body":"a"})");
  const std::string_view schedule = "/v1/schedules/s";
  const auto expect = [&](const char* time) {
    const auto of = [time](const char* name) {
      return fmt::format(R"({{"{}":"{}"}})", name, time);
    };
    const std::string header = fmt::format("Carillon-Due: {}\r\n", time);
    for (const char* const name : {"due", "expires_at"}) {
      expect_refused(put(of(name)), fmt::format("/{}", name));
      expect_refused(ask("PATCH", "/v1/jobs/1", of(name)), fmt::format("/{}", name));
    }
    expect_refused(ask("POST", "/v1/tubes/mail/jobs", "a", header), "/due");
    expect_refused(ask("PUT", schedule,
                       fmt::format(R"({{"every":"1h","start":"{}","job":{{"tube":"t"}}}})", time)),
                   "/start");
  };
  for (const char* const time : kTooEarly) expect(time);
  for (const char* const time : kTooLate) expect(time);
  EXPECT_EQ(ask("GET", "/v1/jobs/2").status, 404) << "a job was put";
  EXPECT_EQ(ask("GET", schedule).status, 404);
}

TEST_F(HttpSession, TheFirstAndTheLastTimeAreTaken) {
  EXPECT_EQ(put(R"({"due":"1970-01-01T00:00:00Z"})").value().at("due"), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(put(R"({"due":"1970-01-01T14:00:00+14:00"})").status, 201);
  EXPECT_EQ(put(R"({"due":0})").status, 201);
  EXPECT_EQ(put(R"({"due":-1})").status, 400);
  EXPECT_EQ(put(R"({"due":"9999-12-31T23:59:59.999Z"})").value().at("due"),
            "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(put(R"({"due":253402300799999})").status, 201);
  EXPECT_EQ(put(R"({"due":253402300800000})").status, 400);
}

TEST_F(HttpSession, ASpreadThatLeadsBeyondTheYear9999IsNamed) {
  const std::string job = R"({"due":"9999-12-31T23:59:59Z","spread":"1h"})";
  const auto wrong = [](const Answer& answer) {
    return std::string(answer.value().at("errors").at(0).at("pointer").as_string());
  };
  EXPECT_EQ(wrong(put(job)), "/spread");
  EXPECT_EQ(wrong(ask("POST", "/v1/tubes/t/jobs:batch", R"({"jobs":[{},)" + job + "]}")),
            "/jobs/1/spread");
  EXPECT_EQ(wrong(put(R"({"due":"9999-12-31T23:59:59Z","expires_in":"4000000d"})")), "/expires_in");
}

// No worker would ever get it. It is 2023-11-14T22:13:20Z.
TEST_F(HttpSession, AJobDoesNotExpireBeforeItIsDue) {
  EXPECT_EQ(put(R"({"delay":"1799999ms","expires_in":"30m"})").status, 201);
  const auto expect_never = [](const Answer& answer, const std::string& pointer) {
    EXPECT_EQ(answer.status, 400);
    const boost::json::value told = answer.value();
    const boost::json::value& error = told.at("errors").at(0);
    EXPECT_EQ(std::string_view(error.at("pointer").as_string()), pointer);
    EXPECT_EQ(
        error.at("detail"),
        "the job would expire in 1800000 ms, and be due in 3600000 ms: no worker would get it");
  };
  const std::pair<const char*, const char*> ends[] = {
      {R"("expires_in":"30m")", "/expires_in"},
      {R"("expires_at":"2023-11-14T22:43:20Z")", "/expires_at"}};
  for (const std::string due : {R"("delay":"1h")", R"("due":"2023-11-14T23:13:20Z")"}) {
    for (const auto& [end, pointer] : ends) {
      const std::string job = "{" + due + "," + end + "}";
      expect_never(put(job), pointer);
      expect_never(ask("PUT", "/v1/tubes/t/keys/k", job, "Content-Type: application/json\r\n"),
                   pointer);
      expect_never(ask("PATCH", "/v1/jobs/1", job), pointer);
      expect_never(ask("POST", "/v1/tubes/t/jobs:batch", R"({"jobs":[{},)" + job + "]}"),
                   "/jobs/1" + std::string(pointer));
    }
  }
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("expires_at"), "2023-11-14T22:43:20.000Z");
}

// Nothing is due before 1970; but the filter would not say what was written.
TEST_F(HttpSession, AFilterNamesATimeFrom1970On) {
  put(R"({"body":"a","delay":"1h"})");
  for (const char* const name : {"due_after", "due_before"}) {
    expect_refused(ask("GET", fmt::format("/v1/tubes/mail/jobs?{}=1969-12-31T23:59:59Z", name)),
                   fmt::format("?{}", name));
    expect_refused(
        ask("POST", "/v1/jobs:cancel",
            fmt::format(R"({{"filter":{{"tube":"mail","{}":"0001-01-01T00:00:00Z"}}}})", name)),
        fmt::format("/filter/{}", name));
  }
}

}  // namespace
}  // namespace carillon::server::http
