// Bodies that are larger than a piece, over HTTP: they are streamed, and a job never comes without
// its body and without a word.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

class HttpBodies : public HttpSession {
 protected:
  // Puts a job into the tube mail, and returns its body.
  std::string put_large(std::size_t bytes) {
    std::string body;
    for (std::size_t n = 0; body.size() < bytes; ++n) body += std::to_string(n) + ' ';
    body.resize(bytes);
    const queue::ClientId producer = server.engine.connect();
    server.engine.use(producer, "mail");
    server.engine.put(producer, server.now, {.ttr = 60'000}, body);
    server.engine.disconnect(producer, server.now);
    return body;
  }

  // Takes replies, and reads the bodies that are waited for, until there is no more.
  std::string read_all() {
    std::string bytes;
    for (std::string more = read(); !more.empty(); more = read()) {
      bytes += more;
      feed("");
      for (auto asked = std::exchange(server.reads.asked, {}); !asked.empty();
           asked = std::exchange(server.reads.asked, {})) {
        session.body_read(read_body(server.store, asked.front().second));
        feed("");
      }
    }
    return bytes;
  }
  std::string get_all(std::string_view path, std::string_view method = "GET") {
    feed(std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (auto asked = std::exchange(server.reads.asked, {}); !asked.empty();
         asked = std::exchange(server.reads.asked, {})) {
      session.body_read(read_body(server.store, asked.front().second));
      feed("");
    }
    return read_all();
  }
  json::object reserved() {
    feed("POST /v1/tubes/mail:reserve HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::string bytes = read_all();
    return take_answer(bytes).value().at("jobs").at(0).as_object();
  }
};

TEST_F(HttpBodies, AreFetchedWholeWhateverTheirSize) {
  constexpr std::size_t kPiece = queue::kBodyPiece;
  int id = 0;
  for (const std::size_t bytes :
       {std::size_t{0}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 2 * kPiece + 1, 9 * kPiece}) {
    const std::string body = put_large(bytes);
    const std::string path = "/v1/jobs/" + std::to_string(++id) + "/body";
    for (const bool is_on_disk : {false, true}) {
      server.store.bodies_are_on_disk = is_on_disk;
      std::string all = get_all(path);
      const Answer answer = take_answer(all);
      EXPECT_EQ(answer.status, 200);
      EXPECT_TRUE(answer.body == body) << answer.body.size() << " of " << bytes;
      EXPECT_EQ(all, "");
      EXPECT_EQ(session.wants(), Protocol::Wants::kInput);
    }
    server.store.bodies_are_on_disk = false;
  }
}

TEST_F(HttpBodies, TheNextReplyFollowsALargeBody) {
  const std::string body = put_large(1'000'000);
  feed(
      "GET /v1/jobs/1/body HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::string all = read_all();
  EXPECT_TRUE(take_answer(all).body == body);
  EXPECT_EQ(take_answer(all).value().at("status"), "ok");
}

TEST_F(HttpBodies, OnlyAFewPiecesAreHeldForAClientThatReadsSlowly) {
  put_large(20 << 20);
  feed("GET /v1/jobs/1/body HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(session.wants(), Protocol::Wants::kRoom);
  EXPECT_LT(session.replies().bytes(), 2u << 20);
}

TEST_F(HttpBodies, AHeadTellsTheSizeAlone) {
  put_large(300'000);
  const std::string head = get_all("/v1/jobs/1/body", "HEAD");
  EXPECT_NE(head.find("Content-Length: 300000\r\n"), std::string::npos);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_EQ(get_all("/healthz").substr(9, 3), "200");
}

TEST_F(HttpBodies, AReservedJobSaysWhereItsLargeBodyIs) {
  const std::string body = put_large(300'000);
  const json::object job = reserved();
  EXPECT_EQ(job.at("body_bytes"), 300'000);
  EXPECT_FALSE(job.contains("body"));
  const std::string lease(job.at("lease").as_string());
  EXPECT_EQ(job.at("body_url"), json::value("/v1/leases/" + lease + "/body"));
  std::string all = get_all("/v1/leases/" + lease + "/body");
  EXPECT_TRUE(take_answer(all).body == body);
  EXPECT_EQ(ask("POST", "/v1/leases/" + lease + ":ack").status, 204);
  EXPECT_EQ(ask("GET", "/v1/leases/" + lease + "/body").status, 409);
}

TEST_F(HttpBodies, ASmallBodyIsInTheReplyAndCanBeFetchedToo) {
  put(R"({"body":"hello"})");
  const json::object job = reserved();
  EXPECT_EQ(job.at("body"), "hello");
  EXPECT_FALSE(job.contains("body_url"));
  const std::string path = "/v1/leases/" + std::string(job.at("lease").as_string()) + "/body";
  EXPECT_EQ(ask("GET", path).body, "hello");
  pass(60'000);
  EXPECT_EQ(ask("GET", path).status, 409) << "the lease is over";
}

TEST_F(HttpBodies, AJobThatIsShownSaysWhereItsLargeBodyIs) {
  put_large(300'000);
  const json::object job = ask("GET", "/v1/jobs/1").value().as_object();
  EXPECT_FALSE(job.contains("body"));
  EXPECT_EQ(job.at("body_url"), "/v1/jobs/1/body");
}

TEST_F(HttpBodies, ABodyThatCannotBeReadToItsEndEndsTheConnection) {
  put_large(3 << 20);
  feed("GET /v1/jobs/1/body HTTP/1.1\r\nHost: localhost\r\n\r\n");
  server.store.bodies_fail = true;
  const std::string all = read_all();
  EXPECT_NE(all.find("Content-Length: 3145728\r\n"), std::string::npos);
  EXPECT_LT(all.size(), 3u << 20);
  EXPECT_EQ(session.wants(), Protocol::Wants::kNothing);
}

}  // namespace
}  // namespace carillon::server::http
