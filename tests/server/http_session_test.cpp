// HTTP requests as bytes, in whatever pieces, and the replies to them; without sockets.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http_fixture.h"
#include "server/text/json_text.h"

namespace carillon::server::http {
namespace {

TEST_F(HttpSession, PutsAJobAndShowsIt) {
  const Answer made = put(R"({"body":"hello","delay":"30s","priority":7,"key":"order-7"})");
  EXPECT_EQ(made.status, 201);
  EXPECT_NE(made.head.find("Location: /v1/jobs/1\r\n"), std::string::npos);
  const json::object job = ask("GET", "/v1/jobs/1").value().as_object();
  EXPECT_EQ(job.at("state"), "delayed");
  EXPECT_EQ(job.at("body"), "hello");
  EXPECT_EQ(job.at("priority"), 7);
  EXPECT_EQ(job.at("key"), "order-7");
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/keys/order-7").value().at("id"), 1);
}

TEST_F(HttpSession, AReplyWaitsUntilItsChangeIsDurable) {
  durable = 0;
  EXPECT_EQ(put(R"({"body":"a"})").status, 0);
  durable = UINT64_MAX;
  std::string bytes = read();
  EXPECT_EQ(take_answer(bytes).status, 201);
}

// The names of the fields, what is wrong, and what is allowed.
TEST_F(HttpSession, NamesEachWrongField) {
  const Answer wrong =
      put(R"({"delay":"30","ttr":"0.5s","priority":-1,"colour":"red","on_conflict":"ignore"})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_NE(wrong.head.find("Content-Type: application/problem+json"), std::string::npos);
  std::vector<std::string> pointers;
  const json::value problem = wrong.value();
  for (const json::value& error : problem.at("errors").as_array())
    pointers.emplace_back(error.at("pointer").as_string());
  EXPECT_EQ(pointers,
            (std::vector<std::string>{"/priority", "/delay", "/ttr", "/colour", "/on_conflict"}));
  EXPECT_EQ(ask("GET", "/v1/stats").value().at("jobs").at("put"), 0);
}

TEST_F(HttpSession, TakesAPlainBodyWithHeaders) {
  const Answer made = ask("POST", "/v1/tubes/mail/jobs", std::string_view("\x00\xFF", 2),
                          "Carillon-Delay: 1h30m\r\nCarillon-Priority: 3\r\n");
  EXPECT_EQ(made.status, 201);
  const json::object job = ask("GET", "/v1/jobs/1").value().as_object();
  EXPECT_EQ(job.at("body_base64"), "AP8=");
  EXPECT_EQ(job.at("priority"), 3);
  EXPECT_EQ(ask("GET", "/v1/jobs/1/body").body, std::string("\x00\xFF", 2));
}

// Names of media types have no case (RFC 9110, 8.3.1): else the job would be due at once.
TEST_F(HttpSession, ADescriptionIsOneHoweverItsTypeIsWritten) {
  for (const std::string type :
       {"Application/JSON", "application/json; charset=utf-8", "APPLICATION/json ;charset=utf-8"}) {
    const Answer made =
        ask("POST", "/v1/tubes/mail/jobs", R"({"delay":"1h"})", "Content-Type: " + type + "\r\n");
    EXPECT_EQ(made.value().at("state"), "delayed") << type;
  }
  const Answer plain = ask("POST", "/v1/tubes/mail/jobs", R"({"delay":"1h"})",
                           "Content-Type: application/json-seq\r\n");
  EXPECT_EQ(plain.value().at("state"), "ready");
}

TEST_F(HttpSession, AKeyIsCreatedReplacedComparedAndCancelled) {
  const std::string_view path = "/v1/tubes/mail/keys/a%20b%2Fc";
  const std::string_view type = "Content-Type: application/json\r\n";
  EXPECT_EQ(ask("PUT", path, R"({"body":"1"})", type).status, 400);  // a key has no space
  const std::string_view good = "/v1/tubes/mail/keys/a%2Fc";
  EXPECT_EQ(ask("PUT", good, R"({"body":"1"})", type).status, 201);
  EXPECT_EQ(ask("PUT", good, R"({"body":"2"})", type).status, 200);
  const std::string if_none = "If-None-Match: *\r\n" + std::string(type);
  EXPECT_EQ(ask("PUT", good, R"({"body":"3"})", if_none).status, 412);
  const Answer job = ask("GET", good);
  EXPECT_EQ(job.value().at("body"), "2");
  const std::string tag = job.head.substr(job.head.find("ETag: ") + 6, 18);
  EXPECT_EQ(ask("PATCH", good, R"({"priority":9})", "If-Match: " + tag + "\r\n").status, 200);
  EXPECT_EQ(ask("PATCH", good, R"({"priority":8})", "If-Match: " + tag + "\r\n").status, 412);
  EXPECT_EQ(ask("DELETE", good).status, 204);
  EXPECT_EQ(ask("DELETE", good).status, 404);
}

TEST_F(HttpSession, ACancelOfAReservedJobIsRefusedOrAskedFor) {
  put(R"({"body":"a"})");
  beanstalk::Client worker(server);
  worker.say("watch mail\r\nreserve-with-timeout 0\r\n");
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1").status, 409);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1?if_reserved=ask").status, 202);
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("cancel_requested"), true);
}

