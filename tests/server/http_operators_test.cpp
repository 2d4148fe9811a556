// What operators ask for over HTTP: when an answer leaves, what it waits for, and what it shows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

// The server's clock starts at 2023-11-14T22:13:20Z.
class HttpOperators : public HttpSession {
 protected:
  void put_many(int jobs) {
    for (int n = 0; n < jobs; ++n) put(R"({"delay":"1h"})");
  }
  Answer cancel_all() { return ask("POST", "/v1/jobs:cancel", R"({"filter":{"tube":"mail"}})"); }
  json::array listed(const std::string& query = "") {
    return ask("GET", "/v1/tubes/mail/jobs?" + query).value().at("jobs").as_array();
  }
  // Lets a worker called "\xC3\xBC\xFF" have the job of the tube that is ready.
  queue::ClientId reserve() {
    const queue::ClientId worker = server.engine.connect();
    server.engine.name_client(worker, "\xC3\xBC\xFF");
    server.engine.watch(worker, "mail");
    server.engine.reserve(worker, server.now, 0);
    return worker;
  }
  // Passes the request, and returns how many steps it takes.
  int steps_of(std::string_view method, const std::string& path, const std::string& body = "") {
    const std::string request =
        fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}", method,
                    path, body.size(), body);
    server.reading_takes_ns = 1'000;
    session.receive(request, server.now.mono_ns + 1);
    int steps = 1;
    for (; session.wants() == Protocol::Wants::kTurn; ++steps)
      session.receive("", server.now.mono_ns + 1);
    server.reading_takes_ns = 0;
    return steps;
  }
};

TEST_F(HttpOperators, AListShowsWhatIsKnownOfEachJob) {
  put(R"({"delay":"3s","key":"order-7","priority":7,"ttr":"2m","body":"hello","group":"a",)"
      R"("retry":{"max_attempts":3}})");
  put(R"({"body":"now"})");
  reserve();
  const json::array jobs = listed();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].at("state"), "reserved");
  EXPECT_EQ(jobs[0].at("worker_base64"), "w7z/");
  EXPECT_EQ(jobs[1], json::parse(R"({"id":1,"tube":"mail","group":"a","key":"order-7",
      "state":"delayed","priority":7,"due":"2023-11-14T22:13:23.000Z","ttr":"120s",
      "created":"2023-11-14T22:13:20.000Z","failed_attempts":0,"body_bytes":5,
      "retry":{"max_attempts":3,"lost_fails":false,
               "backoff":{"type":"fixed","initial":"0s","jitter":0}}})"));
  EXPECT_EQ(listed("group=a").size(), 1u);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/jobs?due_after=1700000000").detail(),
            "?due_after: 1700000000: seconds since 1970? The unit is milliseconds");
}

TEST_F(HttpOperators, ADeadJobIsListedAsSuchWithItsStory) {
  put(R"({"retry":{"max_attempts":1}})");
  server.engine.fail(reserve(), server.now, 1, {.error = "\xFF\n\x80"});
  EXPECT_EQ(listed("state=dead").at(0).at("state"), "dead");
  EXPECT_EQ(listed("state=dead").at(0).at("died"), "attempts");
  EXPECT_EQ(listed("state=buried").size(), 1u);
  EXPECT_EQ(listed("state=ready,delayed,reserved").size(), 0u);
  const json::value attempt = ask("GET", "/v1/jobs/1").value().at("attempts").at(0);
  EXPECT_EQ(attempt.at("worker_base64"), "w7z/");
  EXPECT_EQ(attempt.at("error_base64"), "/wqA");
  EXPECT_EQ(attempt.at("ended"), "failed");
}

TEST_F(HttpOperators, AReservedJobShowsItsWorkerAndWhenItsLeaseEnds) {
  put(R"({"ttr":"90s"})");
  reserve();
  const Answer shown = ask("GET", "/v1/jobs/1");
  EXPECT_EQ(shown.value().at("worker_base64"), "w7z/");
  EXPECT_EQ(shown.value().at("lease_ends"), "2023-11-14T22:14:50.000Z");
  EXPECT_EQ(ask("GET", "/v1/jobs/1", "", "If-None-Match: *\r\n").status, 200)
      << "the end of the lease is in no tag";
}

