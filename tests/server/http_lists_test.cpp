// Lists, changes of many jobs, and tubes over HTTP.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http_fixture.h"
#include "server/api/long_changes.h"

namespace carillon::server::http {
namespace {

class HttpLists : public HttpSession {
 protected:
  // Follows the pages, and returns what they list.
  std::vector<json::value> all(const std::string& path, std::string_view what) {
    std::vector<json::value> found;
    std::string token;
    do {
      const Answer page = ask("GET", path + (token.empty() ? "" : "&page_token=" + token));
      EXPECT_EQ(page.status, 200);
      if (page.status != 200) return found;
      const json::value value = page.value();
      for (const json::value& one : value.at(what).as_array()) found.push_back(one);
      const json::value& next = value.at("next_page_token");
      token = next.is_null() ? "" : std::string(next.as_string());
    } while (!token.empty());
    return found;
  }
  std::vector<std::int64_t> ids(const std::string& query) {
    std::vector<std::int64_t> ids;
    for (const json::value& job : all("/v1/tubes/mail/jobs?" + query, "jobs"))
      ids.push_back(job.at("id").as_int64());
    return ids;
  }
  Answer change(std::string_view verb, std::string_view body) {
    return ask("POST", "/v1/jobs:" + std::string(verb), body);
  }
};

using Ids = std::vector<std::int64_t>;

TEST_F(HttpLists, ListsJobsByDueTimeInPages) {
  put(R"({"delay":"3h","key":"b-1"})");
  put(R"({"delay":"1h","key":"a-1"})");
  put(R"({"delay":"2h","key":"a-2"})");
  EXPECT_EQ(ids("page_size=1"), (Ids{2, 3, 1}));
  EXPECT_EQ(ids("page_size=2"), (Ids{2, 3, 1}));
  EXPECT_EQ(ids("key_prefix=a-"), (Ids{2, 3}));
  EXPECT_EQ(ids("due_before=2023-11-15T00:13:20.000Z"), (Ids{2}));
  EXPECT_EQ(ids("due_after=2023-11-15T00:13:20Z"), (Ids{3, 1}));
  EXPECT_EQ(ids("state=ready,buried"), Ids());
  EXPECT_EQ(ids("group=none"), Ids());
}

TEST_F(HttpLists, ShowsTheBodiesOfJobsIfThatIsAsked) {
  put(R"({"body":"hello"})");
  put(R"({"body_base64":"/w=="})");
  const auto jobs = all("/v1/tubes/mail/jobs?bodies=true", "jobs");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].at("body"), "hello");
  EXPECT_EQ(jobs[1].at("body_base64"), "/w==");
  EXPECT_FALSE(all("/v1/tubes/mail/jobs?bodies=false", "jobs")[0].as_object().contains("body"));
}

