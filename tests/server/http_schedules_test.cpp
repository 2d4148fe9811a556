// Schedules over HTTP.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

class HttpSchedules : public HttpSession {
 protected:
  Answer set(std::string_view body, std::string_view name = "report") {
    return ask("PUT", "/v1/schedules/" + std::string(name), body);
  }
  Answer get(std::string_view name = "report") {
    return ask("GET", "/v1/schedules/" + std::string(name));
  }
};

TEST_F(HttpSchedules, IsSetShownAndChanged) {
  const Answer made =
      set(R"({"cron":"30 2 * * MON-FRI","time_zone":"Europe/Berlin","overlap":"skip",)"
          R"("catch_up":"all","catch_up_window":"1d","job":{"tube":"reports","body":"sales"}})");
  EXPECT_EQ(made.status, 201);
  const json::value shown = get().value();
  EXPECT_EQ(shown, made.value());
  EXPECT_EQ(shown.at("next").as_array().size(), 5u);
  EXPECT_EQ(shown.at("next").at(0), "2023-11-15T02:30:00+01:00");
  EXPECT_EQ(shown.at("catch_up_window"), "86400s");
  EXPECT_EQ(shown.at("gap"), "after");
  EXPECT_EQ(shown.at("job").at("body"), "sales");
  EXPECT_EQ(shown.at("fired"), 0);
  EXPECT_EQ(set(R"({"every":"1h","job":{"tube":"reports"}})").status, 200);
  EXPECT_EQ(get().value().at("every"), "3600s");
}

