// Groups: put-job group=, set-tube group=, stats-group, and the lists of their jobs.

#include <gtest/gtest.h>

#include <string>

#include "session_fixture.h"

namespace carillon::server::beanstalk {
namespace {

class SessionGroups : public SessionTest {};

TEST_F(SessionGroups, TakeTurnsByWeight) {
  EXPECT_EQ(client.say("set-tube default group=b weight=3\r\n"), "SET\r\n");
  for (const std::string group : {"a", "a", "b", "b", "b", "b", "b"})
    client.say("put-job 1 group=" + group + "\r\n" + group + "\r\n");
  std::string got;
  for (int i = 0; i < 7; ++i) {
    const std::string reply = client.say("reserve\r\n");
    got += reply[reply.find('\n') + 1];
  }
  EXPECT_EQ(got, "abbabbb");
}

TEST_F(SessionGroups, AreToldOfByName) {
  client.say("put-job 1 key=k group=acme\r\na\r\nput-job 1 group=acme delay=1h\r\nb\r\n");
  client.say("put-jobs 12 group=other\r\n1\r\nc\r\n1\r\nd\r\n\r\n");
  EXPECT_EQ(field("stats-job 1", "tube"), "\"default\"");
  EXPECT_EQ(field("stats-job 1", "group"), "\"acme\"");
  EXPECT_EQ(field("stats-group default acme", "current-jobs-ready"), "1");
  EXPECT_EQ(field("stats-group default acme", "current-jobs-delayed"), "1");
  EXPECT_EQ(field("stats-group default acme", "weight"), "1");
  EXPECT_EQ(field("stats-tube default", "current-groups"), "2");
  EXPECT_EQ(field("stats-tube default", "current-jobs-ready"), "3");
  EXPECT_EQ(field("stats", "current-tubes"), "1");
  const std::string list = client.say("list-jobs default group=acme state=ready\r\n");
  EXPECT_NE(list.find("\"group\":\"acme\",\"key\":\"k\""), std::string::npos) << list;
  EXPECT_NE(list.find("\"next\":null"), std::string::npos) << list;
  EXPECT_EQ(client.say("cancel-jobs default group=acme\r\n"), "CHANGED 2 0 end\r\n");
  EXPECT_EQ(client.say("stats-group default acme\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(field("stats-tube default", "current-groups"), "1");
}

TEST_F(SessionGroups, WhatIsWrongIsRefusedByName) {
  EXPECT_EQ(client.say("set-tube default weight=2\r\n"), "BAD_OPTION weight: needs a group\r\n");
  EXPECT_EQ(client.say("set-tube default group=a weight=0\r\n"),
            "BAD_OPTION weight: \"0\": not a number from 1 to 1000000\r\n");
  EXPECT_EQ(client.say("set-tube default group=a lost=fails\r\n"),
            "BAD_OPTION lost: does not go with group\r\n");
  EXPECT_EQ(client.say("put-job 1 group=" + std::string(201, 'g') + "\r\na\r\n").substr(0, 18),
            "BAD_OPTION group: ");
  EXPECT_EQ(client.say("stats-group default\r\n"), "BAD_FORMAT\r\n");
  EXPECT_EQ(client.say("stats-group none a\r\n"), "NOT_FOUND\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