// Also if the body that fills the page comes late.
TEST_F(HttpLists, APageEndsWhenItsBodiesAre128KiB) {
  const std::string body(65'000, 'x');
  for (int n = 0; n < 90; ++n) put(R"({"body":")" + body + R"("})");
  for (const bool on_disk : {false, true}) {
    server.store.bodies_are_on_disk = on_disk;
    std::set<std::int64_t> found;
    int pages = 0;
    for (std::string token; pages == 0 || !token.empty(); ++pages) {
      Answer page = ask("GET", "/v1/tubes/mail/jobs?page_size=1000&bodies=true" + token);
      for (; page.status == 0; page = next()) {
        for (const auto& [client, name] : std::exchange(server.reads.asked, {}))
          session.body_read(read_body(server.store, name));
        feed("");
      }
      ASSERT_EQ(page.status, 200);
      const json::value value = page.value();
      EXPECT_LE(value.at("jobs").as_array().size(), 3u);
      for (const json::value& job : value.at("jobs").as_array())
        EXPECT_TRUE(found.insert(job.at("id").as_int64()).second);
      const json::value& more = value.at("next_page_token");
      token = more.is_null() ? "" : "&page_token=" + std::string(more.as_string());
    }
    EXPECT_EQ(found.size(), 90u);
    EXPECT_GE(pages, 30);
  }
}

TEST_F(HttpLists, ABodyThatIsDamagedIsNamedAndOneThatCannotBeReadNowFailsThePage) {
  put(R"({"body":"a"})");
  server.store.bodies_fail = true;
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/jobs?bodies=true").status, 500);
  EXPECT_EQ(ids("page_size=1"), Ids{1});
  server.store.bodies_fail = false;
  server.store.bodies_are_damaged = true;
  const json::value job = all("/v1/tubes/mail/jobs?bodies=true", "jobs")[0];
  EXPECT_EQ(job.at("body_error"), "checksum mismatch");
  EXPECT_FALSE(job.as_object().contains("body"));
}

TEST_F(HttpLists, AJobThatGoesOrChangesWhileItsBodyIsReadIsLeftOutOrReadAgain) {
  for (const char* const body : {"a", "b", "c"}) put(R"({"body":")" + std::string(body) + R"("})");
  server.store.bodies_are_on_disk = true;
  ask("GET", "/v1/tubes/mail/jobs?bodies=true");
  session.body_read({.bytes = "a", .error = {}, .damaged = false});
  server.engine.cancel(server.now, 2);
  session.body_read({.bytes = {}, .error = "no such body", .damaged = true});
  server.engine.patch(server.now, 3, {.body = "new"});
  session.body_read({.bytes = {}, .error = "no such body", .damaged = true});
  session.body_read({.bytes = "new", .error = {}, .damaged = false});
  const json::value page = next().value();
  ASSERT_EQ(page.at("jobs").as_array().size(), 2u) << json::serialize(page);
  EXPECT_EQ(page.at("jobs").at(0).at("body"), "a");
  EXPECT_EQ(page.at("jobs").at(1).at("body"), "new");
  EXPECT_EQ(page.at("jobs").at(1).at("body_bytes"), 3);
}

TEST_F(HttpLists, ShowsTheWindowOfAKeyAndWhatHasBecomeOfAJob) {
  put(R"({"key":"k","key_window":"90s","expires_in":"1s","at_expiry":"dead"})");
  const json::value fresh = all("/v1/tubes/mail/jobs?", "jobs")[0];
  EXPECT_EQ(fresh.at("key_window"), "90s");
  for (const char* const name : {"died", "reserves", "buries", "kicks"})
    EXPECT_FALSE(fresh.as_object().contains(name)) << name;
  pass(1'000);
  const json::value dead = all("/v1/tubes/mail/jobs?state=dead", "jobs")[0];
  EXPECT_EQ(dead.at("died"), "expired");
  EXPECT_EQ(ask("POST", "/v1/jobs/1:kick").status, 200);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("kicks"), 1);
  EXPECT_EQ(ask("POST", "/v1/tubes/mail:reserve", "{}").status, 200);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("reserves"), 1);
}

TEST_F(HttpLists, RefusesAQueryThatMeansNothing) {
  for (const char* wrong : {"page_token=x", "group="})
    EXPECT_EQ(ask("GET", "/v1/tubes/mail/jobs?" + std::string(wrong)).status, 400) << wrong;
  for (const char* const list : {"tubes", "schedules", "endpoints", "audit", "tubes/mail/groups"})
    EXPECT_EQ(ask("GET", "/v1/" + std::string(list) + "?page_token=%20x").status, 400) << list;
}

TEST_F(HttpLists, ATubeThatIsNotThereIsNotFoundOnEachOfItsPaths) {
  for (const char* const path : {"", "/jobs", "/groups", "/groups/g", "/dead", "/due", "/next"})
    EXPECT_EQ(ask("GET", "/v1/tubes/none" + std::string(path)).status, 404) << path;
  EXPECT_EQ(ask("GET", "/v1/wheel?tube=none").status, 404);
  for (const char* const verb : {":pause", ":resume", ":kick", ":clear"})
    EXPECT_EQ(ask("POST", "/v1/tubes/none" + std::string(verb)).status, 404) << verb;
  EXPECT_EQ(ask("POST", "/v1/jobs:cancel", R"({"filter":{"tube":"none"}})").status, 404);
}