TEST_F(HttpSession, PausesATube) {
  put(R"({"body":"a"})");
  EXPECT_EQ(ask("POST", "/v1/tubes/mail:pause", R"({"duration":"10s"})").status, 200);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").value().at("paused"), true);
  EXPECT_EQ(ask("POST", "/v1/tubes/mail:resume").status, 200);
  EXPECT_EQ(ask("GET", "/v1/tubes/mail").value().at("paused"), false);
  EXPECT_EQ(ask("POST", "/v1/tubes/none:pause").status, 404);
}

TEST_F(HttpSession, SaysWhatAPathHas) {
  EXPECT_EQ(ask("GET", "/v2").status, 404);
  const Answer wrong = ask("DELETE", "/v1/stats");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_NE(wrong.head.find("Allow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_EQ(ask("GET", "/v1/jobs/x").status, 400);
  EXPECT_EQ(ask("GET", "/v1/jobs/%zz").status, 400);
}

// No name that a verb may follow has a colon.
TEST_F(HttpSession, APathWithAVerbHasTheMethodOfTheVerbAlone) {
  for (const std::string path : {"/v1/schedules/s:pause", "/v1/endpoints/e:rotate",
                                 "/v1/tubes/t:reserve", "/v1/jobs/1:kick", "/v1/leases/l:ack"}) {
    for (const std::string method : {"GET", "PUT", "DELETE", "OPTIONS"}) {
      const Answer wrong = ask(method, path);
      EXPECT_EQ(wrong.status, 405) << method << " " << path;
      EXPECT_NE(wrong.head.find("\r\nAllow: POST\r\n"), std::string::npos) << wrong.head;
    }
  }
  EXPECT_EQ(ask("PUT", "/v1/schedules/s%3Apause", "{}").status, 400) << "no name";
  EXPECT_EQ(ask("PUT", "/v1/tubes/t/keys/order:pause", "x").status, 201) << "a key may have one";
}

// Requests in a row, in pieces of any length, are answered in their order.
TEST_F(HttpSession, ReadsRequestsInAnyPieces) {
  std::string requests;
  for (int i = 0; i < 3; ++i)
    requests += "POST /v1/tubes/t/jobs HTTP/1.1\r\nHost: [::1]:11380\r\nContent-Length: 1\r\n\r\n" +
                std::to_string(i) + "GET /v1/jobs/" + std::to_string(i + 1) +
                "/body HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  for (std::size_t piece = 1; piece <= requests.size(); piece = piece * 2 + 1) {
    for (std::size_t at = 0; at < requests.size(); at += piece) feed(requests.substr(at, piece));
    std::string bytes = read();
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(take_answer(bytes).status, 201) << piece;
      ASSERT_EQ(take_answer(bytes).body, std::to_string(i)) << piece;
    }
  }
}

