// The feed over HTTP: a stream of events without an end, and what is kept of it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "http_fixture.h"
#include "server/api/feed.h"

namespace carillon::server::http {
namespace {

class HttpEvents : public HttpSession {
 protected:
  // Lets a second go by in which there was something to do, and lets the feed do what is due.
  void second() {
    work();
    server.now.utc_ns += 1'000'000'000;
    server.now.mono_ns += 1'000'000'000;
    server.engine.advance(server.now);
    work();
  }
  void work() {
    Feed& feed = server.service.feed();
    do feed.work(server.now);
    while (feed.next_wakeup() <= server.now.mono_ns);
  }
  void listen(std::string_view headers = "") {
    feed("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers) + "\r\n");
  }
  // Returns what has come of the stream.
  std::string told() {
    feed("");
    return read();
  }
};

std::size_t count(std::string_view text, std::string_view of) {
  std::size_t found = 0;
  for (std::size_t at = text.find(of); at != std::string_view::npos; at = text.find(of, at + 1))
    ++found;
  return found;
}

TEST_F(HttpEvents, AListenerHearsEachSecond) {
  put(R"({"body":"x"})");
  put(R"({"body":"y","delay":"1h"})");
  listen();
  const std::string head = read();
  EXPECT_NE(head.find("Content-Type: text/event-stream\r\n"), std::string::npos) << head;
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(session.wants(), Protocol::Wants::kDelivery);
  work();
  const std::string event = told();
  EXPECT_EQ(count(event, "event: stats\n"), 1u) << event;
  EXPECT_NE(event.find(R"("jobs":{"delayed":1,"ready":1,"reserved":0,"buried":0})"),
            std::string::npos)
      << event;
  EXPECT_TRUE(event.ends_with("}\n\n"));
  second();
  EXPECT_NE(told().find(R"("oldest_ready_age_ms":1000)"), std::string::npos);
}

TEST_F(HttpEvents, OneThatWasHereBeforeGetsWhatItHasMissed) {
  for (int i = 0; i < 5; ++i) second();
  const std::string id = server.service.identity().id;
  listen("Last-Event-ID: " + id + "-2\r\n");
  const std::string events = read();
  EXPECT_EQ(count(events, "event: stats\n"), server.service.feed().newest() - 2) << events;
  EXPECT_NE(events.find("id: " + id + "-3\n"), std::string::npos);
  EXPECT_EQ(events.find("id: " + id + "-2\n"), std::string::npos);
}

TEST_F(HttpEvents, AnIdOfAnotherProcessMeansAllKeptEvents) {
  for (int i = 0; i < 5; ++i) second();
  listen("Last-Event-ID: 0123456789abcdef-4\r\n");
  EXPECT_EQ(count(read(), "event: stats\n"), server.service.feed().newest());
}

TEST_F(HttpEvents, WhatIsNoIdIsRefused) {
  EXPECT_EQ(ask("GET", "/v1/events", "", "Last-Event-ID: seven\r\n").detail(),
            "\"seven\": not the id of an event");
  EXPECT_EQ(ask("GET", "/v1/events?x=1").detail(), "?x: there is only last_event_id");
}

// It takes no more memory than kMostUnread and one event, and is closed when it has missed one.
TEST_F(HttpEvents, AListenerThatDoesNotReadIsBounded) {
  listen();
  for (std::size_t i = 0; i < Feed::kMostEvents; ++i) {
    second();
    feed("");
  }
  EXPECT_FALSE(session.has_fallen_behind());
  for (int i = 0; i < 100; ++i) second();
  EXPECT_TRUE(session.has_fallen_behind());
  EXPECT_LT(session.replies().bytes(), std::size_t{18} << 10);
  EXPECT_EQ(session.wants(), Protocol::Wants::kRoom);
  EXPECT_EQ(server.service.feed().samples().size(), Feed::kMostSamples);
}

TEST_F(HttpEvents, AStreamEndsWithItsClient) {
  listen();
  EXPECT_EQ(server.service.feed().listeners().size(), 1u);
  EXPECT_TRUE(session.has_endless_reply());
  session.end_of_input();
  EXPECT_EQ(session.wants(), Protocol::Wants::kNothing);
  EXPECT_TRUE(server.service.feed().listeners().empty());
}

TEST_F(HttpEvents, TheNumberOfListenersIsBounded) {
  for (std::uint64_t i = 0; i < Feed::kMostListeners; ++i) server.service.feed().listen(1'000 + i);
  const Answer refused = ask("GET", "/v1/events");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.detail(), "256 clients listen to events, and no more may");
  EXPECT_NE(refused.head.find("\r\nRetry-After: 10\r\n"), std::string::npos);
}

TEST_F(HttpEvents, TheLastSecondsAreKept) {
  for (int i = 0; i < 5; ++i) second();
  EXPECT_EQ(ask("GET", "/v1/history?seconds=3").value().at("samples").as_array().size(), 3u);
  EXPECT_EQ(ask("GET", "/v1/history?seconds=0").detail(),
            "?seconds: \"0\": not a whole number from 1 to 300");
}

TEST_F(HttpEvents, AnIdleServerSleepsWhileNobodyListens) {
  Feed& events = server.service.feed();
  second();
  EXPECT_EQ(events.samples().size(), 1u);
  EXPECT_EQ(events.next_wakeup(), UINT64_MAX);
  server.now.utc_ns += 3'600'000'000'000;
  server.now.mono_ns += 3'600'000'000'000;
  for (int i = 0; i < 7; ++i) put(R"({"body":"x"})");
  second();
  const json::value last = ask("GET", "/v1/history?seconds=1").value().at("samples").at(0);
  EXPECT_EQ(last.at("rates").at("put").to_number<double>(), 7);
  EXPECT_EQ(events.samples().size(), 2u);
  EXPECT_EQ(events.next_wakeup(), UINT64_MAX);
  listen();
  EXPECT_LT(events.next_wakeup(), UINT64_MAX);
}

TEST_F(HttpEvents, WhatIsKeptCountsAsMemoryAndIsBounded) {
  Feed& events = server.service.feed();
  EXPECT_EQ(server.service.memory().used(), 0u);
  const std::string text(1'000, '"');
  for (std::size_t i = 0; i < Feed::kMostActions + 10; ++i)
    events.tell({.who = text, .action = text, .target = text, .outcome = text});
  EXPECT_EQ(events.actions().size(), Feed::kMostActions);
  EXPECT_LT(events.newest() - events.oldest(), Feed::kMostEvents);
  EXPECT_GT(server.service.memory().used(), Feed::kMostBytes);
  EXPECT_LT(server.service.memory().used(), 4 * Feed::kMostBytes);
}

TEST_F(HttpEvents, RatesAreThoseOfTheLastSecond) {
  second();
  for (int i = 0; i < 7; ++i) put(R"({"body":"x"})");
  second();
  const json::value last = ask("GET", "/v1/history?seconds=1").value().at("samples").at(0);
  EXPECT_EQ(last.at("rates").at("put").to_number<double>(), 7);
  EXPECT_EQ(last.at("totals").at("put").to_number<int>(), 7);
  EXPECT_TRUE(last.at("lateness_ms").at("p50").is_null());
}

// Each action is a line of the log.
TEST_F(HttpEvents, WhatAClientWritesMakesNoLinesOfItsOwn) {
  EXPECT_EQ(ask("POST", "/v1/schedules/a%0Aerror:%20b:pause").status, 404);
  EXPECT_EQ(server.service.feed().actions().back().target, "a?error: b");
}

TEST_F(HttpEvents, TheAuditTellsWhatOperatorsDid) {
  put(R"({"body":"x"})");
  server.engine.name_client(session.client(), "127.0.0.1:4711");
  EXPECT_EQ(ask("POST", "/v1/jobs:cancel", R"({"filter":{"tube":"mail"},"dry_run":true})").status,
            200);
  EXPECT_EQ(ask("POST", "/v1/jobs:cancel", R"({"filter":{"tube":"mail"}})").status, 200);
  EXPECT_EQ(ask("POST", "/v1/tubes/none:pause").status, 404);
  const json::value audit = ask("GET", "/v1/audit").value();
  const json::array& actions = audit.at("actions").as_array();
  ASSERT_EQ(actions.size(), 2u) << json::serialize(audit);
  EXPECT_EQ(actions[0].at("action").as_string(), "tube:pause");
  EXPECT_EQ(actions[0].at("target").as_string(), "none");
  EXPECT_EQ(actions[0].at("outcome").as_string(), "there is no tube \"none\"");
  EXPECT_EQ(actions[1].at("action").as_string(), "jobs:cancel");
  EXPECT_EQ(actions[1].at("target").as_string(), "mail");
  EXPECT_EQ(actions[1].at("outcome").as_string(), "changed 1, left 0");
  EXPECT_EQ(actions[1].at("who").as_string(), "127.0.0.1:4711");
  const json::value first = ask("GET", "/v1/audit?page_size=1").value();
  EXPECT_EQ(first.at("actions"), json::array({actions[0]}));
  const std::string token(first.at("next_page_token").as_string());
  const json::value last = ask("GET", "/v1/audit?page_token=" + token).value();
  EXPECT_EQ(last.at("actions"), json::array({actions[1]}));
  EXPECT_TRUE(last.at("next_page_token").is_null());
}

}  // namespace
}  // namespace carillon::server::http