TEST_F(HttpLists, ATubeThatIsGoneBeforeItsLastPageHasNoMoreJobs) {
  for (int n = 0; n < 2; ++n) put("{}");
  const json::value page = ask("GET", "/v1/tubes/mail/jobs?page_size=1").value();
  ask("POST", "/v1/tubes/mail:clear");
  const std::string next(page.at("next_page_token").as_string());
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/jobs?page_token=" + next).value().at("jobs"), json::array());
}

TEST_F(HttpLists, ListsTheGroupsOfATubeInPages) {
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/groups").status, 404);
  for (int n = 0; n < 120; ++n) put(R"({"group":"g)" + std::to_string(n) + R"("})");
  EXPECT_EQ(
      ask("PATCH", "/v1/tubes/mail/groups/g7", R"({"weight":3,"limits":{"max_running":2}})").status,
      200);
  for (const char* size : {"1", "50", "119", "120", "1000"}) {
    const auto groups = all("/v1/tubes/mail/groups?page_size=" + std::string(size), "groups");
    ASSERT_EQ(groups.size(), 120u) << size;
    for (int n = 0; n < 120; ++n)
      EXPECT_EQ(groups[static_cast<std::size_t>(n)].at("name"),
                json::value("g" + std::to_string(n)))
          << size;
    EXPECT_EQ(groups[7], ask("GET", "/v1/tubes/mail/groups/g7").value());
    EXPECT_EQ(groups[7].at("weight"), 3);
    EXPECT_EQ(groups[7].at("jobs").at("ready"), 1);
    EXPECT_EQ(groups[7].at("limits").at("max_running"), 2);
  }
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/groups?page_token=x").status, 400);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/groups?state=ready").status, 400);
}

TEST_F(HttpLists, ListsTubesInTheOrderOfTheirNames) {
  std::set<std::string> sorted = {"default"};
  for (int n = 0; n < 250; ++n) {
    sorted.insert("t" + std::to_string(n * 7919 % 250));
    put("{}", "t" + std::to_string(n));
  }
  for (const char* size : {"1", "100", "251", "252", "1000"}) {
    std::vector<std::string> listed;
    for (const json::value& tube : all("/v1/tubes?page_size=" + std::string(size), "tubes"))
      listed.emplace_back(tube.at("name").as_string());
    EXPECT_EQ(listed, std::vector<std::string>(sorted.begin(), sorted.end())) << size;
  }
}

TEST_F(HttpLists, CancelsRetriesAndMovesByFilter) {
  for (int n = 0; n < 100; ++n)
    put(R"({"delay":"1h","key":")" + std::string(n % 2 == 0 ? "even-" : "odd-") +
        std::to_string(n) + R"("})");
  const std::string_view even = R"({"filter":{"tube":"mail","key_prefix":"even-"})";
  EXPECT_EQ(change("cancel", std::string(even) + R"(,"dry_run":true})").value().at("changed"), 50);
  EXPECT_EQ(ids("page_size=1000").size(), 100u);
  EXPECT_EQ(change("cancel", std::string(even) + "}").value().at("changed"), 50);
  EXPECT_EQ(ids("page_size=1000").size(), 50u);
  const Answer some = change("retry", R"({"filter":{"tube":"mail","state":"delayed"},"max":10})");
  EXPECT_EQ(some.value().at("changed"), 10);
  EXPECT_EQ(ids("state=ready").size(), 10u);
  const Answer moved = change("move", R"({"filter":{"tube":"mail"},"to":"other"})");
  EXPECT_EQ(moved.value().at("changed"), 50);
  EXPECT_EQ(moved.value().at("next_page_token"), nullptr);
  EXPECT_EQ(ask("POST", "/v1/tubes/other:clear").value().at("changed"), 50);
  EXPECT_EQ(ask("GET", "/v1/stats").value().at("jobs").at("ready"), 0);
}

