// cancel-jobs, retry-jobs, move-jobs and due-counts.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

// The server's clock starts at 2023-11-14T22:13:20Z.
class SessionBulk : public testing::Test {
 protected:
  void put(int jobs, const std::string& options = "delay=1h") {
    for (int i = 0; i < jobs; ++i) client.say("put-job 1 " + options + "\r\na\r\n");
  }
  std::string jobs(std::string_view state, const std::string& tube = "default") {
    const std::string stats = client.say("stats-tube " + tube + "\r\n");
    const std::string field = "current-jobs-" + std::string(state) + ": ";
    const std::size_t at = stats.find(field);
    if (at == std::string::npos) return "none";
    return stats.substr(at + field.size(), stats.find('\n', at) - at - field.size());
  }

  TestServer server;
  Client client{server};
};

TEST_F(SessionBulk, Cancel) {
  put(100);
  put(1, "key=ready");
  client.say("reserve\r\n");
  EXPECT_EQ(client.say("cancel-jobs default dry-run=yes\r\n"), "WOULD_CHANGE 100 1 end\r\n");
  EXPECT_EQ(client.say("cancel-jobs default state=delayed limit=70\r\n"),
            "CHANGED 70 0 d1700003600000-71\r\n");
  EXPECT_EQ(client.say("cancel-jobs default state=delayed after=d1700003600000-71\r\n"),
            "CHANGED 30 0 end\r\n");
  EXPECT_EQ(jobs("delayed"), "0");
  EXPECT_EQ(jobs("reserved"), "1");
  EXPECT_EQ(client.say("cancel-jobs none\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("cancel-jobs none after=d1-1\r\n"), "CHANGED 0 0 end\r\n");
}

TEST_F(SessionBulk, AnAnswerWaitsForTheChangesOfOthers) {
  put(1);
  Client other(server);
  other.say("delete 1\r\n");
  client.durable = 0;
  EXPECT_EQ(client.say("cancel-jobs default\r\n"), "") << "a crash may bring the job back";
  client.durable = UINT64_MAX;
  EXPECT_EQ(client.read(), "CHANGED 0 0 end\r\n");
}

TEST_F(SessionBulk, Retry) {
  put(2, "max-attempts=1");
  client.say("reserve\r\nfail-job 1 2\r\nno\r\nreserve\r\nbury 2 0\r\n");
  EXPECT_EQ(jobs("buried"), "2");
  EXPECT_EQ(client.say("retry-jobs default state=dead\r\n"), "CHANGED 1 0 end\r\n");
  EXPECT_EQ(client.say("retry-jobs default\r\n"), "CHANGED 1 0 end\r\n");
  EXPECT_EQ(jobs("ready"), "2");
  EXPECT_EQ(client.say("retry-jobs default state=ready\r\n"),
            "BAD_OPTION state: only delayed, buried and dead jobs can be retried\r\n");
}

TEST_F(SessionBulk, Move) {
  put(3);
  EXPECT_EQ(client.say("move-jobs default to=mail\r\n"), "CHANGED 3 0 end\r\n");
  EXPECT_EQ(jobs("delayed", "mail"), "3");
  EXPECT_EQ(jobs("delayed"), "0");
  EXPECT_EQ(client.say("move-jobs mail\r\n"), "BAD_OPTION to: write the tube\r\n");
  EXPECT_EQ(client.say("move-jobs mail to=mail\r\n"),
            "BAD_OPTION to: the jobs are in this tube\r\n");
  EXPECT_EQ(client.say("move-jobs mail to=-\r\n"),
            "BAD_OPTION to: \"-\": not the name of a tube\r\n");
}

TEST_F(SessionBulk, Spread) {
  put(3);  // in an hour
  const std::string window = "due-after=1700003600000 due-before=1700003660000";
  const std::string spread = "spread-jobs default " + window + " over=1h";
  EXPECT_EQ(client.say(spread + " dry-run=yes\r\n"), "WOULD_CHANGE 3 0 end\r\n");
  EXPECT_EQ(client.say(spread + "\r\n"), "CHANGED 3 0 end\r\n");
  EXPECT_EQ(client.say(spread + "\r\n"), "CHANGED 0 0 end\r\n");
  EXPECT_EQ(jobs("delayed"), "3");
  EXPECT_EQ(client.say("spread-jobs none " + window + " over=1h\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("spread-jobs default " + window + "\r\n"),
            "BAD_OPTION say over how long the jobs are spread\r\n");
  EXPECT_EQ(client.say("spread-jobs default over=1h\r\n"),
            "BAD_OPTION say which jobs are spread: those due from one moment on, and before a "
            "later one\r\n");
  EXPECT_EQ(client.say("spread-jobs default " + window + " over=1m\r\n"),
            "BAD_OPTION a time of 60000 ms is not longer than the one in which the jobs are due, "
            "of 60000 ms\r\n");
  EXPECT_EQ(client.say("spread-jobs default " + window + " over=31d\r\n"),
            "BAD_OPTION a time of 2678400000 ms is too long: the most are 30 days\r\n");
}

TEST_F(SessionBulk, WrongOptions) {
  put(1);
  EXPECT_EQ(client.say("cancel-jobs default bodies=yes\r\n"),
            "BAD_OPTION \"bodies\": no such option; there are state group key-prefix due-after "
            "due-before limit after dry-run\r\n");
  EXPECT_EQ(client.say("cancel-jobs default limit=1000001\r\n"),
            "BAD_OPTION limit: \"1000001\": not a number from 1 to 1000000\r\n");
  EXPECT_EQ(client.say("cancel-jobs default =1\r\n"),
            "BAD_OPTION \"\": no such option; there are state group key-prefix due-after "
            "due-before "
            "limit after dry-run\r\n");
  EXPECT_EQ(client.say("due-counts default by=week\r\n"),
            "BAD_OPTION by: \"week\": minute, hour or day\r\n");
  EXPECT_EQ(client.say("due-counts default spans=0\r\n"),
            "BAD_OPTION spans: \"0\": not a number from 1 to 1000\r\n");
}

TEST_F(SessionBulk, OthersAreServedBetweenTheSteps) {
  put(320);
  Session& session = client.session();
  const std::string command = "cancel-jobs default\r\n";
  server.reading_takes_ns = 1'000;
  int turns = 1;
  EXPECT_EQ(session.receive(command, server.now.mono_ns + 1), command.size());
  for (; session.wants() == Session::Wants::kTurn; ++turns)
    session.receive("", server.now.mono_ns + 1);
  EXPECT_GE(turns, 10);
  EXPECT_EQ(client.read(), "CHANGED 320 0 end\r\n");
}

TEST_F(SessionBulk, AStoreThatFailsHalfWay) {
  put(100);
  Session& session = client.session();
  server.reading_takes_ns = 1'000;
  session.receive("cancel-jobs default\r\n", server.now.mono_ns + 1);
  session.receive("", server.now.mono_ns + 1);
  server.store.appends_fail = true;
  const std::string answer = client.say("");
  EXPECT_TRUE(answer == "CHANGED 32 0 d1700003600000-33\r\n" ||
              answer == "CHANGED 64 0 d1700003600000-65\r\n")
      << answer;
  EXPECT_EQ(client.say("cancel-jobs default\r\n"), "INTERNAL_ERROR\r\n");
  server.store.appends_fail = false;
  EXPECT_NE(client.say("cancel-jobs default\r\n"), "CHANGED 100 0 end\r\n");
  EXPECT_EQ(jobs("delayed"), "0");
}

TEST_F(SessionBulk, WaitsForRoom) {
  put(1);
  server.store.is_full = true;
  EXPECT_EQ(client.say("cancel-jobs default dry-run=yes\r\n"), "WOULD_CHANGE 1 0 end\r\n");
  EXPECT_EQ(client.say("cancel-jobs default\r\n"), "");
  EXPECT_EQ(client.session().wants(), Session::Wants::kStore);
  server.store.is_full = false;
  EXPECT_EQ(client.say(""), "CHANGED 1 0 end\r\n");
}

TEST_F(SessionBulk, DueCounts) {
  put(2, "delay=10s");
  put(3, "delay=2m");
  put(1, "delay=3d");
  put(1, "pri=1");
  EXPECT_EQ(client.say("due-counts default spans=3\r\n"),
            "OK 298\r\n"
            "{\"from\":\"2023-11-14T22:13:20.000Z\",\"before\":\"2023-11-14T22:14:00.000Z\","
            "\"jobs\":2,\"estimated\":false}\n"
            "{\"from\":\"2023-11-14T22:15:00.000Z\",\"before\":\"2023-11-14T22:16:00.000Z\","
            "\"jobs\":3,\"estimated\":false}\n"
            "{\"now\":\"2023-11-14T22:13:20.000Z\",\"due\":1,\"delayed\":6,\"buried\":0,"
            "\"later\":1,\"later_estimated\":false}\n\r\n");
  EXPECT_EQ(client.say("due-counts none\r\n"), "NOT_FOUND\r\n");
}

TEST_F(SessionBulk, TheAuditShowsWhatOperatorsDid) {
  put(5);
  client.say(
      "name-client host-7\r\ncancel-jobs default limit=1\r\ncancel-jobs default limit=1 "
      "dry-run=yes\r\nmove-jobs default to=mail limit=1\r\nkick 2\r\nkick 0\r\n");
  client.say("pause-tube mail 10\r\npause-tube mail 0\r\npause-tube none 0\r\n");
  client.say("set-tube mail max-running=3\r\nset-tube mail group=a weight=2\r\n");
  client.say("set-schedule s 1 every=1h\r\nx\r\npause-schedule s\r\nresume-schedule s\r\n");
  client.say("trigger-schedule s\r\ndelete-schedule s\r\ndelete-schedule s\r\n");
  std::string told;
  for (const Action& action : server.service.feed().actions()) {
    EXPECT_EQ(action.who, "host-7");
    EXPECT_EQ(action.at, 1'700'000'000'000U);
    told += action.action + " " + action.target + " " + action.outcome + "\n";
  }
  EXPECT_EQ(told,
            "jobs:cancel default changed 1, left 0\njobs:move default changed 1, left 0\n"
            "tube:kick default kicked 2\ntube:pause mail done\ntube:resume mail done\n"
            "tube:patch mail done\ngroup:patch mail, a done\nschedule:put s done\n"
            "schedule:pause s done\nschedule:resume s done\nschedule:trigger s done\n"
            "schedule:delete s done\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