TEST_F(HttpOperators, TheNextJobOfAStateIsShown) {
  const auto next = [&](const std::string& query) {
    return ask("GET", "/v1/tubes/mail/next" + query);
  };
  EXPECT_EQ(next("").detail(), "tube mail has no ready job");
  EXPECT_EQ(next("?state=delayed").detail(), "tube mail has no delayed job");
  EXPECT_EQ(next("?state=buried").status, 404);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").status, 404) << "it was made by asking";
  put(R"({"delay":"2h","body":"later"})");
  put(R"({"delay":"1h","body":"soon"})");
  put(R"({"priority":9,"body":"less urgent"})");
  put(R"({"priority":3,"body":"urgent"})");
  put(R"({"priority":1,"body":"buried"})");
  EXPECT_EQ(ask("POST", "/v1/jobs/5:bury").status, 200);
  EXPECT_EQ(next("").value().at("body"), "urgent");
  EXPECT_EQ(next("?state=ready").value().at("id"), 4);
  EXPECT_EQ(next("?state=delayed").value().at("body"), "soon");
  EXPECT_EQ(next("?state=buried").value().at("id"), 5);
  EXPECT_EQ(next("?state=dead").status, 400);
}

// Decision 0125: only a job that is done keeps its key.
TEST_F(HttpOperators, AJobThatIsDeletedAsDoneKeepsItsKeyForItsWindow) {
  const auto put_again = [&](const std::string& key) {
    return put(R"({"key_window":"1h","key":")" + key + "\"}").status;
  };
  EXPECT_EQ(put_again("a"), 201);
  EXPECT_EQ(put_again("b"), 201);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1?done=true").status, 204);
  EXPECT_EQ(ask("DELETE", "/v1/tubes/mail/keys/b").status, 204);
  EXPECT_EQ(put_again("a"), 409);
  EXPECT_EQ(put_again("b"), 201);
  reserve();
  EXPECT_EQ(ask("DELETE", "/v1/tubes/mail/keys/b?done=true").status, 409);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/3?done=true&if_reserved=ask").status, 202);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/9?done=true").status, 404);
}

TEST_F(HttpOperators, AnAnswerLeavesWhenAllThatItTellsIsDurable) {
  put("{}");
  durable = 0;
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/jobs").status, 0);
  durable = UINT64_MAX;
  EXPECT_EQ(next().value().at("jobs").as_array().size(), 1u);
  server.engine.cancel(server.now, 1);
  durable = 0;
  EXPECT_EQ(cancel_all().status, 0);
  durable = UINT64_MAX;
  EXPECT_EQ(next().status, 200);
}

TEST_F(HttpOperators, JobsThatCannotBeReadAreNotListed) {
  put_many(1);
  server.store.scans_fail = true;
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/jobs").status, 500);
  server.store.scans_fail = false;
  EXPECT_EQ(listed().size(), 1u);
}

TEST_F(HttpOperators, OthersAreServedBetweenTheStepsOfAListAndAChange) {
  put_many(500);
  EXPECT_GT(steps_of("GET", "/v1/tubes/mail/jobs?page_size=1000"), 5);
  EXPECT_EQ(next().value().at("jobs").as_array().size(), 500u);
  EXPECT_GE(steps_of("POST", "/v1/jobs:cancel", R"({"filter":{"tube":"mail"}})"), 10);
  EXPECT_EQ(next().value().at("changed"), 500);
}

TEST_F(HttpOperators, ARetryMeansTheBuriedUnlessItIsToldWhich) {
  put(R"({"retry":{"max_attempts":1}})");
  server.engine.fail(reserve(), server.now, 1, {});
  put("{}");
  ask("POST", "/v1/jobs/2:bury");
  const auto retry = [&](std::string_view filter) {
    return ask("POST", "/v1/jobs:retry",
               fmt::format(R"({{"filter":{{"tube":"mail"{}}},"dry_run":true}})", filter))
        .value()
        .at("changed");
  };
  EXPECT_EQ(retry(""), 2);
  EXPECT_EQ(retry(R"(,"state":"dead")"), 1);
}

TEST_F(HttpOperators, ASpreadGoesOverALongerTimeOfAMonthAtMost) {
  put_many(1);
  const auto why = [&](std::string_view over) {
    return ask("POST", "/v1/jobs:spread",
               fmt::format(R"({{"filter":{{"tube":"mail","due_after":1700003600000,)"
                           R"("due_before":1700003660000}},"over":"{}"}})",
                           over))
        .detail();
  };
  EXPECT_EQ(why("1m"),
            "/over: a time of 60000 ms is not longer than the one in which the jobs are due, of "
            "60000 ms");
  EXPECT_EQ(why("31d"), "/over: a time of 2678400000 ms is too long: the most are 30 days");
}

TEST_F(HttpOperators, WhileTheServerDrainsNoScheduleIsSetOrTriggered) {
  ask("PUT", "/v1/schedules/s", R"({"every":"1h","job":{}})");
  server.service.drain();
  EXPECT_EQ(ask("POST", "/v1/schedules/s:trigger").status, 503);
  EXPECT_EQ(ask("PUT", "/v1/schedules/t", R"({"every":"1h","job":{}})").status, 503);
}

}  // namespace
}  // namespace carillon::server::http