TEST_F(HttpSchedules, MayStartWithTheYear1970) {
  const Answer made = set(R"({"every":"1h","start":"1970-01-01T00:00:00Z","job":{"tube":"mail"}})");
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(get().value().at("start"), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(get().value().at("next").at(0), "2023-11-14T23:00:00Z");
}

TEST_F(HttpSchedules, FiresIsPausedResumedTriggeredAndDeleted) {
  set(R"({"every":"1h","job":{"tube":"mail","body":"x"}})");
  pass(3'600'000);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("body"), "x");
  EXPECT_EQ(get().value().at("fired"), 1);
  EXPECT_EQ(ask("POST", "/v1/schedules/report:pause").status, 200);
  EXPECT_EQ(get().value().at("paused"), true);
  EXPECT_EQ(get().value().at("next").as_array().size(), 0u);
  pass(3'600'000);
  EXPECT_EQ(get().value().at("fired"), 1);
  EXPECT_EQ(ask("POST", "/v1/schedules/report:resume").status, 200);
  EXPECT_EQ(get().value().at("skipped"), 1);
  const Answer triggered = ask("POST", "/v1/schedules/report:trigger");
  EXPECT_EQ(triggered.status, 201);
  EXPECT_NE(triggered.head.find("Location: /v1/jobs/2\r\n"), std::string::npos);
  EXPECT_EQ(ask("DELETE", "/v1/schedules/report").status, 204);
  for (const char* verb : {"pause", "resume", "trigger"})
    EXPECT_EQ(ask("POST", "/v1/schedules/report:" + std::string(verb)).status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/schedules/report").status, 404);
  EXPECT_EQ(get().status, 404);
}

TEST_F(HttpSchedules, IsPausedOrResumedByWhatSetsIt) {
  const auto set_paused = [this](const std::string& paused) {
    return set(R"({"every":"1h")" + paused + R"(,"job":{"tube":"mail"}})").value().at("paused");
  };
  EXPECT_EQ(set_paused(R"(,"paused":true)"), true);
  EXPECT_EQ(set_paused(""), true) << "it stays as it is";
  pass(3'600'000);
  EXPECT_EQ(get().value().at("fired"), 0);
  EXPECT_EQ(set_paused(R"(,"paused":false)"), false);
  EXPECT_EQ(set_paused(""), false);
}

TEST_F(HttpSchedules, GivesItsJobsAllThatIsAsked) {
  const Answer made =
      set(R"({"every":"1h","job":{"tube":"mail","group":"acme","body":"x","expires_in":"10m",)"
          R"("at_expiry":"dead","content_type":"text/plain","metadata":{"n":1},)"
          R"("retry":{"max_attempts":3,"backoff":{"initial":"1s","max":"1m","jitter":10}}}})");
  EXPECT_EQ(made.status, 201);
  const json::value job = made.value().at("job");
  EXPECT_EQ(job.at("group"), "acme");
  EXPECT_EQ(job.at("expires_in"), "600s");
  EXPECT_EQ(job.at("at_expiry"), "dead");
  EXPECT_EQ(job.at("metadata").at("n"), 1);
  EXPECT_EQ(job.at("retry").at("backoff").at("max"), "60s");
  pass(3'600'000);
  const json::value put = ask("GET", "/v1/jobs/1").value();
  for (const char* name : {"group", "at_expiry", "content_type", "metadata", "retry"})
    EXPECT_EQ(put.at(name), job.at(name)) << name;
  EXPECT_EQ(put.at("expires_at"), "2023-11-14T23:23:20.000Z");
}

TEST_F(HttpSchedules, RefusesWhatNeverOccurs) {
  const auto pointer = [&](std::string_view body) {
    const Answer refused = set(body);
    EXPECT_EQ(refused.status, 400) << body;
    return std::string(refused.value().at("errors").at(0).at("pointer").as_string());
  };
  EXPECT_EQ(pointer(R"({"job":{}})"), "/cron");
  EXPECT_EQ(pointer(R"({"every":"1h"})"), "/job");
  EXPECT_EQ(pointer(R"({"cron":"* * * * *","every":"1h","job":{}})"), "/every");
  EXPECT_EQ(pointer(R"({"every":"1ms","job":{}})"), "/every");
  EXPECT_EQ(pointer(R"({"every":"1h","time_zone":"UTC","job":{}})"), "/time_zone");
  EXPECT_EQ(pointer(R"({"cron":"61 * * * *","job":{}})"), "/cron");
  EXPECT_EQ(pointer(R"({"cron":"* * * * *","time_zone":"Europe/Atlantis","job":{}})"),
            "/time_zone");
  EXPECT_EQ(pointer(R"({"cron":"* * * * *","start":0,"job":{}})"), "/start");
  EXPECT_EQ(pointer(R"({"every":"1h","catch_up":"all","job":{}})"), "/catch_up_window");
  EXPECT_EQ(pointer(R"({"every":"1h","job":{"tube":"a b"}})"), "/job/tube");
  EXPECT_EQ(pointer(R"({"every":"1h","job":{"delay":"1s"}})"), "/job/delay");
  EXPECT_EQ(pointer(R"({"every":"1h","spread":"11000d","job":{}})"), "/spread");
  EXPECT_EQ(pointer(R"({"every":"1h","job":{"at_expiry":"drop"}})"), "/job/at_expiry");
  EXPECT_EQ(set(R"({"every":"1h","job":{}})", "a%20b").status, 400);
  EXPECT_EQ(get().status, 404);
}

TEST_F(HttpSchedules, AGroupInBase64IsCheckedToo) {
  for (const char* const bytes : {"", "AA==", "YSBi"}) {  // nothing, NUL, "a b"
    const Answer refused =
        ask("PUT", "/v1/schedules/s",
            R"({"every":"1h","job":{"group_base64":")" + std::string(bytes) + R"("}})");
    EXPECT_EQ(refused.status, 400) << bytes << refused.body;
  }
  EXPECT_EQ(ask("PUT", "/v1/schedules/s", R"({"every":"1h","job":{"group_base64":"/w=="}})").status,
            201);
}

TEST_F(HttpSchedules, NamesAllThatIsWrongAtOnce) {
  const Answer refused = set(R"({"every":"1h","cron":"61 * * * *","catch_up":"all","x":1,)"
                             R"("job":{"ttr":"1ms","at_expiry":"drop","tracestate":"a=b"}})");
  std::string pointers;
  const json::value told = refused.value();
  for (const json::value& error : told.at("errors").as_array())
    pointers += std::string(error.at("pointer").as_string()) + " ";
  EXPECT_EQ(pointers, "/job/ttr /x /every /cron /catch_up_window /job/at_expiry /job/tracestate ");
}

TEST_F(HttpSchedules, RefusesABodyThatIsTooLarge) {
  const std::string body((64 << 10) + 1, 'x');
  EXPECT_EQ(set(R"({"every":"1h","job":{"body":")" + body + R"("}})").status, 413);
}

TEST_F(HttpSchedules, KeepsAttributesOfAnyName) {
  queue::Schedule schedule{.attributes = R"({"content_type":7,"traceparent":"a","mine":[1]})"};
  schedule.every = 3'600'000;
  server.engine.set_schedule(server.now, "report", schedule);
  const json::value job = get().value().at("job");
  EXPECT_EQ(job.at("traceparent"), "a");
  EXPECT_EQ(job.at("attributes"), json::parse(R"({"content_type":7,"mine":[1]})"));
  const Answer set_again =
      set(R"({"every":"1h","job":{"attributes":{"content_type":7,"mine":[1]}}})");
  EXPECT_EQ(set_again.value().at("job").at("attributes"), job.at("attributes"));
}

TEST_F(HttpSchedules, AreListedInPages) {
  for (int n = 0; n < 25; ++n) {
    std::string name = "s-";
    name += static_cast<char>('a' + n);
    set(R"({"every":"1h","job":{}})", name);
  }
  const json::value first = ask("GET", "/v1/schedules?page_size=20").value();
  EXPECT_EQ(first.at("schedules").as_array().size(), 20u);
  EXPECT_EQ(first.at("next_page_token"), "s-t");
  EXPECT_FALSE(first.at("schedules").at(0).at("job").as_object().contains("body"));
  const json::value second = ask("GET", "/v1/schedules?page_size=20&page_token=s-t").value();
  EXPECT_EQ(second.at("schedules").as_array().size(), 5u);
  EXPECT_EQ(second.at("schedules").at(0).at("name"), "s-u");
  EXPECT_EQ(second.at("next_page_token"), nullptr);
}

}  // namespace
}  // namespace carillon::server::http
