// fail-job, touch-job, story-job, set-tube and name-client: attempts that fail, and the dead.

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
  EXPECT_EQ(client.say("story-job 1\r\n"),
            "OK 183\r\n---\n"
            "- time: 2023-11-14T22:13:20.000Z\n  ending: failed\n  worker: \"mill-3\"\n"
            "  error: \"disk full\"\n"
            "- time: 2023-11-14T22:13:20.000Z\n  ending: failed\n  worker: \"mill-3\"\n"
            "  error: \"a\\\"b\\x0a\"\n\r\n");
  EXPECT_EQ(client.say("kick 1\r\n"), "KICKED 1\r\n");
  EXPECT_EQ(stat("attempts"), "0");
  EXPECT_EQ(stat("dead"), "no");
}

TEST_F(SessionAttempts, ABackOffThatEndsAfterTheLastDueTimeIsRefusedByName) {
  const std::string_view why =
      "BAD_OPTION backoff: \"3000000d\": the longest is 253402300799999ms\r\n";
  EXPECT_EQ(client.say("put-job 1 backoff=3000000d\r\na\r\n"), why);
  EXPECT_EQ(client.say("set-tube mail backoff=3000000d\r\n"), why);
  EXPECT_EQ(client.say("set-tube mail backoff=1s..3000000d\r\n").substr(0, 31),
            "BAD_OPTION backoff: \"3000000d\":");
}

TEST_F(SessionAttempts, AJobWithoutAPolicyHasNoNewFields) {
  client.say("put 0 0 60 1\r\na\r\n");
  EXPECT_EQ(client.say("stats-job 1\r\n").find("attempts"), std::string::npos);
  EXPECT_EQ(client.say("story-job 1\r\n"), "OK 4\r\n---\n\r\n");
}

TEST_F(SessionAttempts, ThePolicyOfItsTubeIsAmongTheStatsOfAJob) {
  client.say("put 0 0 60 1\r\na\r\n");
  client.say("set-tube default max-attempts=4\r\n");
  EXPECT_EQ(stat("max-attempts"), "4");
  client.say("reserve\r\n");
  EXPECT_EQ(client.say("fail-job 1 0 delay=3s max-attempts=2\r\n\r\n"), "AGAIN 1 3000\r\n");
}

// What a job names is a policy of its own, also if all of it is 0.
TEST_F(SessionAttempts, AJobMayHaveNoBoundThoughItsTubeHasOne) {
  client.say("set-tube default max-attempts=1 lost=fails\r\n");
  client.say("put-job 1 max-attempts=0\r\na\r\nput-job 1 lost=returns\r\nb\r\n");
  EXPECT_EQ(stat("max-attempts"), "0");
  EXPECT_EQ(client.say("list-jobs default limit=1\r\n").find("\"max_attempts\":1"),
            std::string::npos);
  client.say("reserve\r\nreserve\r\n");
  EXPECT_EQ(client.say("fail-job 1 0\r\n\r\nfail-job 2 0\r\n\r\n"), "AGAIN 1 0\r\nAGAIN 1 0\r\n");
  client.say("set-schedule s 1 every=1h max-attempts=0\r\nc\r\ntrigger-schedule s\r\n");
  EXPECT_TRUE(server.engine.job_stats(server.now, 3)->record.extras->retry.counts_empty);
}

