// fail-job, touch-job and name-client: attempts that fail, and the dead; and puts into a tube with
// settings.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/beanstalk/session.h"
#include "session_fixture.h"

namespace carillon::server::beanstalk {
namespace {

class SessionAttempts : public SessionTest {
 protected:
  std::string stat(std::string_view name) { return field("stats-job 1", name); }
  void set(const queue::TubeSettings& settings) {
    server.engine.set_tube(server.now, "default", settings);
  }
};

TEST_F(SessionAttempts, AFailedAttemptComesAgainAfterItsBackOffAndTheLastOneIsDead) {
  EXPECT_EQ(client.say("put-job 1 max-attempts=2 backoff=1s..1h\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("name-client mill-3\r\n"), "NAMED\r\n");
  EXPECT_EQ(client.say("reserve\r\n"), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(client.say("fail-job 1 9\r\ndisk full\r\n"), "AGAIN 1 1000\r\n");
  EXPECT_EQ(client.say("reserve-job 1\r\n"), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(client.say("fail-job 1 4 pri=7\r\na\"b\n\r\n"), "DEAD 2\r\n");
  EXPECT_EQ(stat("state"), "buried");
  EXPECT_EQ(stat("pri"), "7");
  EXPECT_EQ(stat("attempts"), "2");
  EXPECT_EQ(stat("max-attempts"), "2");
  EXPECT_EQ(stat("dead"), "attempts");
  EXPECT_EQ(client.say("kick 1\r\n"), "KICKED 1\r\n");
  EXPECT_EQ(stat("attempts"), "0");
  EXPECT_EQ(stat("dead"), "no");
}

TEST_F(SessionAttempts, ABackOffThatEndsAfterTheLastDueTimeIsRefusedByName) {
  const std::string_view why =
      "BAD_OPTION backoff: \"3000000d\": the longest is 253402300799999ms\r\n";
  EXPECT_EQ(client.say("put-job 1 backoff=3000000d\r\na\r\n"), why);
  EXPECT_EQ(client.say("put-job 1 backoff=1s..3000000d\r\na\r\n"), why);
}

TEST_F(SessionAttempts, AJobWithoutAPolicyHasNoNewFields) {
  client.say("put 0 0 60 1\r\na\r\n");
  EXPECT_EQ(client.say("stats-job 1\r\n").find("attempts"), std::string::npos);
}

TEST_F(SessionAttempts, ThePolicyOfItsTubeIsAmongTheStatsOfAJob) {
  client.say("put 0 0 60 1\r\na\r\n");
  set({.retry = {.max_attempts = 4}});
  EXPECT_EQ(stat("max-attempts"), "4");
  client.say("reserve\r\n");
  EXPECT_EQ(client.say("fail-job 1 0 delay=3s max-attempts=2\r\n\r\n"), "AGAIN 1 3000\r\n");
}

TEST_F(SessionAttempts, ATubeThatIsDrainedRefusesPuts) {
  set({.refuses_puts = true});
  EXPECT_EQ(client.say("put 0 0 60 1\r\na\r\n"), "DRAINING\r\n");
  EXPECT_EQ(client.say("put-job 1\r\na\r\n"), "DRAINING\r\n");
  EXPECT_NE(client.say("stats-tube default\r\n").find("\nputs: refused\n"), std::string::npos);
  set({});
  EXPECT_EQ(client.say("put 0 0 60 1\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("stats-tube default\r\n").find("\nputs: "), std::string::npos);
}

TEST_F(SessionAttempts, ARateOfPutsRefusesMoreOfThem) {
  set({.put_rate = {.rate = 1, .period = 60'000, .burst = 2}});
  EXPECT_EQ(client.say("put-job 1 key=k\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("put-jobs 12\r\n1\r\nb\r\n1\r\nc\r\n\r\n"), "TOO_FAST 60000\r\n");
  EXPECT_EQ(client.say("put-jobs 18\r\n1\r\nb\r\n1\r\nc\r\n1\r\nd\r\n\r\n"),
            "REFUSED 3 TOO_MANY\r\n");
  EXPECT_EQ(client.say("put 0 0 60 1\r\nb\r\n"), "INSERTED 2\r\n");
  EXPECT_EQ(client.say("put 0 0 60 1\r\nc\r\n"), "OUT_OF_MEMORY\r\n") << "known to all clients";
  EXPECT_EQ(client.say("put-job 1\r\nc\r\n"), "TOO_FAST 60000\r\n");
  EXPECT_EQ(client.say("put-ms 0 0 60000 1\r\nc\r\n"), "TOO_FAST 60000\r\n");
  EXPECT_EQ(client.say("put-job 1 key=k\r\nc\r\n"), "EXISTS 1 ready\r\n");
  server.pass(60'000);
  EXPECT_EQ(client.say("put-job 1\r\nc\r\n"), "INSERTED 3\r\n");
  EXPECT_NE(client.say("stats-tube default\r\n")
                .find("\nput-rate: 1\nput-rate-period-ms: 60000\nput-burst: 2\n"
                      "total-puts-too-fast: 4\n"),
            std::string::npos);
  set({});
  EXPECT_EQ(client.say("put-job 1\r\nd\r\n"), "INSERTED 4\r\n");
}

// YAML is UTF-8, and has no control characters but as escapes (YAML 1.2.2, 5.1).
TEST_F(SessionAttempts, StatsAreYamlWhateverAKeyHas) {
  client.say("put-job 1 key=\xC2\x9B\xEF\xBB\xBF group=\xFE\r\na\r\n");
  EXPECT_EQ(stat("group_base64"), "\"/g==\"");
  EXPECT_EQ(stat("key"), "\"\\x9b\\ufeff\"");
  client.say("put-job 1 key=a\"\\\xC2\x85\xE2\x80\xA8.\r\na\r\n");
  EXPECT_EQ(field("stats-job 2", "key"), "\"a\\\"\\\\\\x85\\u2028.\"");
}

// It would be 0 for ever.
TEST_F(SessionAttempts, ABackoffThatDoublesDoesNotBeginWithNothing) {
  EXPECT_EQ(
      client.say("put-job 1 backoff=0ms..1s\r\nx\r\n"),
      "BAD_OPTION backoff: \"0ms..1s\": twice 0 is 0, so the first is at least 1ms; 0 alone is "
      "no back-off\r\n");
  EXPECT_EQ(client.say("put-job 1 backoff=1ms..1s\r\nx\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("put-job 1 backoff=0ms..0ms\r\nx\r\n"), "INSERTED 2\r\n");
}

TEST_F(SessionAttempts, WhatIsWrongIsNamed) {
  EXPECT_EQ(client.say("put-job 1 jitter=5\r\nx\r\n"),
            "BAD_OPTION jitter: \"5\": not 0% to 100%\r\n");
  EXPECT_EQ(client.say("put-job 1 backoff=1h..1s\r\nx\r\n"),
            "BAD_OPTION backoff: \"1h..1s\": the longest is shorter than the first\r\n");
  EXPECT_EQ(client.say("fail-job 1 4 ttr=5s\r\nquit\r\n").substr(0, 17), "BAD_OPTION \"ttr\":");
  EXPECT_EQ(client.say("fail-job 1 4\r\nquit\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("fail-job 1 70000\r\n" + std::string(70'000, 'x') + "\r\n"),
            "JOB_TOO_BIG\r\n");
  EXPECT_EQ(client.say("name-client two words\r\n"), "BAD_FORMAT\r\n");
  client.say("put 0 0 60 1\r\na\r\nreserve\r\n");
  EXPECT_EQ(client.say("fail-job 1 0 delay=9000y\r\n\r\n").substr(0, 10), "BAD_OPTION");
}

TEST_F(SessionAttempts, ACancelOfAReservedJobIsAskedForAndItsWorkerIsTold) {
  client.say("put-job 1 key=a\r\na\r\nreserve\r\n");
  EXPECT_EQ(client.say("touch-job 1\r\n"), "TOUCHED\r\n");
  EXPECT_EQ(client.say("cancel-job key=a\r\n"), "IS_RESERVED 1\r\n");
  EXPECT_EQ(client.say("cancel-job key=a reserved=ask\r\n"), "CANCEL_ASKED 1\r\n");
  EXPECT_EQ(client.say("touch 1\r\n"), "TOUCHED\r\n") << "as in beanstalkd";
  EXPECT_EQ(client.say("touch-job 1\r\n"), "CANCEL_ASKED\r\n");
  EXPECT_EQ(stat("cancel-asked"), "true");
  EXPECT_EQ(client.say("release 1 0 0\r\n"), "RELEASED\r\n");
  EXPECT_EQ(client.say("peek 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("touch-job 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("put-job 1 key=a\r\nb\r\n").substr(0, 9), "INSERTED ");
  EXPECT_EQ(client.say("cancel-job key=a reserved=maybe\r\n"),
            "BAD_OPTION reserved: \"maybe\": refuse or ask\r\n");
}

TEST_F(SessionAttempts, ATubeHasLimits) {
  set({.limits = {.max_running = 1, .rate = 100, .period = 60'000, .burst = 5},
       .retention = 604'800'000});
  EXPECT_EQ(field("stats-tube default", "retention-ms"), "604800000");
  EXPECT_EQ(field("stats-tube default", "max-running"), "1");
  EXPECT_EQ(field("stats-tube default", "rate"), "100");
  EXPECT_EQ(field("stats-tube default", "rate-period-ms"), "60000");
  EXPECT_EQ(field("stats-tube default", "burst"), "5");
  client.say("put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
  set({});
  EXPECT_EQ(field("stats-tube default", "burst"), "none");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "RESERVED 2 1\r\nb\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
