// list-jobs.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

// The server's clock starts at 2023-11-14T22:13:20Z.
class SessionLists : public testing::Test {
 protected:
  // Returns the data of the reply, or the reply if it is no data.
  std::string list(const std::string& options) { return data(client.say(line(options))); }
  static std::string line(const std::string& options) {
    return "list-jobs default" + (options.empty() ? "" : " " + options) + "\r\n";
  }
  static std::string data(const std::string& reply) {
    if (!reply.starts_with("OK ")) return reply;
    const std::size_t end = reply.find("\r\n");
    const std::size_t size = std::stoul(reply.substr(3));
    EXPECT_EQ(reply.size(), end + 2 + size + 2);
    return reply.substr(end + 2, size);
  }
  static int jobs_in(const std::string& lines) {
    int jobs = 0;
    for (std::size_t at = 0; (at = lines.find("{\"id\"", at)) != std::string::npos; ++at) ++jobs;
    return jobs;
  }
  static std::string next_in(const std::string& lines) {
    const std::size_t at = lines.find("{\"next\":\"");
    return at == std::string::npos ? "" : lines.substr(at + 9, lines.find('"', at + 9) - at - 9);
  }

  TestServer server;
  Client client{server};
};

TEST_F(SessionLists, TellAllOfAJob) {
  client.say(
      "put-job 5 key=order-7 key-window=1h delay=3s pri=7 ttr=2m max-attempts=3 "
      "backoff=1s..1h jitter=5%\r\nhello\r\n");
  client.say("name-client carol\r\nput 0 0 60 2\r\n\xff\x01\r\nreserve\r\n");
  EXPECT_EQ(
      list("bodies=yes"),
      "{\"id\":2,\"tube\":\"default\",\"state\":\"reserved\",\"due\":\"2023-11-14T22:13:20.000Z\","
      "\"pri\":0,\"ttr\":\"60000ms\",\"created\":\"2023-11-14T22:13:20.000Z\",\"reserves\":1,"
      "\"worker\":\"carol\",\"body_bytes\":2,\"body_base64\":\"/wE=\"}\n"
      "{\"id\":1,\"tube\":\"default\",\"state\":\"delayed\",\"due\":\"2023-11-14T22:13:23.000Z\","
      "\"pri\":7,\"ttr\":\"120000ms\",\"created\":\"2023-11-14T22:13:20.000Z\","
      "\"key\":\"order-7\",\"key_window\":\"3600000ms\",\"max_attempts\":3,"
      "\"backoff\":\"1000ms..3600000ms\",\"jitter\":\"5%\",\"lost\":\"returns\","
      "\"body_bytes\":5,\"body\":\"hello\"}\n"
      "{\"next\":null,\"looked_at\":2}\n");
}

TEST_F(SessionLists, AttributesAreKeptAndChanged) {
  client.say("put-job 1 attributes={\"a\":[1,\"b\\u0020c\"]}\r\nx\r\n");
  EXPECT_NE(list("").find(R"("attributes":{"a":[1,"b\u0020c"]})"), std::string::npos) << list("");
  EXPECT_EQ(client.say("patch-job 1 attributes={\"d\":2}\r\n"), "PATCHED 1\r\n");
  EXPECT_NE(list("").find(R"("attributes":{"d":2})"), std::string::npos) << list("");
  EXPECT_EQ(client.say("patch-job 1 pri=3\r\n"), "PATCHED 1\r\n");
  EXPECT_NE(list("").find(R"("attributes":{"d":2})"), std::string::npos) << list("");
  const std::string large = "{\"a\":\"" + std::string(600, 'x') + "\"}";
  for (const std::string& wrong :
       {std::string("x"), std::string("7"), std::string("{\"a\":}"), large})
    EXPECT_TRUE(client.say("put-job 1 attributes=" + wrong + "\r\nx\r\n").starts_with("BAD_OPTION"))
        << wrong;
}

