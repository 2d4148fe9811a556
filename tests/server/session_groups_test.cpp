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

TEST_F(SessionGroups, TheStatisticsOfAGroupNameIt) {
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

TEST_F(SessionGroups, AreListedWithTheirSettings) {
  EXPECT_EQ(client.say("list-groups default\r\n"), "OK 14\r\n{\"next\":null}\n\r\n");
  client.say("set-tube default group=a\u00e9\" weight=3 max-running=2 rate=100/1m burst=5\r\n");
  client.say("put-job 1 group=b\r\na\r\nput-job 1 group=b delay=1h\r\nb\r\n");
  client.say("put-job 1 group=\xff\r\na\r\n");
  const std::string first =
      "{\"tube\":\"default\",\"group\":\"a\u00e9\\\"\",\"ready\":0,\"reserved\":0,\"delayed\":0,"
      "\"buried\":0,\"weight\":3,\"max_running\":2,\"rate\":\"100/60000ms\",\"burst\":5}\n";
  const std::string second =
      "{\"tube\":\"default\",\"group\":\"b\",\"ready\":1,\"reserved\":0,\"delayed\":1,"
      "\"buried\":0,\"weight\":1}\n";
  const std::string third =
      "{\"tube\":\"default\",\"group_base64\":\"/w==\",\"ready\":1,\"reserved\":0,\"delayed\":0,"
      "\"buried\":0,\"weight\":1}\n";
  const auto reply = [](const std::string& data) {
    return "OK " + std::to_string(data.size()) + "\r\n" + data + "\r\n";
  };
  EXPECT_EQ(client.say("list-groups default\r\n"),
            reply(first + second + third + "{\"next\":null}\n"));
  EXPECT_EQ(client.say("list-groups default limit=2\r\n"),
            reply(first + second + "{\"next\":\"4\"}\n"));
  EXPECT_EQ(client.say("list-groups default limit=2 after=4\r\n"),
            reply(third + "{\"next\":null}\n"));
}

// The page ends by its bytes, and the list goes on.
TEST_F(SessionGroups, ALongListComesInPages) {
  constexpr int kGroups = 1'500;
  for (int n = 1; n <= kGroups; ++n)
    client.say("put-job 1 group=" + std::string(190, 'g') + std::to_string(n) + "\r\na\r\n");
  int groups = 0;
  int pages = 0;
  for (std::string after; after != "null"; ++pages) {
    const std::string page = client.say("list-groups default limit=1000" + after + "\r\n");
    EXPECT_LT(page.size(), 160u << 10);
    for (std::size_t at = page.find("\"weight\""); at != std::string::npos;
         at = page.find("\"weight\"", at + 1))
      ++groups;
    const std::string next = page.substr(page.rfind("\"next\":") + 7);
    after = next.starts_with("null") ? "null" : " after=" + next.substr(1, next.find('"', 1) - 1);
  }
  EXPECT_EQ(groups, kGroups);
  EXPECT_GE(pages, 3);
}

TEST_F(SessionGroups, WrongListsAreRefusedByName) {
  EXPECT_EQ(client.say("list-groups none\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("list-groups none after=7\r\n"), "OK 14\r\n{\"next\":null}\n\r\n");
  EXPECT_EQ(client.say("list-groups default limit=1001\r\n"),
            "BAD_OPTION limit: \"1001\": not a number from 1 to 1000\r\n");
  EXPECT_EQ(client.say("list-groups default after=x\r\n"),
            "BAD_OPTION after: \"x\": not what a page calls next\r\n");
  EXPECT_EQ(client.say("list-groups default state=ready\r\n"),
            "BAD_OPTION \"state\": no such option; there are limit after\r\n");
  EXPECT_EQ(client.say("list-groups -\r\n"), "BAD_FORMAT\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