// A dry run that is not read would be the end of the jobs.
TEST_F(HttpLists, ClearsWhatItIsAskedToAndNoMore) {
  for (int n = 0; n < 10; ++n)
    put(R"({"delay":"1h","key":")" + std::string(n % 2 == 0 ? "even-" : "odd-") +
        std::to_string(n) + R"("})");
  const std::string path = "/v1/tubes/mail:clear";
  const Answer dry = ask("POST", path, R"({"dry_run":true})");
  EXPECT_EQ(dry.value().at("changed"), 10);
  EXPECT_EQ(dry.value().at("dry_run"), true);
  EXPECT_EQ(ids("").size(), 10u);
  for (const char* wrong : {R"({"dryrun":true})", R"({"filter":{"tube":"mail"}})", "[]", "all",
                            R"({"dry_run":1})", R"({"filter":{"state":"sleeping"}})"})
    EXPECT_EQ(ask("POST", path, wrong).status, 400) << wrong;
  EXPECT_EQ(ids("").size(), 10u);
  EXPECT_EQ(ask("POST", path, R"({"filter":{"key_prefix":"odd-"}})").value().at("changed"), 5);
  EXPECT_EQ(ask("POST", path, R"({"max":2})").value().at("changed"), 2);
  EXPECT_EQ(ids("").size(), 3u);
  EXPECT_EQ(ask("POST", path, "{}").value().at("changed"), 3);
}

TEST_F(HttpLists, RefusesAChangeThatIsNotClear) {
  put("{}");
  for (const char* wrong :
       {"{}", R"({"filter":{}})", R"({"filter":{"tube":"a b"}})", R"({"filter":7})",
        R"({"filter":{"tube":"mail","colour":"red"}})", R"({"filter":{"tube":"mail"},"max":0})",
        R"({"filter":{"tube":"mail"},"page_token":"x"})",
        R"({"filter":{"tube":"mail","state":"sleeping"}})"})
    EXPECT_EQ(change("cancel", wrong).status, 400) << wrong;
  EXPECT_EQ(change("move", R"({"filter":{"tube":"mail"}})").status, 400);
  EXPECT_EQ(change("move", R"({"filter":{"tube":"mail"},"to":"mail"})").status, 400);
  EXPECT_EQ(change("retry", R"({"filter":{"tube":"mail","state":"ready"}})").status, 400);
  EXPECT_EQ(change("cancel", R"({"filter":{"tube":"none"}})").status, 404);
  EXPECT_EQ(ids("").size(), 1u);
}

