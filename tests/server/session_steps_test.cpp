// Commands whose replies are made in steps: list-tubes and peek-delayed.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

using Wants = Session::Wants;

class SessionSteps : public testing::Test {
 protected:
  // Tubes with names of 7 bytes each.
  static void make_tubes(Client& maker, int tubes) {
    for (int i = 0; i < tubes; ++i) maker.say("watch " + std::to_string(1'000'000 + i) + "\r\n");
  }
  // Carries out one step of what the session has to do.
  static void step(Client& client, std::string_view bytes = {}) {
    client.session().receive(bytes, 0);
  }

  TestServer server;
  Client client{server};
  Client other{server};
};

TEST_F(SessionSteps, AListOfTubesIsAnsweredInStepsAndItsLengthFirst) {
  make_tubes(other, 300);
  step(client, "list-tubes\r\n");
  EXPECT_EQ(client.session().wants(), Wants::kTurn);
  EXPECT_EQ(client.read(), "OK 3014\r\n---\n");
  step(client);
  const std::string first = client.read();
  EXPECT_EQ(first.size(), 128 * 10u);
  EXPECT_TRUE(first.starts_with("- default\n- 1000000\n")) << first;
  EXPECT_EQ(other.say("use a\r\nignore 1000299\r\n"), "USING a\r\nWATCHING 300\r\n");
  step(client);
  const std::string second = client.read();
  EXPECT_EQ(second.size(), 128 * 10u);
  EXPECT_TRUE(second.starts_with("- 1000299\n- 1000127\n")) << "it was forgotten meanwhile";
  step(client);
  EXPECT_EQ(client.session().wants(), Wants::kInput);
  const std::string last = client.read();
  EXPECT_EQ(last.size(), 45 * 10 + 2u);
  EXPECT_TRUE(last.ends_with("- 1000298\n\r\n"));
  EXPECT_EQ(client.say("list-tubes-watched\r\n"), "OK 14\r\n---\n- default\n\r\n");
}

TEST_F(SessionSteps, AListWaitsWhileItsClientReadsNothing) {
  TestServer small({.max_unsent = 1'000});
  Client greedy(small);
  Client maker(small);
  make_tubes(maker, 300);
  EXPECT_EQ(greedy.say("list-tubes\r\n").size(), 13 + 128 * 10u);
  EXPECT_EQ(greedy.session().wants(), Wants::kInput) << "there is room again";
  EXPECT_EQ(greedy.say("").size(), 128 * 10u);
  EXPECT_EQ(greedy.say("").size(), 45 * 10 + 2u);
}

TEST_F(SessionSteps, AListBehindAReplyThatIsHeldIsHeldAsOneReply) {
  make_tubes(other, 300);
  client.durable = 0;
  EXPECT_EQ(client.say("put 0 0 60 1\r\nx\r\nlist-tubes\r\n"), "");
  client.session().replies().replace_held("NO\r\n");
  EXPECT_EQ(client.read(), "NO\r\nNO\r\n");
}

TEST_F(SessionSteps, AConnectionWhoseListIsLostIsClosed) {
  make_tubes(other, 300);
  step(client, "list-tubes\r\n");
  step(client);
  for (int i = 0; i <= 16'384; ++i) other.say("watch a\r\nignore a\r\n");
  step(client);
  EXPECT_EQ(client.session().wants(), Wants::kNothing);
  EXPECT_EQ(client.read().size(), 13 + 128 * 10u) << "the list is cut short";
}

TEST_F(SessionSteps, APeekPassesOverJobsThatAreReservedBeforeTheirTime) {
  for (int id = 1; id <= 101; ++id) client.say("put 0 86400 60 1\r\nx\r\n");
  for (int id = 1; id <= 100; ++id) other.say("reserve-job " + std::to_string(id) + "\r\n");
  step(client, "peek-delayed\r\n");
  int steps = 0;
  for (; client.session().wants() == Wants::kTurn; ++steps) step(client);
  EXPECT_EQ(steps, 7);
  EXPECT_EQ(client.read(), "FOUND 101 1\r\nx\r\n");
  EXPECT_EQ(other.say("reserve-job 101\r\n"), "RESERVED 101 1\r\nx\r\n");
  EXPECT_EQ(client.say("peek-delayed\r\nuse a\r\n"), "NOT_FOUND\r\nUSING a\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
