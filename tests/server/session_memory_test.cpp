// Sessions share the memory of all connections: what a body or unread replies of one client take is
// not there for another, and is there again afterwards.

#include <gtest/gtest.h>

#include <string>

#include "server/beanstalk/session.h"
#include "server/test_server.h"

namespace carillon::server::beanstalk {
namespace {

class SessionMemory : public ::testing::Test {
 protected:
  void put(Client& client) {
    ASSERT_EQ(client.say("put 0 0 60 40000\r\n" + body + "\r\n").substr(0, 8), "INSERTED");
    client.session().count_memory();
  }

  const std::string body = std::string(40'000, 'b');
  TestServer server{{.memory = 100'000}};
  Client one{server};
  Client two{server};
  Client three{server};
};

TEST_F(SessionMemory, APutThatHasNoneIsRefusedAfterItsBody) {
  one.say("put 0 0 60 40000\r\nthe first bytes");
  two.say("put 0 0 60 40000\r\nthe first bytes");
  EXPECT_EQ(three.say("put 0 0 60 40000\r\n"), "");
  EXPECT_EQ(three.say(body + "\r\n"), "OUT_OF_MEMORY\r\n");
  EXPECT_EQ(three.say("put 0 0 60 5\r\nsmall\r\n"), "INSERTED 1\r\n");
  one.hang_up();
  put(three);
}

TEST_F(SessionMemory, AJobThatHasNoneStaysReady) {
  put(one);
  two.durable = 0;  // its replies do not leave
  two.say("peek 1\r\npeek 1\r\n");
  two.session().count_memory();
  EXPECT_EQ(three.say("reserve\r\n"), "OUT_OF_MEMORY\r\n");
  EXPECT_EQ(three.say("reserve-job 1\r\n"), "OUT_OF_MEMORY\r\n");
  EXPECT_EQ(three.say("peek 1\r\n"), "OUT_OF_MEMORY\r\n");
  EXPECT_EQ(server.engine.stats().jobs.ready, 1u);
  two.hang_up();
  EXPECT_EQ(three.say("reserve\r\n"), "RESERVED 1 40000\r\n" + body + "\r\n");
}

TEST_F(SessionMemory, TheMoreIsTakenTheFewerRepliesMayBeUnread) {
  EXPECT_EQ(server.service.max_unsent(), 100'000u / 8);
  one.say("put 0 0 60 40000\r\nthe first bytes");
  EXPECT_EQ(server.service.max_unsent(), 8u << 10);
  one.hang_up();
  EXPECT_EQ(server.service.max_unsent(), 100'000u / 8);
}

}  // namespace
}  // namespace carillon::server::beanstalk