// A step takes 50 ms here, so that the patience ends after some of them.
TEST_F(HttpLists, AChangeThatTakesLongGoesOnAsAnOperation) {
  for (int n = 0; n < 1'000; ++n) put(R"({"delay":"1h"})");
  server.reading_takes_ns = 50'000'000;
  const Answer begun = ask("POST", "/v1/tubes/mail:clear");
  server.reading_takes_ns = 0;
  EXPECT_EQ(begun.status, 202);
  EXPECT_NE(begun.head.find("Location: /v1/operations/1\r\n"), std::string::npos);
  EXPECT_EQ(begun.value().at("state"), "running");
  LongChanges& changes = server.service.long_changes();
  changes.work(server.now);
  const json::value half = ask("GET", "/v1/operations/1").value();
  EXPECT_GT(half.at("changed").as_int64(), begun.value().at("changed").as_int64());
  while (changes.has_work()) changes.work(server.now);
  const json::value done = ask("GET", "/v1/operations/1").value();
  EXPECT_EQ(done.at("state"), "done");
  EXPECT_EQ(done.at("changed"), 1'000);
  EXPECT_EQ(ids("").size(), 0u);
  EXPECT_EQ(ask("GET", "/v1/operations/2").status, 404);
  EXPECT_EQ(ask("GET", "/v1/operations/x").status, 400);
}

TEST_F(HttpLists, AnOperationMayBeStoppedAndTakenUpAgain) {
  for (int n = 0; n < 1'000; ++n) put(R"({"delay":"1h"})");
  server.reading_takes_ns = 50'000'000;
  EXPECT_EQ(change("cancel", R"({"filter":{"tube":"mail"}})").status, 202);
  server.reading_takes_ns = 0;
  EXPECT_EQ(ask("DELETE", "/v1/operations/1").status, 204);
  EXPECT_FALSE(server.service.long_changes().has_work());
  const json::value stopped = ask("GET", "/v1/operations/1").value();
  EXPECT_EQ(stopped.at("state"), "stopped");
  const std::string token(stopped.at("next_page_token").as_string());
  const Answer rest =
      change("cancel", R"({"filter":{"tube":"mail"},"page_token":")" + token + R"("})");
  EXPECT_EQ(rest.value().at("changed").as_int64() + stopped.at("changed").as_int64(), 1'000);
}

TEST_F(HttpLists, AnOperationThatFailsSaysSo) {
  for (int n = 0; n < 1'000; ++n) put(R"({"delay":"1h"})");
  server.reading_takes_ns = 50'000'000;
  ask("POST", "/v1/tubes/mail:clear");
  server.reading_takes_ns = 0;
  server.store.appends_fail = true;
  server.service.long_changes().work(server.now);
  EXPECT_FALSE(server.service.long_changes().has_work());
  const json::value failed = ask("GET", "/v1/operations/1").value();
  EXPECT_EQ(failed.at("state"), "failed");
  EXPECT_EQ(failed.at("error"), "no space left on device");
}

// One more change has no place among the operations: its client waits for it.
TEST_F(HttpLists, NoMoreOperationsThanMayGoOn) {
  for (int n = 0; n < 1'000; ++n) put(R"({"delay":"1h"})");
  server.reading_takes_ns = 50'000'000;
  const std::string_view dry = R"({"filter":{"tube":"mail"},"dry_run":true})";
  for (std::size_t n = 0; n < LongChanges::kMost; ++n) EXPECT_EQ(change("cancel", dry).status, 202);
  const Answer waited = change("cancel", R"({"filter":{"tube":"mail"}})");
  EXPECT_EQ(waited.status, 200);
  EXPECT_EQ(waited.value().at("changed"), 1'000);
}

TEST_F(HttpLists, AChangeThatFailsHalfwayTellsWhatItHasDone) {
  for (int n = 0; n < 100; ++n) put(R"({"delay":"1h"})");
  server.store.fail_after = 2;
  const Answer half = ask("POST", "/v1/tubes/mail:clear");
  server.store.fail_after = -1;
  EXPECT_EQ(half.status, 200);
  EXPECT_EQ(half.value().at("changed"), 64);
  EXPECT_EQ(half.value().at("error"), "no space left on device");
  const std::string token(half.value().at("next_page_token").as_string());
  const Answer rest =
      change("cancel", R"({"filter":{"tube":"mail"},"page_token":")" + token + R"("})");
  EXPECT_EQ(rest.value().at("changed"), 36);
}

TEST_F(HttpLists, KicksATube) {
  for (int n = 0; n < 100; ++n) put(R"({"delay":"1h"})");
  EXPECT_EQ(ask("POST", "/v1/tubes/mail:kick", R"({"max":7})").value().at("kicked"), 7);
  EXPECT_EQ(ask("POST", "/v1/tubes/mail:kick").value().at("kicked"), 93);
  EXPECT_EQ(ask("POST", "/v1/tubes/none:kick").status, 404);
}

// A client that is told to try again would kick as many once more.
TEST_F(HttpLists, AKickThatFailsHalfwayTellsHowManyItHasKicked) {
  for (int n = 0; n < 100; ++n) put(R"({"delay":"1h"})");
  const auto kick = [this] {
    return ask("POST", "/v1/tubes/mail:kick", R"({"max":80})", "Idempotency-Key: k\r\n");
  };
  server.store.fail_after = 2;
  const Answer half = kick();
  EXPECT_EQ(kick().body, half.body) << "it is not carried out again";
  server.store.fail_after = -1;
  EXPECT_EQ(half.status, 200);
  EXPECT_EQ(half.value(), (json::object{{"kicked", 32}, {"error", "no space left on device"}}));
  EXPECT_EQ(half.head.find("Retry-After"), std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").value().at("jobs").at("ready"), 32);
  server.store.fail_after = 0;
  const Answer none = ask("POST", "/v1/tubes/mail:kick");
  server.store.fail_after = -1;
  EXPECT_EQ(none.status, 500) << "nothing was kicked";
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").value().at("jobs").at("ready"), 32);
}

TEST_F(HttpLists, NoChangeOfATubeTakesIds) {
  put("{}", "other");
  for (const char* const verb : {"clear", "kick", "pause", "resume", "reserve"}) {
    for (const char* const ids : {R"({"ids":[1]})", R"({"filter":{"ids":[1]}})"})
      EXPECT_EQ(ask("POST", std::string("/v1/tubes/mail:") + verb, ids).status, 400) << verb;
  }
  EXPECT_EQ(change("cancel", R"({"filter":{"tube":"mail","ids":[1]}})").status, 400);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("state"), "ready");
}

TEST_F(HttpLists, ChangesTheSettingsOfATube) {
  const Answer set = ask("PATCH", "/v1/tubes/api",
                         R"({"limits":{"max_running":10,"rate":{"jobs":100,"per":"1m","burst":5}},)"
                         R"("retry":{"max_attempts":3},"draining":true})");
  EXPECT_EQ(set.status, 200);
  const json::value tube = ask("GET", "/v1/tubes/api").value();
  EXPECT_EQ(tube, set.value());
  EXPECT_EQ(tube.at("limits").at("max_running"), 10);
  EXPECT_EQ(tube.at("limits").at("rate"),
            (json::object{{"jobs", 100}, {"per", "60s"}, {"burst", 5}}));
  EXPECT_EQ(tube.at("retry").at("max_attempts"), 3);
  EXPECT_EQ(put("{}", "api").status, 503);
  ask("PATCH", "/v1/tubes/api", R"({"limits":{"rate":null},"draining":false})");
  const json::value after = ask("GET", "/v1/tubes/api").value();
  EXPECT_EQ(after.at("limits"), (json::object{{"max_running", 10}}));
  EXPECT_EQ(after.at("retry").at("max_attempts"), 3);
  EXPECT_EQ(put("{}", "api").status, 201);
  for (const char* wrong :
       {R"({"limits":{"rate":{"jobs":1}}})", R"({"limits":{"max_running":0}})",
        R"({"limits":{"rate":{"jobs":0,"per":"1s"}}})", R"({"colour":"red"})",
        R"({"limits":{"rate":{"jobs":1,"per":"31d"}}})", R"({"retry":{"max_attempts":-1}})"})
    EXPECT_EQ(ask("PATCH", "/v1/tubes/api", wrong).status, 400) << wrong;
  EXPECT_EQ(ask("PATCH", "/v1/tubes/a%20b", "{}").status, 400);
}

TEST_F(HttpLists, ARateOfPutsIsToldWithEachPutAndRefusesMore) {
  const Answer set =
      ask("PATCH", "/v1/tubes/mail", R"({"limits":{"put_rate":{"jobs":3,"per":"2s","burst":2}}})");
  EXPECT_EQ(set.value().at("limits").at("put_rate"),
            (json::object{{"jobs", 3}, {"per", "2s"}, {"burst", 2}}));
  const auto told = [](const Answer& answer, const std::string& header) {
    return answer.head.find("\r\n" + header + "\r\n") != std::string::npos;
  };
  const std::string policy = R"(RateLimit-Policy: "put";q=3;w=2)";
  const Answer first = put(R"({"key":"k"})");
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(told(first, policy) && told(first, R"(RateLimit: "put";r=1;t=1)")) << first.head;
  const Answer taken = put(R"({"key":"k"})");
  EXPECT_EQ(taken.status, 409);
  EXPECT_TRUE(told(taken, policy) && told(taken, R"(RateLimit: "put";r=1;t=1)")) << taken.head;
  EXPECT_EQ(ask("PUT", "/v1/tubes/mail/keys/k", R"({"body":"b"})").status, 200);
  const Answer refused = put("{}");
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(told(refused, policy) && told(refused, R"(RateLimit: "put";r=0;t=1)"));
  EXPECT_TRUE(told(refused, "Retry-After: 1")) << refused.head;
  EXPECT_EQ(refused.value().at("type"), "/docs#too-fast");
  EXPECT_EQ(refused.detail(),
            "3 jobs per 2s may be put into the tube mail, and 2 after a rest; try again in 666 ms");
  const Answer batch = ask("POST", "/v1/tubes/mail/jobs:batch", R"({"jobs":[{},{}]})");
  EXPECT_EQ(batch.status, 429);
  EXPECT_TRUE(told(batch, "Retry-After: 2")) << batch.head;
  const Answer large = ask("POST", "/v1/tubes/mail/jobs:batch", R"({"jobs":[{},{},{}]})");
  EXPECT_EQ(large.status, 400);
  EXPECT_EQ(large.value().at("errors").at(0).at("pointer"), "/jobs/2");
  EXPECT_TRUE(told(large, policy));
  const std::string once = "Idempotency-Key: \"a\"\r\n";
  EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", "{}", once).status, 429);
  pass(2'000);
  EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", "{}", once).status, 201) << "it was not put";
  EXPECT_EQ(put("{}").status, 201);
  const Answer again = ask("POST", "/v1/tubes/mail/jobs", "{}", once);
  EXPECT_EQ(again.status, 201) << "a replay takes no token";
  EXPECT_TRUE(told(again, R"(RateLimit: "put";r=0;t=1)")) << again.head;
  EXPECT_EQ(put("{}", "other").head.find("RateLimit"), std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").head.find("RateLimit"), std::string::npos);
  const std::string metrics = ask("GET", "/metrics").body;
  EXPECT_NE(metrics.find("carillon_puts_too_fast_total{tube=\"mail\"} 3\n"), std::string::npos);
  ask("PATCH", "/v1/tubes/mail", R"({"limits":{"put_rate":{"jobs":50}}})");
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").value().at("limits").at("put_rate"),
            (json::object{{"jobs", 50}, {"per", "2s"}, {"burst", 2}}));
  ask("PATCH", "/v1/tubes/mail", R"({"limits":null})");
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").value().at("limits"), json::object());
  EXPECT_EQ(
      ask("PATCH", "/v1/tubes/mail/groups/g", R"({"limits":{"put_rate":{"jobs":1,"per":"1s"}}})")
          .status,
      400);
}

TEST_F(HttpLists, ARetentionDeletesTheDeadOfATube) {
  const Answer set =
      ask("PATCH", "/v1/tubes/mail", R"({"retention":"7d","retry":{"max_attempts":1}})");
  EXPECT_EQ(set.value().at("retention"), "604800s");
  put(R"({"expires_in":"1s","at_expiry":"dead"})");
  pass(1'000);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("state"), "dead");
  pass(604'799'999);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").status, 200);
  pass(1);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").status, 404);
  EXPECT_NE(ask("GET", "/metrics").body.find("carillon_dead_deleted_total{tube=\"mail\"} 1\n"),
            std::string::npos);
  EXPECT_EQ(ask("PATCH", "/v1/tubes/mail", R"({"draining":false})").value().at("retention"),
            "604800s");
  EXPECT_EQ(ask("PATCH", "/v1/tubes/mail", R"({"retention":null})")
                .value()
                .as_object()
                .contains("retention"),
            false);
  for (const char* wrong : {R"({"retention":"0s"})", R"({"retention":"37000d"})",
                            R"({"retention":7})", R"({"retention":"P1M"})"})
    EXPECT_EQ(ask("PATCH", "/v1/tubes/mail", wrong).status, 400) << wrong;
}

// RFC 7396: what is not named stays, also inside of an object.
TEST_F(HttpLists, APatchOfATubeLeavesWhatItDoesNotName) {
  const auto patch = [this](std::string_view body) {
    const Answer answer = ask("PATCH", "/v1/tubes/api", body);
    EXPECT_EQ(answer.status, 200) << body << answer.body;
    return answer.value();
  };
  patch(R"({"limits":{"rate":{"jobs":100,"per":"1m","burst":5}},"retry":{"max_attempts":3,)"
        R"("lost_fails":true,"backoff":{"initial":"1s","max":"1h","jitter":10}}})");
  json::value tube = patch(R"({"limits":{"rate":{"jobs":50}}})");
  EXPECT_EQ(tube.at("limits").at("rate"),
            (json::object{{"jobs", 50}, {"per", "60s"}, {"burst", 5}}));
  tube = patch(R"({"limits":{"rate":{"burst":null}}})");
  EXPECT_EQ(tube.at("limits").at("rate").at("burst"), 1);
  tube = patch(R"({"retry":{"max_attempts":9}})");
  EXPECT_EQ(
      tube.at("retry").at("backoff"),
      (json::object{{"type", "exponential"}, {"initial", "1s"}, {"max", "3600s"}, {"jitter", 10}}));
  EXPECT_EQ(tube.at("retry").at("lost_fails"), true);
  tube = patch(R"({"retry":{"backoff":{"type":"fixed","initial":"2s"},"lost_fails":null}})");
  EXPECT_EQ(tube.at("retry"),
            (json::object{{"max_attempts", 9},
                          {"backoff", {{"type", "fixed"}, {"initial", "2s"}, {"jitter", 10}}},
                          {"lost_fails", false}}));
  tube = patch(R"({"retry":{"backoff":{"initial":"3s"}}})");
  EXPECT_EQ(tube.at("retry").at("backoff").at("type"), "fixed");
  // Twice 0 is 0: it would be 0 for ever.
  EXPECT_EQ(ask("PATCH", "/v1/tubes/mail",
                R"({"retry":{"backoff":{"type":"exponential","initial":"0s","max":"1s"}}})")
                .value()
                .at("errors")
                .at(0)
                .at("pointer"),
            "/retry/backoff/initial");
  tube = patch(R"({"retry":{"backoff":null}})");
  EXPECT_EQ(tube.at("retry").at("backoff").at("initial"), "0s");
  EXPECT_EQ(tube.at("retry").at("max_attempts"), 9);
  EXPECT_EQ(ask("PATCH", "/v1/tubes/api", R"({"limits":{"rate":{"per":null}}})").status, 400);
  EXPECT_FALSE(patch(R"({"retry":null})").as_object().contains("retry"));
}

TEST_F(HttpLists, ChangesTheSettingsOfAGroup) {
  EXPECT_EQ(ask("GET", "/v1/tubes/api/groups/c-1").status, 404);
  EXPECT_EQ(
      ask("PATCH", "/v1/tubes/api/groups/c-1", R"({"weight":3,"limits":{"max_running":2}})").status,
      200);
  const json::value group = ask("GET", "/v1/tubes/api/groups/c-1").value();
  EXPECT_EQ(group.at("weight"), 3);
  EXPECT_EQ(group.at("limits").at("max_running"), 2);
  EXPECT_EQ(ask("PATCH", "/v1/tubes/api/groups/c-1", R"({"weight":0})").status, 400);
  EXPECT_EQ(ask("PATCH", "/v1/tubes/api/groups/a%20b", R"({"weight":1})").status, 400);
}

TEST_F(HttpLists, NamesThatAreNoTextAreToldApart) {
  const queue::ClientId producer = server.engine.connect();
  server.engine.use(producer, "odd");
  for (const char* const group : {"\xff", "\xfe"})
    server.engine.put(producer, server.now, {.ttr = 60'000, .group = group}, "");
  const json::value groups = ask("GET", "/v1/tubes/odd/groups").value().at("groups");
  EXPECT_EQ(groups.at(0).at("name_base64"), "/w==");
  EXPECT_EQ(groups.at(1).at("name_base64"), "/g==");
  for (const char* const empty : {"group_base64", "key_prefix_base64", "reason_base64", "reason"}) {
    const Answer refused = ask("POST", "/v1/jobs:cancel",
                               R"({"filter":{"tube":"odd",")" + std::string(empty) + R"(":""}})");
    EXPECT_EQ(refused.status, 400) << empty << " is no filter: " << refused.body;
  }
  EXPECT_EQ(ask("GET", "/v1/tubes/odd/jobs?group_base64=").status, 400);
  const Answer cancelled =
      ask("POST", "/v1/jobs:cancel", R"({"filter":{"tube":"odd","group_base64":"/w=="}})");
  EXPECT_EQ(cancelled.value().at("changed"), 1) << cancelled.body;
  EXPECT_EQ(ask("GET", "/v1/tubes/odd/jobs?group=%FE").value().at("jobs").as_array().size(), 1u);
}

TEST_F(HttpLists, AnEndpointTooManyIsAConflict) {
  const std::string endpoint = R"({"url":"http://example.com/","tube":"t"})";
  for (std::size_t n = 0; n < queue::kMostEndpoints; ++n)
    EXPECT_EQ(ask("PUT", "/v1/endpoints/e" + std::to_string(n), endpoint).status, 201);
  const Answer refused = ask("PUT", "/v1/endpoints/more", endpoint);
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.detail(), "there are 256 endpoints, and may be no more");
}

}  // namespace
}  // namespace carillon::server::http