TEST_F(HttpSession, HeadHasNoBody) {
  feed("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string bytes = read();
  EXPECT_TRUE(bytes.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(bytes.find("\r\nContent-Length: 15\r\n"), std::string::npos);
  EXPECT_TRUE(bytes.ends_with("\r\n\r\n"));
}

// RFC 9110, 6.6.1 and 5.6.7.
TEST_F(HttpSession, AReplyHasTheDate) {
  const auto date = [&](std::uint64_t seconds) {
    server.now.utc_ns = seconds * 1'000'000'000 + 999'999'999;
    const std::string head = ask("GET", "/healthz").head;
    return head.substr(head.find("Date: "), 37);
  };
  EXPECT_EQ(date(1'795'640'937), "Date: Wed, 25 Nov 2026 21:08:57 GMT\r\n");
  EXPECT_EQ(date(1'835'395'200), "Date: Tue, 29 Feb 2028 00:00:00 GMT\r\n");
  EXPECT_EQ(date(4'102'444'799), "Date: Thu, 31 Dec 2099 23:59:59 GMT\r\n");
}

TEST_F(HttpSession, LetsTheClientSendItsBody) {
  feed(
      "POST /v1/tubes/t/jobs HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: 5\r\n\r\n");
  EXPECT_EQ(read(), "HTTP/1.1 100 Continue\r\n\r\n");
  feed("hello");
  std::string bytes = read();
  EXPECT_EQ(take_answer(bytes).status, 201);
}

TEST_F(HttpSession, ClosesWhenTheClientWantsIt) {
  feed("GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n");
  std::string bytes = read();
  const Answer answer = take_answer(bytes);
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(bytes, "");
  EXPECT_EQ(session.wants(), Protocol::Wants::kNothing);
}

// What is not a request, or too long, ends the connection: the next request cannot be found.
TEST_F(HttpSession, EndsWhatIsNoHttp) {
  feed("put 0 0 60 5\r\nhello\r\n");
  std::string bytes = read();
  EXPECT_EQ(take_answer(bytes).status, 400);
  EXPECT_EQ(session.wants(), Protocol::Wants::kNothing);
}

TEST_F(HttpSession, RefusesALongHeader) {
  const std::string much(RequestReader::kLongestHeader, 'x');
  const std::string post = "POST /v1/tubes/t/jobs HTTP/1.1\r\nHost: localhost\r\n";
  for (const std::string& request :
       {"GET / HTTP/1.1\r\nX: " + much, post + "Transfer-Encoding: chunked\r\n\r\n5;" + much,
        post + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + much}) {
    Session other(server.service, names);
    other.receive(request);
    EXPECT_TRUE(other.replies().sendable(durable).starts_with("HTTP/1.1 431 "));
    EXPECT_EQ(other.wants(), Protocol::Wants::kNothing);
  }
}

// Each takes more memory than its bytes.
TEST_F(HttpSession, RefusesManyNamesInAQuery) {
  std::string query = "?a";
  for (int n = 1; n < 65; ++n) query += "&a";
  EXPECT_EQ(ask("GET", "/v1/tubes/mail/jobs" + query).status, 400);
}

TEST_F(HttpSession, RefusesAFileForWhichThereIsNoMemory) {
  EXPECT_EQ(ask("GET", "/openapi.json").status, 200);
  MemoryPool::Share others(server.service.memory());
  others.set(server.service.memory().bytes());
  EXPECT_EQ(ask("GET", "/openapi.json").status, 503);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(HttpSession, RefusesManyHeaders) {
  std::string headers;
  for (int n = 0; n < 100; ++n) headers += "a" + std::to_string(n) + ": b\r\n";
  EXPECT_EQ(ask("GET", "/healthz", "", headers).status, 431);
}

// RFC 5789, 2.2.
TEST_F(HttpSession, APatchOfAnotherTypeIsRefused) {
  put(R"({"key":"order-7"})");
  const auto patch = [&](const std::string& type) {
    return ask("PATCH", "/v1/jobs/1", R"({"priority":7})", "Content-Type: " + type + "\r\n");
  };
  const Answer refused = patch("application/json-patch+json");
  EXPECT_EQ(refused.status, 415);
  EXPECT_NE(refused.head.find("Accept-Patch: application/merge-patch+json\r\n"), std::string::npos);
  EXPECT_EQ(patch("text/plain").status, 415);
  for (const char* type : {"application/merge-patch+json", "Application/JSON; charset=utf-8",
                           "application/x-www-form-urlencoded"})
    EXPECT_EQ(patch(type).status, 200) << type;
}

// The path and If-None-Match tell what these headers would.
TEST_F(HttpSession, RefusesHeadersThatAPutByKeyWouldOverride) {
  const std::string_view path = "/v1/tubes/mail/keys/order-7";
  EXPECT_EQ(ask("PUT", path, "a", "Carillon-Key: order-8\r\n").status, 400);
  EXPECT_EQ(ask("PUT", path, "a", "Carillon-On-Conflict: ignore\r\n").status, 400);
  EXPECT_EQ(ask("GET", path).status, 404);
  EXPECT_EQ(ask("PUT", path, "a", "Carillon-Priority: 3\r\n").status, 201);
}

TEST_F(HttpSession, RefusesALargeRequestBeforeItsBody) {
  feed("POST /v1/tubes/t/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n");
  std::string bytes = read();
  EXPECT_EQ(take_answer(bytes).status, 413);
  EXPECT_EQ(session.wants(), Protocol::Wants::kNothing);
}

// To read such JSON would take many milliseconds, in which nobody else is served.
TEST_F(HttpSession, RefusesJsonOfManyParts) {
  std::string many = R"({"key":["\"[)";
  for (int i = 0; i < 1'000; ++i) many += ",,";
  EXPECT_EQ(put(many + R"("]})").detail(),
            "/key: [\"\\\"[" + std::string(55, ',') + "...: not a text");
  many = "{\"x\":[";
  for (int i = 0; i < 1'000; ++i) many += "[],";
  EXPECT_EQ(ask("POST", "/v1/jobs:cancel", many + "0]}").detail(),
            "the JSON has more than 1000 values");
  EXPECT_EQ(put("{\"body\":\"" + std::string(1 << 20, 'x') + "\"}").status, 413);
}

// A proxy that checks a request in front of the server may read the other one.
TEST_F(HttpSession, RefusesWhatComesTwice) {
  const std::string twice = "an object of the JSON has a name twice";
  EXPECT_EQ(put(R"({"body":"a","body":"b"})").detail(), twice);
  EXPECT_EQ(put(R"({"body":"a","metadata":{"x":[{"y":1,"y":1}]}})").detail(), twice);
  EXPECT_EQ(put(R"({"body":"a","\u0062ody":"b"})").detail(), twice);
  EXPECT_EQ(put(R"({"body":"\":,\"body\":","metadata":{"body":{}}})").status, 201);
  EXPECT_EQ(
      ask("POST", "/v1/tubes/t/jobs", "x", "Carillon-Ttr: 1s\r\ncarillon-ttr: 2s\r\n").detail(),
      "there is more than one Carillon-Ttr");
}

// RFC 9110, 15.5.16.
TEST_F(HttpSession, RefusesAnEncodedBody) {
  const auto put = [&](std::string_view encoding) {
    return ask("POST", "/v1/tubes/t/jobs", "x",
               "Content-Encoding: " + std::string(encoding) + "\r\n");
  };
  const Answer refused = put("gzip");
  EXPECT_EQ(refused.status, 415);
  EXPECT_NE(refused.head.find("Accept-Encoding: identity\r\n"), std::string::npos);
  Session other(server.service, names);
  speaker = &other;
  EXPECT_EQ(put("Identity").status, 201);
}

TEST_F(HttpSession, ReadsABodyThatIsNotAtHandLater) {
  put(R"({"body":"a"})");
  server.store.bodies_are_on_disk = true;
  EXPECT_EQ(ask("GET", "/v1/jobs/1").status, 0);
  EXPECT_EQ(session.wants(), Protocol::Wants::kDelivery);
  session.body_read({.bytes = "a", .error = {}, .damaged = false});
  std::string bytes = read();
  EXPECT_EQ(take_answer(bytes).value().at("body"), "a");
}

// A second request could hide in the first (RFC 9112, 11.2).
TEST_F(HttpSession, RefusesABodyWhoseEndIsNotSure) {
  using namespace std::string_view_literals;
  const auto answer = [this](std::string_view form) {
    Session other(server.service, names);
    std::string bytes = "POST /v1/tubes/t/jobs HTTP/1.1\r\nHost: localhost\r\n" +
                        std::string(form) + "DELETE /v1/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n";
    do bytes.erase(0, other.receive(bytes));
    while (other.wants() == Protocol::Wants::kTurn);
    EXPECT_EQ(other.wants(), Protocol::Wants::kNothing) << form;
    return std::string(other.replies().sendable(durable));
  };
  for (const std::string_view form :
       {"Transfer-Encoding: gzip\r\n\r\n"sv,
        "Transfer-Encoding: gzip, chunked\r\n\r\n"sv,
        "Transfer-Encoding: xchunked\r\n\r\n"sv,
        "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"sv,
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"sv,
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"sv,
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"sv,
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"sv,
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"sv,
        "Transfer-Encoding:\x0b"
        "chunked\r\n\r\n0\r\n\r\n"sv,
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"sv,
        "Content-Length: 0, 3\r\n\r\n"sv,
        "Content-Length: +0\r\n\r\n"sv,
        "Content-Length: -1\r\n\r\n"sv,
        "Content-Length: 0x0\r\n\r\n"sv,
        "Content-Length: 0 0\r\n\r\n"sv,
        "Content-Length: 0;\r\n\r\n"sv,
        "Content-Length: 18446744073709551616\r\n\r\n"sv,
        "Content-Length : 0\r\n\r\n"sv,
        "X: a\r\n Content-Length: 0\r\n\x00\r\n\r\n"sv,
        "Host: other\r\n\r\n"sv,
        "X: a\nContent-Length: 3\r\n\r\n"sv,
        "X: a\rContent-Length: 3\r\n\r\n"sv,
        "X: a\x00"
        "b\r\n\r\n"sv,
        ": 1\r\n\r\n"sv,
        "Transfer-Encoding: chunked\n\r\n0\r\n\r\n"sv})
    EXPECT_TRUE(answer(form).starts_with("HTTP/1.1 4")) << form;
  for (const std::string_view chunks :
       {"-1\r\n\r\n"sv, "0x1\r\nx\r\n0\r\n\r\n"sv, "1\r\nxy\r\n0\r\n\r\n"sv,
        "10000000000000001\r\nx\r\n0\r\n\r\n"sv, "1\nx\r\n0\r\n\r\n"sv, "1;\nx\r\n0\r\n\r\n"sv,
        "1;a=\x00\r\nx\r\n0\r\n\r\n"sv, "1 \r\nx\r\n0\r\n\r\n"sv, "1\r\nx0\r\n\r\n"sv,
        ";\r\n\r\n"sv, "ffffffff\r\nx"sv}) {
    const std::string refused = answer("Transfer-Encoding: chunked\r\n\r\n" + std::string(chunks));
    EXPECT_TRUE(refused.starts_with("HTTP/1.1 4")) << chunks;
    EXPECT_EQ(refused.find("/v1/hidden"), std::string::npos) << chunks;
  }
  EXPECT_EQ(server.engine.stats().jobs.total, 0U);
}

// The job has a policy of its own, and not the tube's.
TEST_F(HttpSession, AJobMayHaveAPolicyOfZeros) {
  ask("PATCH", "/v1/tubes/mail", R"({"retry":{"max_attempts":1}})");
  put(R"({"retry":{}})");
  put(R"({"retry":null})");
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("retry").at("max_attempts"), 0);
  EXPECT_FALSE(ask("GET", "/v1/jobs/2").value().as_object().contains("retry"));
}

// The options of the other protocol could not name it: a quote there begins a quoted value.
TEST_F(HttpSession, RefusesAKeyOrAGroupWithAQuoteInFront) {
  const std::string rule =
      "1 to 200 bytes, no space or control character, and no quote at its beginning";
  EXPECT_EQ(put(R"({"key":"\"a"})").detail(), "/key: \"\"a\": " + rule);
  EXPECT_EQ(put(R"({"group":"\"a"})").status, 400);
  EXPECT_EQ(ask("PUT", "/v1/tubes/mail/keys/%22a", "a").status, 400);
  EXPECT_EQ(ask("PATCH", "/v1/tubes/mail/groups/%22a", R"({"weight":2})").status, 400);
  EXPECT_EQ(put(R"({"key":"a\"b"})").status, 201);
}

// As milliseconds it would lie in 1970, and the job would be ready at once.
TEST_F(HttpSession, RefusesAMomentInSeconds) {
  EXPECT_EQ(put(R"({"due":1893456000})").detail(),
            "/due: 1893456000: seconds since 1970? The unit is milliseconds");
  EXPECT_EQ(ask("POST", "/v1/tubes/t/jobs", "", "Carillon-Due: 1893456000\r\n").status, 400);
  EXPECT_EQ(put(R"({"due":1893456000000})").status, 201);
}

// JSON is UTF-8 (RFC 8259, 8.1), whatever bytes a job or a request has.
TEST_F(HttpSession, RepliesAreUtf8) {
  beanstalk::Client worker(server);
  worker.say(
      "name-client w\xFF\r\nput-job 1 key=k\xFF\r\na\r\nreserve\r\nfail-job 1 1\r\n\xFE\r\n");
  const Answer shown = ask("GET", "/v1/jobs/1");
  ASSERT_TRUE(is_utf8(shown.body));
  EXPECT_EQ(shown.value().at("key_base64"), "a/8=");
  const json::value attempt = shown.value().at("attempts").at(0);
  EXPECT_EQ(attempt.at("worker_base64"), "d/8=");
  EXPECT_EQ(attempt.at("error_base64"), "/g==");
  EXPECT_TRUE(ask("GET", "/v1/tubes/t%FF").detail().starts_with("\"t\uFFFD\": not the name"));
  EXPECT_TRUE(is_utf8(put("{\"delay\":\"" + std::string(58, 'x') + "\u00E4\"}").body));
}

// --- What must not reach the engine: it throws, and nobody else would catch that.

TEST_F(HttpSession, RefusesABackOffBeyondTheYear9999) {
  const Answer wrong = put(R"({"retry":{"backoff":{"initial":"3000000d","max":"3000001d"}}})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_NE(wrong.detail().find("/retry/backoff/initial: 259200000000000 ms"), std::string::npos);
}

TEST_F(HttpSession, RefusesAPatchWithALargeBody) {
  put(R"({"body":"a"})");
  const auto patch = [this](std::size_t bytes) {
    return ask("PATCH", "/v1/jobs/1", R"({"body":")" + std::string(bytes, 'b') + "\"}");
  };
  EXPECT_EQ(patch(queue::kBodyPiece + 1).status, 413);
  const std::size_t most = server.service.options().max_job_size;
  EXPECT_EQ(patch(most + 1).status, 413);
  EXPECT_EQ(patch(most).status, 200);
}

TEST_F(HttpSession, RefusesAWrongKey) {
  const auto put_key = [this](const std::string& key) {
    return ask("PUT", "/v1/tubes/t/keys/" + key, "a").status;
  };
  EXPECT_EQ(put_key(std::string(queue::kMaxKey + 1, 'k')), 400);
  EXPECT_EQ(put_key("a%20b"), 400);
  EXPECT_EQ(put_key("a%0D%0Ab"), 400);
  EXPECT_EQ(put_key("a%7F"), 400);
  EXPECT_EQ(put(R"({"key":"a\u007F"})").status, 400);
  EXPECT_EQ(put_key(std::string(queue::kMaxKey, 'k')), 201);
}

TEST_F(HttpSession, AJobThatGoesOrChangesWhileItsBodyIsReadIsReadAgain) {
  put(R"({"body":"a"})");
  server.store.bodies_are_on_disk = true;
  const auto ask_and = [this](std::string_view path, const auto& change) {
    ask("GET", path);
    change();
    session.body_read({.bytes = {}, .error = "no such body", .damaged = true});
    if (session.wants() == Protocol::Wants::kDelivery)
      session.body_read({.bytes = "b", .error = {}, .damaged = false});
    std::string bytes = read();
    return take_answer(bytes);
  };
  const auto patch = [this] { server.engine.patch(server.now, 1, {.body = "b"}); };
  const auto cancel = [this] { server.engine.cancel(server.now, 1); };
  const Answer damaged = ask_and("/v1/jobs/1", [] {});
  EXPECT_EQ(damaged.status, 500);
  EXPECT_EQ(damaged.value().at("type"), "/docs#damaged");
  EXPECT_EQ(damaged.detail(), "the body of job 1 is damaged: no such body");
  EXPECT_EQ(ask_and("/v1/jobs/1", patch).value().at("body"), "b");
  EXPECT_EQ(ask_and("/v1/jobs/1/body", patch).body, "b");
  EXPECT_EQ(ask_and("/v1/jobs/1/body", cancel).status, 404);
}

TEST_F(HttpSession, KeepsAttributesOfAnyName) {
  EXPECT_EQ(put(R"({"attributes":{"mine":[1,"a b"],"metadata":2},"content_type":"x/y"})").status,
            201);
  const json::value kept = ask("GET", "/v1/jobs/1").value();
  EXPECT_EQ(kept.at("attributes"), json::parse(R"({"mine":[1,"a b"],"metadata":2})"));
  EXPECT_EQ(kept.at("content_type"), "x/y");
  const std::string large = R"({"attributes":{"a":")" + std::string(512, 'a') + R"("}})";
  EXPECT_EQ(put(large).value().at("errors").at(0).at("pointer"), "/attributes");
}

TEST_F(HttpSession, KeepsWhatAClientWantsToBeKept) {
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(
      put(R"({"body":"a","content_type":"text/plain","metadata":{"a b":[1,{"c":null}]}})").status,
      201);
  const json::value kept = ask("GET", "/v1/jobs/1").value();
  EXPECT_EQ(kept.at("content_type"), "text/plain");
  EXPECT_EQ(kept.at("metadata"), json::parse(R"({"a b":[1,{"c":null}]})"));
  const std::string headers = "traceparent: " + trace + "\r\ntracestate: a=b\r\n";
  ask("POST", "/v1/tubes/mail/jobs", "x", headers + "Content-Type: image/png\r\n");
  const json::value plain = ask("GET", "/v1/jobs/2").value();
  EXPECT_EQ(plain.at("content_type"), "image/png");
  EXPECT_EQ(plain.at("traceparent").as_string(), trace);
  EXPECT_EQ(plain.at("tracestate"), "a=b");
  ask("PUT", "/v1/tubes/mail/keys/k", "{}", headers + "Content-Type: application/json\r\n");
  EXPECT_EQ(ask("GET", "/v1/jobs/3").value().at("traceparent").as_string(), trace);
  ask("POST", "/v1/tubes/mail/jobs", "x", "traceparent: x\r\n");
  EXPECT_EQ(ask("GET", "/v1/jobs/4").value().as_object().contains("traceparent"), false)
      << "a wrong header is ignored";
  for (const std::string wrong : {"00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                  "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                  "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}) {
    const Answer put_plain = ask("POST", "/v1/tubes/mail/jobs", "x",
                                 "traceparent: " + wrong + "\r\ntracestate: a=b\r\n");
    EXPECT_EQ(put_plain.status, 201) << wrong;
    EXPECT_FALSE(put_plain.value().as_object().contains("traceparent")) << wrong;
    EXPECT_FALSE(put_plain.value().as_object().contains("tracestate")) << wrong;
    EXPECT_EQ(put(R"({"traceparent":")" + wrong + "\"}").status, 400) << wrong;
  }
  EXPECT_EQ(put(R"({"traceparent":"x"})").status, 400);
  EXPECT_EQ(put(R"({"tracestate":"a=b"})").status, 400);
  EXPECT_EQ(put(R"({"metadata":7})").status, 400);
  const Answer large = put(R"({"metadata":{"a":")" + std::string(600, 'x') + R"("}})");
  EXPECT_EQ(large.value().at("errors").at(0).at("pointer"), "/metadata");
}

TEST_F(HttpSession, TellsThatTheStoreHasFailed) {
  put(R"({"body":"a"})");
  server.store.appends_fail = true;
  EXPECT_EQ(put(R"({"body":"b"})").status, 500);
  server.store.bodies_fail = true;
  EXPECT_EQ(ask("GET", "/v1/jobs/1").status, 500);
}

TEST_F(HttpSession, RefusesJobsWhileTheServerDrains) {
  server.service.drain();
  const Answer refused = put(R"({"body":"a"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.head.find("Retry-After: "), std::string::npos);
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

// Its connection may linger until the client leaves, and others need the memory meanwhile.
TEST_F(HttpSession, ABodyThatIsRefusedTakesNoMemory) {
  ServiceOptions options;
  options.memory = 8 << 20;
  beanstalk::TestServer small(options);
  Session client(small.service, names);
  speaker = &client;
  feed("POST /v1/tubes/mail/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\nx");
  EXPECT_EQ(next().status, 503);
  client.count_memory();
  EXPECT_LT(small.service.memory().used(), 4'000U);
}

}  // namespace
}  // namespace carillon::server::http
