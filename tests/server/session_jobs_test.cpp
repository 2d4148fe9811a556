// put-job, patch-job, cancel-job and peek-job: jobs that are named by their keys.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/beanstalk/session.h"
#include "session_fixture.h"

namespace carillon::server::beanstalk {
namespace {

class SessionJobs : public SessionTest {
 protected:
  std::string stat(queue::JobId id, std::string_view name) {
    return field("stats-job " + std::to_string(id), name);
  }
};

TEST_F(SessionJobs, AJobIsPutWithNamedOptions) {
  EXPECT_EQ(client.say("put-job 5\r\nhello\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(stat(1, "pri"), "65536");
  EXPECT_EQ(stat(1, "ttr"), "60");
  EXPECT_EQ(client.say("put-job 5 ttr=2m pri=7  delay=1h30m \r\nlater\r\n"), "INSERTED 2\r\n");
  EXPECT_EQ(stat(2, "pri"), "7");
  EXPECT_EQ(stat(2, "ttr"), "120");
  EXPECT_EQ(stat(2, "delay"), "5400");
  EXPECT_EQ(client.say("put-job 1 due=1700000060000\r\nx\r\n"), "INSERTED 3\r\n");
  EXPECT_EQ(stat(3, "delay"), "60");
  EXPECT_EQ(client.say("put-job 1 due=2023-11-14T22:14:20Z\r\nx\r\n"), "INSERTED 4\r\n");
  EXPECT_EQ(stat(4, "delay"), "60");
}

TEST_F(SessionJobs, AJobExpires) {
  EXPECT_EQ(client.say("put-job 1 expires-in=1s at-expiry=dead\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(stat(1, "at-expiry"), "dead");
  EXPECT_EQ(client.say("patch-job 1 expires-at=never\r\n"), "PATCHED 1\r\n");
  EXPECT_EQ(client.say("patch-job 1 delay=1h\r\n"), "PATCHED 1\r\n");
  EXPECT_EQ(client.say("patch-job 1 expires-at=1999-01-01T00:00:00Z\r\n"), "PATCHED 1\r\n");
  EXPECT_EQ(stat(1, "expires-at"), "1999-01-01T00:00:00.000Z");
  EXPECT_EQ(client.say("reserve-job 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("patch-job 1 delay=0s\r\n"), "PATCHED 1\r\n");
  EXPECT_EQ(stat(1, "dead"), "expired");
  EXPECT_EQ(client.say("put-job 1 at-expiry=dead\r\na\r\n"),
            "BAD_OPTION at-expiry: needs `expires-in` or `expires-at`\r\n");
  EXPECT_EQ(client.say("put-job 1 spread=9999999d\r\na\r\n"), "OUT_OF_RANGE\r\n");
}

// No worker would ever get it. It is 2023-11-14T22:13:20Z.
TEST_F(SessionJobs, AJobDoesNotExpireBeforeItIsDue) {
  EXPECT_EQ(client.say("put-job 1 delay=1h expires-in=3600001ms\r\na\r\n"), "INSERTED 1\r\n");
  const std::string why =
      "BAD_OPTION the job would expire in 1800000 ms, and be due in 3600000 ms: no worker would "
      "get it\r\n";
  for (const std::string due : {" delay=1h", " due=2023-11-14T23:13:20Z", " delay=1ms spread=1h"}) {
    for (const std::string end : {" expires-in=30m", " expires-at=2023-11-14T22:43:20Z"}) {
      SCOPED_TRACE(due + end);
      EXPECT_EQ(client.say("put-job 1" + due + end + "\r\na\r\n"), why);
      EXPECT_EQ(client.say("put-jobs 6" + due + end + "\r\n1\r\na\r\n\r\n"), "REFUSED 1 " + why);
      const std::string data = "1\r\na\r\n1" + due + "\r\na\r\n";
      EXPECT_EQ(client.say("put-jobs " + std::to_string(data.size()) + " pri=1" + end + "\r\n" +
                           data + "\r\n"),
                "REFUSED 2 " + why);
    }
  }
  EXPECT_EQ(client.say("patch-job 1 delay=1h expires-in=30m\r\n"), why);
  EXPECT_EQ(stat(1, "expires-at"), "2023-11-14T23:13:20.001Z");
}

TEST_F(SessionJobs, AnOptionThatIsRefusedIsNamedAndTheBodyIsDiscarded) {
  EXPECT_EQ(client.say("put-job 4 delya=3s\r\nquit\r\n"),
            "BAD_OPTION \"delya\": no such option; there are pri delay due ttr spread expires-in "
            "expires-at at-expiry key on-conflict key-window group attributes max-attempts backoff "
            "jitter lost buried\r\n");
  EXPECT_EQ(client.say("put-job 4 delay=3\r\nquit\r\n").substr(0, 22), "BAD_OPTION delay: \"3\":");
  EXPECT_EQ(client.say("put-job 4 delay=3s due=0\r\nquit\r\n"),
            "BAD_OPTION due: does not go with `delay`\r\n");
  EXPECT_EQ(client.say("put-job 4 due=1700000000\r\nquit\r\n"),
            "BAD_OPTION due: \"1700000000\": seconds since 1970? The unit is milliseconds\r\n");
  EXPECT_EQ(client.say("put-job 4 due=1969-12-31T23:59:59Z\r\nquit\r\n"),
            "BAD_OPTION due: \"1969-12-31T23:59:59Z\": a time is from 1970-01-01T00:00:00Z to "
            "9999-12-31T23:59:59.999Z\r\n");
  EXPECT_EQ(client.say("put-job 4 pri=1 pri=2\r\nquit\r\n"), "BAD_OPTION pri: comes twice\r\n");
  EXPECT_EQ(client.say("put-job 4 on-conflict=ignore\r\nquit\r\n"),
            "BAD_OPTION on-conflict: needs `key`\r\n");
  EXPECT_EQ(client.say("put-job 4 due=9999999999999999\r\nquit\r\n"), "OUT_OF_RANGE\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
}

TEST_F(SessionJobs, AKeyMakesAPutSafeToRepeat) {
  EXPECT_EQ(client.say("put-job 1 key=order-7 delay=1m\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("put-job 1 key=order-7 delay=1m\r\nb\r\n"), "EXISTS 1 delayed\r\n");
  EXPECT_EQ(client.say("put-job 1 key=order-7 on-conflict=replace\r\nc\r\n"), "REPLACED 1\r\n");
  EXPECT_EQ(client.say("reserve\r\n"), "RESERVED 1 1\r\nc\r\n");
  EXPECT_EQ(client.say("put-job 1 key=order-7 on-conflict=replace\r\nd\r\n"), "IS_RESERVED 1\r\n");
  EXPECT_EQ(client.say("delete 1\r\n"), "DELETED\r\n");
  EXPECT_EQ(client.say("put-job 1 key=order-7\r\ne\r\n").substr(0, 9), "INSERTED ");
}

TEST_F(SessionJobs, AProducerLearnsWhetherTheJobOfItsKeyWillRun) {
  const std::string put = "put-job 1 key=k key-window=2m delay=1h max-attempts=1\r\na\r\n";
  EXPECT_EQ(client.say(put), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("cancel-job key=k\r\n" + put), "CANCELLED 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(client.say("kick-job 2\r\nreserve\r\n"), "KICKED\r\nRESERVED 2 1\r\na\r\n");
  EXPECT_EQ(client.say(put), "EXISTS 2 reserved\r\n");
  EXPECT_EQ(client.say("fail-job 2 0\r\n\r\n"), "DEAD 1\r\n");
  EXPECT_EQ(client.say(put), "EXISTS 2 dead\r\n");
  EXPECT_EQ(client.say("put-job 1 key=k key-window=2m on-conflict=replace\r\nb\r\n"),
            "REPLACED 2\r\n");
  EXPECT_EQ(client.say("reserve\r\ndelete 2\r\n"), "RESERVED 2 1\r\nb\r\nDELETED\r\n");
  EXPECT_EQ(client.say(put), "EXISTS 2 done\r\n");
}

TEST_F(SessionJobs, ALineWithALongKeyIsTakenAndALongerOneIsNot) {
  const std::string key(queue::kMaxKey, 'k');
  const std::string line = "put-job 1 delay=1m pri=5 key=" + key;
  EXPECT_EQ(client.say(line + "\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("peek-job key=" + key + "\r\n"), "FOUND 1 1\r\na\r\n");
  EXPECT_EQ(client.say("peek-job key=" + key + "k\r\n"), "BAD_FORMAT\r\n");
  const std::string spaces(kMaxLongLine - line.size() - 2, ' ');
  EXPECT_EQ(client.say(line + spaces + "\r\nb\r\n"), "EXISTS 1 delayed\r\n");
  EXPECT_EQ(client.say(line + spaces + " \r\nb\r\n"), "BAD_FORMAT\r\n");
  EXPECT_EQ(client.say("put 0 0 60 1" + spaces + "\r\n"), "BAD_FORMAT\r\n") << "as in beanstalkd";
  EXPECT_EQ(client.say("list-tube-used\r\n"), "USING default\r\n");
}

TEST_F(SessionJobs, AJobIsPeekedAtAndCancelledByItsIdOrKey) {
  client.say("put-job 1 key=a delay=1m\r\na\r\nput-job 1 key=b\r\nb\r\n");
  EXPECT_EQ(client.say("peek-job key=a\r\npeek-job 2\r\n"), "FOUND 1 1\r\na\r\nFOUND 2 1\r\nb\r\n");
  EXPECT_EQ(client.say("cancel-job key=a\r\n"), "CANCELLED 1\r\n");
  EXPECT_EQ(client.say("cancel-job key=a\r\ncancel-job 1\r\n"), "NOT_FOUND\r\nNOT_FOUND\r\n");
  EXPECT_EQ(client.say("reserve\r\n"), "RESERVED 2 1\r\nb\r\n");
  EXPECT_EQ(client.say("cancel-job key=b\r\n"), "IS_RESERVED 2\r\n");
  EXPECT_EQ(client.say("cancel-job\r\ncancel-job key=\r\ncancel-job 2 pri=1\r\n"),
            "UNKNOWN_COMMAND\r\nBAD_FORMAT\r\n"
            "BAD_OPTION \"pri\": no such option; there are reserved\r\n");
}

TEST_F(SessionJobs, AJobIsPatched) {
  client.say("put-job 1 key=a delay=1m\r\na\r\n");
  EXPECT_EQ(client.say("patch-job key=a pri=3 ttr=90s\r\n"), "PATCHED 1\r\n");
  EXPECT_EQ(stat(1, "pri"), "3");
  EXPECT_EQ(stat(1, "ttr"), "90");
  EXPECT_EQ(stat(1, "state"), "delayed");
  EXPECT_EQ(client.say("patch-job 1 body=3 delay=0\r\nnew\r\n"), "PATCHED 1\r\n");
  EXPECT_EQ(client.say("reserve\r\n"), "RESERVED 1 3\r\nnew\r\n");
  EXPECT_EQ(client.say("patch-job 1 pri=4\r\n"), "IS_RESERVED 1\r\n");
  EXPECT_EQ(client.say("patch-job 9 pri=4\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("patch-job 1 key=b\r\n"),
            "BAD_OPTION \"key\": no such option; there are pri delay due ttr expires-in "
            "expires-at at-expiry attributes body\r\n");
  EXPECT_EQ(client.say("patch-job 1 prj=2 body=8\r\ndelete 1\r\n").substr(0, 16),
            "BAD_OPTION \"prj\"");
  EXPECT_EQ(client.say("put-job 1 delay=3\n\r\na\r\n").find('\n'),
            client.say("put-job 1 delay=3\n\r\na\r\n").size() - 1);
  EXPECT_EQ(client.say("patch-job 1 body=300000\r\n" + std::string(300'000, 'b') +
                       "\r\nlist-tube-used\r\n"),
            "JOB_TOO_BIG\r\nUSING default\r\n");
}

TEST_F(SessionJobs, ABodyThatIsReplacedWhileItIsReadIsReadAnew) {
  client.say("put-job 3 key=a\r\nold\r\n");
  server.store.bodies_are_on_disk = true;
  Client reader(server);
  Client worker(server);
  EXPECT_EQ(reader.say("peek 1\r\n"), "");
  EXPECT_EQ(worker.say("reserve-job 1\r\n"), "");
  EXPECT_EQ(client.say("patch-job 1 body=3\r\nnew\r\n"), "PATCHED 1\r\n");
  for (int n = 0; n < 3; ++n) server.read_bodies();
  EXPECT_EQ(reader.read(), "FOUND 1 3\r\nnew\r\n");
  EXPECT_EQ(worker.read(), "RESERVED 1 3\r\nnew\r\n");
}

TEST_F(SessionJobs, AReplyWaitsForTheChangeThatItReports) {
  client.durable = 0;
  EXPECT_EQ(client.say("put-job 1 key=a\r\na\r\nput-job 1 key=a\r\nb\r\n"), "");
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.say(""), "INSERTED 1\r\nEXISTS 1 ready\r\n");
}

TEST_F(SessionJobs, AFailedPatchChangesNothing) {
  client.say("put-job 1 key=a\r\na\r\n");
  server.store.appends_fail = true;
  EXPECT_EQ(client.say("patch-job key=a pri=1\r\ncancel-job key=a\r\nput-job 1 key=b\r\nb\r\n"),
            "INTERNAL_ERROR\r\nINTERNAL_ERROR\r\nINTERNAL_ERROR\r\n");
  server.store.appends_fail = false;
  EXPECT_EQ(stat(1, "pri"), "65536");
  EXPECT_EQ(client.say("peek-job key=b\r\n"), "NOT_FOUND\r\n");
}

TEST_F(SessionJobs, AJobThatIsPutBuried) {
  EXPECT_EQ(client.say("put-job 1 buried=yes\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("put-jobs 6 buried=yes\r\n1\r\nb\r\n\r\n"), "JOBS 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(client.say("put-job 1 buried=no\r\nc\r\n"), "INSERTED 3\r\n");
  EXPECT_EQ(client.say("put-job 1 buried=1\r\nd\r\n"), "BAD_OPTION buried: \"1\": yes or no\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "RESERVED 3 1\r\nc\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
  EXPECT_EQ(client.say("peek-buried\r\n"), "FOUND 1 1\r\na\r\n");
  EXPECT_EQ(stat(1, "buries"), "0");
}

}  // namespace
}  // namespace carillon::server::beanstalk