TEST_F(SessionLists, ADeadJob) {
  client.say("put-job 1 max-attempts=1\r\na\r\nreserve\r\nfail-job 1 2\r\nno\r\n");
  const std::string dead = list("state=dead");
  EXPECT_NE(dead.find("\"state\":\"buried\""), std::string::npos) << dead;
  EXPECT_NE(dead.find("\"attempts\":1,\"dead\":\"attempts\""), std::string::npos) << dead;
  EXPECT_EQ(jobs_in(list("state=ready,delayed,reserved")), 0);
}

TEST_F(SessionLists, PageByPage) {
  for (int i = 0; i < 5; ++i) client.say("put 0 100 60 1\r\na\r\n");
  const std::string first = list("limit=2");
  EXPECT_EQ(jobs_in(first), 2);
  const std::string second = list("limit=2 after=" + next_in(first));
  EXPECT_EQ(jobs_in(second), 2);
  EXPECT_NE(second.find("\"id\":3"), std::string::npos);
  const std::string third = list("limit=2 after=" + next_in(second));
  EXPECT_EQ(jobs_in(third), 1);
  EXPECT_TRUE(third.ends_with("{\"next\":null,\"looked_at\":1}\n")) << third;
}

TEST_F(SessionLists, ATubeThatIsGone) {
  EXPECT_EQ(client.say("list-jobs none\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(data(client.say("list-jobs none after=d1-1\r\n")), "{\"next\":null,\"looked_at\":0}\n");
}

TEST_F(SessionLists, WrongOptions) {
  client.say("put 0 0 60 1\r\na\r\n");
  EXPECT_EQ(list("stat=ready"),
            "BAD_OPTION \"stat\": no such option; there are state group key-prefix due-after "
            "due-before "
            "limit after bodies\r\n");
  EXPECT_EQ(list("state=ready,late"),
            "BAD_OPTION state: \"late\": delayed, ready, reserved, buried or dead\r\n");
  EXPECT_EQ(list("state="), "BAD_OPTION state: \"\": delayed, ready, reserved, buried or dead\r\n");
  EXPECT_EQ(list("limit=0"), "BAD_OPTION limit: \"0\": not a number from 1 to 1000\r\n");
  EXPECT_EQ(list("limit=1001"), "BAD_OPTION limit: \"1001\": not a number from 1 to 1000\r\n");
  EXPECT_EQ(list("after=x"), "BAD_OPTION after: \"x\": not what a page calls next\r\n");
  EXPECT_EQ(list("bodies=1"), "BAD_OPTION bodies: \"1\": yes or no\r\n");
  EXPECT_EQ(list("limit"), "BAD_OPTION limit: limit=VALUE\r\n");
  EXPECT_EQ(list("limit=1 limit=2"), "BAD_OPTION limit: comes twice\r\n");
  EXPECT_EQ(
      list("due-after=1700000000"),
      "BAD_OPTION due-after: \"1700000000\": seconds since 1970? The unit is milliseconds\r\n");
  EXPECT_EQ(client.say("list-jobs\r\nlist-jobs -x\r\n"), "UNKNOWN_COMMAND\r\nBAD_FORMAT\r\n");
}

TEST_F(SessionLists, APageEndsWhenItIsLarge) {
  const std::string body(65'535, 'x');
  for (int i = 0; i < 6; ++i) client.say("put 0 100 60 65535\r\n" + body + "\r\n");
  int jobs = 0;
  int pages = 0;
  for (std::string after = "d0-0"; !after.empty(); ++pages) {
    const std::string page = list("bodies=yes after=" + after);
    EXPECT_LT(page.size(), kPageBytes + 70'000);
    jobs += jobs_in(page);
    after = next_in(page);
  }
  EXPECT_EQ(jobs, 6);
  EXPECT_EQ(pages, 3);
}

TEST_F(SessionLists, OthersAreServedBetweenTheSteps) {
  for (int i = 0; i < 500; ++i) client.say("put 0 100 60 1\r\na\r\n");
  Session& session = client.session();
  const std::string command = line("limit=1000");
  server.reading_takes_ns = 1'000;
  int turns = 1;
  EXPECT_EQ(session.receive(command, server.now.mono_ns + 1), command.size());
  for (; session.wants() == Session::Wants::kTurn; ++turns)
    session.receive("", server.now.mono_ns + 1);
  EXPECT_GT(turns, 5);
  EXPECT_EQ(jobs_in(data(client.read())), 500);
}

TEST_F(SessionLists, WaitsForBodiesThatAreOnDisk) {
  client.say("put 0 100 60 1\r\na\r\nput 0 200 60 1\r\nb\r\nput 0 300 60 1\r\nc\r\n");
  server.store.bodies_are_on_disk = true;
  EXPECT_EQ(client.say(line("bodies=yes")), "");
  EXPECT_EQ(client.session().wants(), Session::Wants::kDelivery);
  Client other(server);
  other.say("cancel-job 2\r\npatch-job 3 body=3\r\nnew\r\n");
  std::string reply;
  for (int i = 0; i < 4; ++i, reply += client.read()) server.read_bodies();
  const std::string page = data(reply);
  EXPECT_EQ(jobs_in(page), 2) << page;
  EXPECT_NE(page.find("\"body\":\"a\""), std::string::npos) << page;
  EXPECT_NE(page.find("\"body_bytes\":3,\"body\":\"new\""), std::string::npos) << page;
}

// Also if the body that fills the page is the last one that a step has scanned.
TEST_F(SessionLists, APageThatABodyOnDiskFillsLeavesOutNoJob) {
  const std::string body(65'000, 'x');
  for (int i = 0; i < 90; ++i) client.say("put 0 100 60 65000\r\n" + body + "\r\n");
  server.store.bodies_are_on_disk = true;
  int jobs = 0;
  for (std::string after = "d0-0"; !after.empty();) {
    std::string reply = client.say(line("bodies=yes after=" + after));
    for (; reply.empty(); reply = client.read()) server.read_bodies();
    const std::string page = data(reply);
    jobs += jobs_in(page);
    after = next_in(page);
  }
  EXPECT_EQ(jobs, 90);
}

TEST_F(SessionLists, BodiesThatCannotBeRead) {
  client.say("put 0 100 60 1\r\na\r\n");
  server.store.bodies_fail = true;
  EXPECT_EQ(list("bodies=yes"), "INTERNAL_ERROR\r\n");
  EXPECT_EQ(jobs_in(list("")), 1);
  server.store.bodies_fail = false;
  server.store.bodies_are_damaged = true;
  const std::string page = list("bodies=yes");
  EXPECT_NE(page.find("\"body_error\":\"checksum mismatch\""), std::string::npos) << page;
}

TEST_F(SessionLists, JobsThatCannotBeRead) {
  client.say("put 0 100 60 1\r\na\r\n");
  server.store.scans_fail = true;
  EXPECT_EQ(list(""), "INTERNAL_ERROR\r\n");
  server.store.scans_fail = false;
  EXPECT_EQ(jobs_in(list("")), 1);
}

// The job that is shown may be lost in a crash.
TEST_F(SessionLists, APageLeavesWhenWhatItShowsIsDurable) {
  client.say("put 0 100 60 1\r\na\r\n");
  client.durable = 0;
  EXPECT_EQ(client.say(line("")), "");
  client.durable = UINT64_MAX;
  EXPECT_EQ(jobs_in(data(client.read())), 1);
}

TEST_F(SessionLists, AClientThatGoesWhileItsPageIsMade) {
  client.say("put 0 100 60 1\r\na\r\n");
  server.store.bodies_are_on_disk = true;
  client.say(line("bodies=yes"));
  client.hang_up();
  EXPECT_TRUE(server.reads.asked.empty());
}

}  // namespace
}  // namespace carillon::server::beanstalk
