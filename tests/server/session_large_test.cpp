// Large bodies through a session: in pieces both ways, whatever the sizes in which bytes come.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "queue/numbered_jobs.h"
#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

constexpr std::size_t kBytes = 2 * queue::kBodyPiece + 1'000;

class SessionLarge : public ::testing::Test {
 protected:
  void TearDown() override { server.engine.check_invariants(); }

  static std::string put_line() { return "put 0 0 60 " + std::to_string(kBytes) + "\r\n"; }

  std::string say_in_steps(std::string_view bytes, std::size_t step) {
    std::string replies;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size())))
      replies += client.say(bytes.substr(0, step));
    return replies;
  }
  // Says it, and reads until there is no more.
  static std::string exchange(Client& who, std::string_view bytes) {
    std::string replies = who.say(bytes);
    for (std::string more = who.say(""); !more.empty(); more = who.say("")) replies += more;
    return replies;
  }
  std::string reply(std::string_view word, queue::JobId id) const {
    return std::string(word) + " " + std::to_string(id) + " " + std::to_string(kBytes) + "\r\n" +
           body + "\r\n";
  }
  bool any_unfinished() { return !server.store.recover().unfinished.empty(); }

  const std::string body = queue::body_of(1, kBytes);
  TestServer server{{.max_job_size = kLargestMaxJobSize, .max_unsent = 100'000}};
  Client client{server};
  Client other{server};
};

TEST_F(SessionLarge, ComeAndGoWhole) {
  queue::JobId id = 0;
  for (const std::size_t step : {std::size_t{1'000}, std::size_t{65'536}, kBytes}) {
    const std::string name = std::to_string(++id);
    EXPECT_EQ(say_in_steps(put_line() + body + "\r\n", step), "INSERTED " + name + "\r\n");
    EXPECT_TRUE(exchange(client, "reserve\r\n") == reply("RESERVED", id));
    EXPECT_TRUE(exchange(client, "peek " + name + "\r\n") == reply("FOUND", id));
    EXPECT_EQ(client.say("delete " + name + "\r\n"), "DELETED\r\n");
  }
}

TEST_F(SessionLarge, TakeNoMoreMemoryThanAPieceForAClientThatDoesNotRead) {
  client.say(put_line() + body + "\r\n");
  client.durable = 0;  // nothing may leave
  client.say("reserve\r\nlist-tube-used\r\n");
  EXPECT_EQ(client.session().wants(), Session::Wants::kRoom);
  EXPECT_LT(client.session().replies().bytes(), queue::kBodyPiece + 1'000);
  client.durable = UINT64_MAX;
  EXPECT_TRUE(exchange(client, "") == reply("RESERVED", 1) + "USING default\r\n");
}

TEST_F(SessionLarge, OnDiskAreReadPieceByPiece) {
  client.say(put_line() + body + "\r\n");
  server.store.bodies_are_on_disk = true;
  std::string replies = client.say("reserve\r\n");
  for (int piece = 0; piece < 3; ++piece) {
    EXPECT_EQ(server.reads.asked.size(), 1U) << piece;
    server.read_bodies();
    replies += exchange(client, "");
  }
  EXPECT_TRUE(replies == reply("RESERVED", 1));
  EXPECT_EQ(client.session().wants(), Session::Wants::kInput);
}

TEST_F(SessionLarge, ABodyThatCannotBeReadToItsEndEndsTheConnection) {
  client.say(put_line() + body + "\r\n");
  server.store.bodies_are_on_disk = true;
  client.say("reserve\r\n");
  server.read_bodies();
  EXPECT_TRUE(exchange(client, "").starts_with("RESERVED 1 "));
  server.store.bodies_fail = true;
  server.read_bodies();
  EXPECT_EQ(client.session().wants(), Session::Wants::kNothing);
  server.store.bodies_fail = server.store.bodies_are_on_disk = false;
  EXPECT_TRUE(exchange(other, "reserve\r\n") == reply("RESERVED", 1)) << "it is ready again";
}

TEST_F(SessionLarge, WithoutTheirEndAreRefused) {
  EXPECT_EQ(client.say(put_line() + body + "xy"), "EXPECTED_CRLF\r\n");
  EXPECT_FALSE(any_unfinished());
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
}

TEST_F(SessionLarge, AreGivenUpWhenTheClientGoes) {
  client.say(put_line() + body.substr(0, 3 * kBytes / 4));
  EXPECT_TRUE(any_unfinished());
  client.hang_up();
  EXPECT_FALSE(any_unfinished());
}

TEST_F(SessionLarge, IfTheStoreFailsTheAnswerComesAfterTheWholeBody) {
  client.say(put_line() + body.substr(0, kBytes / 4));
  server.store.appends_fail = true;
  EXPECT_EQ(client.say(body.substr(kBytes / 4)), "");
  EXPECT_EQ(client.say("\r\nlist-tube-used\r\n"), "INTERNAL_ERROR\r\nUSING default\r\n");
  EXPECT_EQ(client.say(put_line() + body + "\r\n"), "INTERNAL_ERROR\r\n");
  server.store.appends_fail = false;
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
}

TEST_F(SessionLarge, AreRefusedBeforeTheyAreStored) {
  server.service.drain();
  EXPECT_EQ(client.say(put_line() + body), "");
  EXPECT_FALSE(any_unfinished());
  EXPECT_EQ(client.say("\r\n"), "DRAINING\r\n");
}

// One with a key may need no token, so all of it comes.
TEST_F(SessionLarge, AreRefusedByTheRateOfTheirTubeBeforeTheyAreStored) {
  server.engine.set_tube(server.now, "default",
                         {.put_rate = {.rate = 1, .period = 60'000, .burst = 1}});
  client.say("put 0 0 60 1\r\na\r\n");
  const queue::Sequence before = server.engine.last_sequence();
  EXPECT_EQ(client.say(put_line() + body + "\r\n"), "OUT_OF_MEMORY\r\n");
  const std::string bytes = std::to_string(kBytes);
  EXPECT_EQ(client.say("put-job " + bytes + "\r\n" + body + "\r\n"), "TOO_FAST 60000\r\n");
  EXPECT_EQ(server.engine.last_sequence(), before);
  EXPECT_EQ(client.say("put-job " + bytes + " key=k\r\n" + body + "\r\n"), "TOO_FAST 60000\r\n");
  EXPECT_FALSE(any_unfinished());
}

// The first piece is stored. Then there is no room for more.
TEST_F(SessionLarge, AreRefusedWhenTheStoreBecomesFullMeanwhile) {
  std::size_t stored = 0;
  TestServer full(
      {.max_job_size = kLargestMaxJobSize, .stored = [&] { return stored; }, .max_stored = 1'000});
  Client putter(full);
  putter.say(put_line() + body.substr(0, queue::kBodyPiece));
  EXPECT_FALSE(full.store.recover().unfinished.empty());
  stored = 1'000;
  EXPECT_EQ(putter.say(body.substr(queue::kBodyPiece, queue::kBodyPiece)), "");
  EXPECT_TRUE(full.store.recover().unfinished.empty()) << "what was stored is given up";
  stored = 0;
  EXPECT_EQ(putter.say(body.substr(2 * queue::kBodyPiece)), "");
  EXPECT_EQ(putter.say("\r\nlist-tube-used\r\n"), "OUT_OF_MEMORY\r\nUSING default\r\n");
}

TEST_F(SessionLarge, AreRefusedWhenTheServerIsDrainedMeanwhile) {
  client.say(put_line() + body.substr(0, queue::kBodyPiece));
  server.service.drain();
  client.say(body.substr(queue::kBodyPiece, queue::kBodyPiece));
  EXPECT_FALSE(any_unfinished());
  EXPECT_EQ(client.say(body.substr(2 * queue::kBodyPiece) + "\r\n"), "DRAINING\r\n");
}

// A slow reader keeps its job as long as it takes a piece within each ttr.
TEST_F(SessionLarge, KeepTheirTtrFromEachPieceOnThatIsReadyToBeSent) {
  client.say("put 0 0 2 " + std::to_string(kBytes) + "\r\n" + body + "\r\n");
  std::string replies = client.say("reserve\r\n");
  for (int piece = 1; piece < 3; ++piece) {
    server.pass(1'500);
    EXPECT_EQ(other.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n") << piece;
    replies += client.say("");
  }
  EXPECT_TRUE(replies == reply("RESERVED", 1));
  server.pass(1'999);
  EXPECT_EQ(client.say("touch 1\r\n"), "TOUCHED\r\n");
}

TEST_F(SessionLarge, EndTheConnectionWhenTheTtrIsOverBeforeTheNextPiece) {
  client.say("put 0 0 2 " + std::to_string(kBytes) + "\r\n" + body + "\r\n");
  EXPECT_TRUE(client.say("reserve\r\n").starts_with("RESERVED 1 "));
  server.pass(2'000);
  EXPECT_TRUE(exchange(other, "reserve\r\n") == reply("RESERVED", 1));
  EXPECT_EQ(client.say(""), "") << "another client has the job";
  EXPECT_EQ(client.session().wants(), Session::Wants::kNothing);
}

TEST_F(SessionLarge, ArePeekedAtWhoeverHoldsTheJob) {
  client.say("put 0 0 2 " + std::to_string(kBytes) + "\r\n" + body + "\r\n");
  std::string replies = client.say("peek 1\r\n");
  EXPECT_TRUE(exchange(other, "reserve\r\n") == reply("RESERVED", 1));
  EXPECT_TRUE(replies + exchange(client, "") == reply("FOUND", 1));
}

}  // namespace
}  // namespace carillon::server::beanstalk