TEST_F(SessionAttempts, ATubeThatIsDrainedRefusesPuts) {
  EXPECT_EQ(client.say("set-tube default puts=refused\r\n"), "SET\r\n");
  EXPECT_EQ(client.say("put 0 0 60 1\r\na\r\n"), "DRAINING\r\n");
  EXPECT_EQ(client.say("put-job 1\r\na\r\n"), "DRAINING\r\n");
  EXPECT_NE(client.say("stats-tube default\r\n").find("\nputs: refused\n"), std::string::npos);
  EXPECT_EQ(client.say("set-tube default puts=taken\r\n"), "SET\r\n");
  EXPECT_EQ(client.say("put 0 0 60 1\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("stats-tube default\r\n").find("\nputs: "), std::string::npos);
  EXPECT_EQ(client.say("set-tube default puts=no\r\n"),
            "BAD_OPTION puts: \"no\": refused or taken\r\n");
}

TEST_F(SessionAttempts, ARateOfPutsRefusesMoreOfThem) {
  EXPECT_EQ(client.say("set-tube default put-rate=1/1m put-burst=2\r\n"), "SET\r\n");
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
  EXPECT_EQ(client.say("set-tube default put-rate=0\r\n"), "SET\r\n");
  EXPECT_EQ(client.say("put-job 1\r\nd\r\n"), "INSERTED 4\r\n");
  EXPECT_EQ(client.say("set-tube default put-burst=2\r\n"),
            "BAD_OPTION put-burst: needs a put-rate\r\n");
  EXPECT_EQ(client.say("set-tube default group=g put-rate=1/1s\r\n"),
            "BAD_OPTION put-rate: does not go with group\r\n");
}

TEST_F(SessionAttempts, ARetentionDeletesTheDeadAndLeavesTheBuried) {
  EXPECT_EQ(client.say("set-tube default max-attempts=1 retention=7d\r\n"), "SET\r\n");
  client.say("put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\nreserve-job 1\r\nreserve-job 2\r\n");
  EXPECT_EQ(client.say("bury 1 0\r\n"), "BURIED\r\n");
  EXPECT_EQ(client.say("fail-job 2 0\r\n\r\n"), "DEAD 1\r\n");
  server.pass(604'799'999);
  EXPECT_EQ(client.say("peek 2\r\n"), "FOUND 2 1\r\nb\r\n");
  server.pass(1);
  EXPECT_EQ(client.say("peek 2\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("peek 1\r\n"), "FOUND 1 1\r\na\r\n");
  EXPECT_NE(client.say("stats-tube default\r\n")
                .find("\nretention-ms: 604800000\ntotal-dead-deleted: 1\n"),
            std::string::npos);
  EXPECT_EQ(client.say("set-tube default retention=0\r\n"), "SET\r\n");
  EXPECT_EQ(client.say("set-tube default retention=37000d\r\n"),
            "BAD_OPTION retention: \"37000d\": the longest is 36500d\r\n");
}

TEST_F(SessionAttempts, TheSettingsOfATubeAreChangedOneByOne) {
  EXPECT_EQ(client.say("set-tube mail max-attempts=5 jitter=10%\r\n"), "SET\r\n");
  EXPECT_EQ(client.say("set-tube mail backoff=30s lost=fails\r\n"), "SET\r\n");
  const std::string yaml = client.say("stats-tube mail\r\n");
  EXPECT_NE(yaml.find("\nmax-attempts: 5\nbackoff-ms: 30000\njitter-percent: 10\nlost: fails\n"),
            std::string::npos)
      << yaml;
  client.say("set-tube mail max-attempts=0 jitter=0% backoff=0s lost=returns\r\n");
  EXPECT_EQ(client.say("stats-tube mail\r\n"), "NOT_FOUND\r\n") << "nothing is set any more";
}

// YAML is UTF-8, and has no control characters but as escapes (YAML 1.2.2, 5.1).
TEST_F(SessionAttempts, AStoryIsYamlWhateverTheErrorIs) {
  client.say("name-client \xC3\xBC\xFF\r\nput-job 1 key=\xC2\x9B\xEF\xBB\xBF group=\xFE\r\na\r\n");
  client.say("reserve\r\nfail-job 1 3\r\n\xFF\n\x80\r\n");
  client.say("reserve\r\nfail-job 1 9\r\n\"\\\x01\xC2\x85\xE2\x80\xA8\xC3\r\n");
  client.say("reserve\r\nfail-job 1 9\r\n\"\\\x01\xC2\x85\xE2\x80\xA8.\r\n");
  const std::string story = client.say("story-job 1\r\n");
  EXPECT_NE(story.find("\n  worker_base64: \"w7z/\"\n  error_base64: \"/wqA\"\n"),
            std::string::npos)
      << story;
  EXPECT_NE(story.find("\n  error_base64: \"IlwBwoXigKjD\"\n"), std::string::npos) << story;
  EXPECT_NE(story.find("\n  error: \"\\\"\\\\\\x01\\x85\\u2028.\"\n"), std::string::npos) << story;
  client.say("reserve\r\n");
  const std::string shown = client.say("show-job 1\r\n");
  EXPECT_NE(shown.find("\ngroup_base64: \"/g==\"\nkey: \"\\x9b\\ufeff\"\n"), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("\nworker_base64: \"w7z/\"\n"), std::string::npos) << shown;
  EXPECT_NE(client.say("stats-group default \xFE\r\n").find("\ngroup_base64: \"/g==\"\n"),
            std::string::npos);
}

// It would be 0 for ever.
TEST_F(SessionAttempts, ABackoffThatDoublesDoesNotBeginWithNothing) {
  EXPECT_EQ(
      client.say("set-tube mail backoff=0ms..1s\r\n"),
      "BAD_OPTION backoff: \"0ms..1s\": twice 0 is 0, so the first is at least 1ms; 0 alone is "
      "no back-off\r\n");
  EXPECT_EQ(client.say("put-job 1 backoff=0s..1h\r\nx\r\n").substr(0, 30),
            "BAD_OPTION backoff: \"0s..1h\": ");
  EXPECT_EQ(client.say("set-tube mail backoff=1ms..1s\r\n"), "SET\r\n");
  EXPECT_EQ(client.say("set-tube mail backoff=0ms..0ms\r\n"), "SET\r\n");
}

TEST_F(SessionAttempts, WhatIsWrongIsNamed) {
  EXPECT_EQ(client.say("set-tube mail jitter=5\r\n"),
            "BAD_OPTION jitter: \"5\": not 0% to 100%\r\n");
  EXPECT_EQ(client.say("set-tube mail backoff=1h..1s\r\n"),
            "BAD_OPTION backoff: \"1h..1s\": the longest is shorter than the first\r\n");
  EXPECT_EQ(client.say("set-tube mail pri=5\r\n"),
            "BAD_OPTION \"pri\": no such option; there are group weight max-attempts backoff "
            "jitter lost puts max-running rate burst put-rate put-burst retention\r\n");
  EXPECT_EQ(client.say("set-tube -mail jitter=5%\r\n"), "BAD_FORMAT\r\n");
  EXPECT_EQ(client.say("fail-job 1 4 ttr=5s\r\nquit\r\n").substr(0, 17), "BAD_OPTION \"ttr\":");
  EXPECT_EQ(client.say("fail-job 1 4\r\nquit\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("fail-job 1 70000\r\n" + std::string(70'000, 'x') + "\r\n"),
            "JOB_TOO_BIG\r\n");
  EXPECT_EQ(client.say("name-client two words\r\n"), "BAD_FORMAT\r\n");
  EXPECT_EQ(client.say("story-job 1\r\n"), "NOT_FOUND\r\n");
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
  EXPECT_EQ(client.say("set-tube mail max-running=1 rate=100/1m\r\n"), "SET\r\n");
  EXPECT_EQ(client.say("set-tube mail burst=5\r\n"), "SET\r\n");
  EXPECT_EQ(field("stats-tube mail", "max-running"), "1");
  EXPECT_EQ(field("stats-tube mail", "rate"), "100");
  EXPECT_EQ(field("stats-tube mail", "rate-period-ms"), "60000");
  EXPECT_EQ(field("stats-tube mail", "burst"), "5");
  client.say("use mail\r\nput 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\nwatch mail\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
  EXPECT_EQ(client.say("set-tube mail max-running=0 rate=0\r\n"), "SET\r\n");
  EXPECT_EQ(field("stats-tube mail", "burst"), "none");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "RESERVED 2 1\r\nb\r\n");
  EXPECT_EQ(client.say("set-tube mail burst=5\r\n"), "BAD_OPTION burst: needs a rate\r\n");
  EXPECT_EQ(client.say("set-tube mail rate=5\r\n"),
            "BAD_OPTION rate: \"5\": 0, or 1 to 1000000 in a duration, as 100/1m\r\n");
  EXPECT_EQ(client.say("set-tube mail rate=1/31d\r\n"),
            "BAD_OPTION rate: \"1/31d\": the duration is 1ms to 30d\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
