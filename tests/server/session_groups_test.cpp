// Groups: put-job group=, and the statistics of groups.

#include <gtest/gtest.h>

#include <string>

#include "session_fixture.h"

namespace carillon::server::beanstalk {
namespace {

class SessionGroups : public SessionTest {};

TEST_F(SessionGroups, TakeTurnsByWeight) {
  server.engine.set_group(server.now, "default", "b", {.weight = 3});
  for (const std::string group : {"a", "a", "b", "b", "b", "b", "b"})
    client.say("put-job 1 group=" + group + "\r\n" + group + "\r\n");
  std::string got;
  for (int i = 0; i < 7; ++i) {
    const std::string reply = client.say("reserve\r\n");
    got += reply[reply.find('\n') + 1];
  }
  EXPECT_EQ(got, "abbabbb");
}

TEST_F(SessionGroups, AreAmongTheStatistics) {
  client.say("put-job 1 key=k group=acme\r\na\r\nput-job 1 group=acme delay=1h\r\nb\r\n");
  client.say("put-jobs 12 group=other\r\n1\r\nc\r\n1\r\nd\r\n\r\n");
  EXPECT_EQ(field("stats-job 1", "tube"), "\"default\"");
  EXPECT_EQ(field("stats-job 1", "group"), "\"acme\"");
  EXPECT_EQ(field("stats-tube default", "current-groups"), "2");
  EXPECT_EQ(field("stats-tube default", "current-jobs-ready"), "3");
  EXPECT_EQ(field("stats", "current-tubes"), "1");
  client.say("delete 3\r\ndelete 4\r\n");
  EXPECT_EQ(field("stats-tube default", "current-groups"), "1");
}

TEST_F(SessionGroups, ANameThatIsTooLongIsRefused) {
  EXPECT_EQ(client.say("put-job 1 group=" + std::string(201, 'g') + "\r\na\r\n").substr(0, 18),
            "BAD_OPTION group: ");
}

}  // namespace
}  // namespace carillon::server::beanstalk
