// Clients of another protocol, above all browsers, are turned away before any command is carried
// out.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

constexpr std::string_view kRefusal =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 55\r\n"
    "Connection: close\r\n\r\nThis port speaks the beanstalk protocol, and not HTTP.\n";

constexpr std::string_view kJob = "put 0 0 60 4\r\nevil\r\n";

// What a browser sends for a form with enctype="text/plain" that any web page may hold.
std::string form_post() {
  return "POST /x HTTP/1.1\r\nHost: 127.0.0.1:11300\r\nConnection: keep-alive\r\n"
         "Content-Length: 23\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\n"
         "User-Agent: Mozilla/5.0\r\nAccept: */*\r\n\r\nx=\r\n" +
         std::string(kJob);
}

bool is_closed(const Client& client) {
  return const_cast<Client&>(client).session().wants() == Session::Wants::kNothing;
}

std::uint64_t jobs(const TestServer& server) {
  return server.engine.stats().jobs.total;
}

TEST(SessionStrangers, ABrowsersFormPutsNoJob) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say(form_post()), kRefusal);
  EXPECT_TRUE(is_closed(client));
  EXPECT_EQ(client.session().take_rejection(), RejectReason::kHttp);
  EXPECT_EQ(client.session().take_rejection(), RejectReason::kNone);
  EXPECT_EQ(jobs(server), 0u);
  EXPECT_EQ(server.service.counters().closed_foreign, 1u);
}

TEST(SessionStrangers, HoweverItIsCut) {
  const std::string bytes = form_post();
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    TestServer server;
    Client client(server);
    std::string answer;
    for (std::size_t at = 0; at < bytes.size(); at += size)
      answer += client.say(bytes.substr(at, size));
    ASSERT_EQ(answer, kRefusal) << "pieces of " << size << " bytes";
    ASSERT_EQ(jobs(server), 0u);
  }
}

TEST(SessionStrangers, ARequestIsTurnedAwayBeforeItsLineEnds) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("GET / HTTP"), "");
  EXPECT_EQ(client.say("/"), kRefusal);
}

TEST(SessionStrangers, TheTargetMayBeOfAnyLength) {
  for (const std::size_t length :
       std::vector<std::size_t>{200, 211, 212, 213, 214, 215, 216, 217, 218, 300, 100'000}) {
    const std::string bytes =
        "GET /" + std::string(length, 'a') + " HTTP/1.1\r\n" + std::string(kJob);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
      TestServer server;
      Client client(server);
      std::string answer;
      for (std::size_t at = 0; at < bytes.size(); at += piece)
        answer += client.say(bytes.substr(at, piece));
      ASSERT_EQ(answer, kRefusal) << length << ", pieces of " << piece;
      ASSERT_EQ(jobs(server), 0u);
    }
  }
}

TEST(SessionStrangers, AfterAnUnknownLineARequestIsOneToo) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("\r\n" + form_post()), "UNKNOWN_COMMAND\r\n" + std::string(kRefusal));
  EXPECT_EQ(jobs(server), 0u);
}

TEST(SessionStrangers, NoRequestLineCarriesOutACommand) {
  const char* const given = std::getenv("CARILLON_SEED");
  const auto seed = given != nullptr ? static_cast<unsigned>(std::atol(given)) : 1U;
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t n) { return random() % n; };
  constexpr std::array<std::string_view, 15> kMethods = {
      "GET",  "POST", "OPTIONS", "HEAD", "PUT",        "put",   "reserve",   "reserve-with-timeout",
      "kick", "use",  "watch",   "quit", "pause-tube", "stats", "list-tubes"};
  // RFC 9110, section 5.6.2.
  constexpr std::string_view kToken =
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int i = 0; i < 20'000; ++i) {
    std::string line(kMethods[below(kMethods.size())]);
    if (below(2) == 0) {
      line.clear();
      for (std::size_t n = 1 + below(20); n > 0; --n) line += kToken[below(kToken.size())];
    }
    line += below(4) == 0 ? " 5" : " ";
    for (std::size_t n = 1 + below(below(10) == 0 ? 500 : 20); n > 0; --n)
      line += static_cast<char>('!' + below(94));
    line += " HTTP/1.";
    line += below(2) == 0 ? "1\r\n" : "0\r\n";
    const std::string bytes = line + std::string(kJob) + std::string(kJob);

    TestServer server;
    Client client(server);
    std::string answer;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t piece = 1 + below(bytes.size());
      answer += client.say(std::string_view(bytes).substr(at, piece));
      at += piece;
    }
    ASSERT_EQ(answer, kRefusal) << line;
    ASSERT_TRUE(is_closed(client)) << line;
    ASSERT_EQ(jobs(server), 0u) << line;
    std::uint64_t commands = 0;
    for (const std::uint64_t count : server.service.counters().commands) commands += count;
    ASSERT_EQ(commands, 0u) << line;
  }
}

TEST(SessionStrangers, TheThirdUnknownCommandFromTheStartEndsTheConnection) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("*2\r\n$4\r\nAUTH\r\n" + std::string(kJob)),
            "UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n");
  EXPECT_TRUE(is_closed(client));
  EXPECT_EQ(client.session().take_rejection(), RejectReason::kUnknownCommands);
  EXPECT_EQ(jobs(server), 0u);
  EXPECT_EQ(server.service.counters().closed_foreign, 1u);
}

TEST(SessionStrangers, ALineThatIsTooLongOrHasANulIsUnknown) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say(std::string(300, 'x') + "\r\n" + std::string("\x16\x03\0\r\n", 5) + "y\r\n" +
                       std::string(kJob)),
            "BAD_FORMAT\r\nBAD_FORMAT\r\nUNKNOWN_COMMAND\r\n");
  EXPECT_TRUE(is_closed(client));
}

TEST(SessionStrangers, TwoUnknownCommandsAreAnswered) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("newer-verb 1\r\nnewest-verb\r\nreserve-with-timeout 0\r\n"),
            "UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\nTIMED_OUT\r\n");
  EXPECT_FALSE(is_closed(client));
}

TEST(SessionStrangers, AfterAKnownCommandUnknownOnesAreAnsweredForEver) {
  for (const std::string_view known : {"use t\r\n", "kick x\r\n", "peek-readyx\r\n"}) {
    TestServer server;
    Client client(server);
    client.say(known);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(client.say("foo\r\n"), "UNKNOWN_COMMAND\r\n");
    EXPECT_EQ(client.say("GET / HTTP/1.1\r\n"), "UNKNOWN_COMMAND\r\n");
    EXPECT_EQ(client.say(kJob), "INSERTED 1\r\n");
  }
}

TEST(SessionStrangers, ATubeMayHaveTheNameOfAVersion) {
  for (const std::string_view line : {"use HTTP/1.1\r\n", "use  HTTP/1.1\r\n"}) {
    TestServer server;
    Client client(server);
    EXPECT_EQ(client.say(line).substr(0, 4), line[4] == ' ' ? "BAD_" : "USIN") << line;
    EXPECT_EQ(client.say("watch HTTP/1.1\r\n"), "WATCHING 2\r\n");
    EXPECT_EQ(client.say("pause-tube HTTP/1.1 5\r\n"), "PAUSED\r\n");
  }
}

}  // namespace
}  // namespace carillon::server::beanstalk
