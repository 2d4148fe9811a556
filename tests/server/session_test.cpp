// The commands of the beanstalk protocol and their replies, one connection or a few, without
// sockets.

#include "server/beanstalk/session.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

TEST(Session, PutReserveDelete) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put 0 0 60 5\r\nhello\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("reserve\r\n"), "RESERVED 1 5\r\nhello\r\n");
  EXPECT_EQ(client.say("delete 1\r\n"), "DELETED\r\n");
  EXPECT_EQ(client.say("delete 1\r\n"), "NOT_FOUND\r\n");
}

TEST(Session, PipelinedCommandsAreAnsweredInOrder) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put 5 0 60 1\r\na\r\nput 1 0 60 1\r\nb\r\n"
                       "use t\r\nreserve\r\nlist-tube-used\r\ndelete 2\r\n"),
            "INSERTED 1\r\nINSERTED 2\r\nUSING t\r\nRESERVED 2 1\r\nb\r\nUSING t\r\nDELETED\r\n");
}

TEST(Session, UnknownAndMalformedCommandsLeaveTheConnectionAlive) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("foo\r\n\r\npeek-readyx\r\ndelete 1foo\r\nlist-tube-used\r\n"),
            "UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\nBAD_FORMAT\r\nBAD_FORMAT\r\nUSING default\r\n");
}

TEST(Session, AMalformedPutConsumesNoBody) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put 0 0 60 5 \r\nhello\r\n"), "BAD_FORMAT\r\nUNKNOWN_COMMAND\r\n");
}

TEST(Session, ABodyOfTheLargestSizeIsTakenAndALargerOneIsSwallowed) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put 0 0 60 65535\r\n" + std::string(65'535, 'b') + "\r\n"),
            "INSERTED 1\r\n");
  EXPECT_EQ(
      client.say("put 0 0 60 65536\r\n" + std::string(65'536, 'b') + "\r\nlist-tube-used\r\n"),
      "JOB_TOO_BIG\r\nUSING default\r\n");
}

TEST(Session, ABodyTooBigIsSwallowedEvenIfTheLineHasTrailingBytes) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(
      client.say("put 0 0 60 65536 foo\r\n" + std::string(65'538, 'b') + "list-tube-used\r\n"),
      "JOB_TOO_BIG\r\nUSING default\r\n");
}

TEST(Session, ExpectedCrlfConsumesTheDeclaredBytesAndTwo) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put 0 0 60 5\r\nhelloXYlist-tube-used\r\n"),
            "EXPECTED_CRLF\r\nUSING default\r\n");
  EXPECT_EQ(client.say("put 0 0 60 3\r\nhi\r\nuse a\r\n"), "EXPECTED_CRLF\r\nUNKNOWN_COMMAND\r\n");
  EXPECT_EQ(client.say("list-tube-used\r\n"), "USING default\r\n");
}

TEST(Session, ABodyMayBeEmptyAndMayHoldAnyBytes) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put 0 0 60 0\r\n\r\n"), "INSERTED 1\r\n");
  const std::string body("\r\n\0quit\r\n", 9);
  EXPECT_EQ(client.say("put 0 0 60 9\r\n" + body + "\r\n"), "INSERTED 2\r\n");
  EXPECT_EQ(client.say("peek 1\r\n"), "FOUND 1 0\r\n\r\n");
  EXPECT_EQ(client.say("peek 2\r\n"), "FOUND 2 9\r\n" + body + "\r\n");
}

TEST(Session, DrainingIsAnsweredAfterTheBody) {
  TestServer server;
  Client client(server);
  server.service.drain();
  EXPECT_EQ(client.say("put 0 0 60 5\r\n"), "");
  EXPECT_EQ(client.say("hello\r\n"), "DRAINING\r\n");
  EXPECT_EQ(client.say("put 0 0 60 5\r\nhelloXX"), "EXPECTED_CRLF\r\n");
  EXPECT_NE(client.say("stats\r\n").find("\ndraining: true\n"), std::string::npos);
}

TEST(Session, ADelayedJobComesAtItsTimeAndNotBefore) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put 0 2 60 1\r\na\r\nreserve\r\n"), "INSERTED 1\r\n");
  server.pass(1'999);
  EXPECT_EQ(client.read(), "");
  server.pass(1);
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
}

TEST(Session, ReserveWithTimeoutEnds) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 1\r\n"), "");
  server.pass(999);
  EXPECT_EQ(client.read(), "");
  server.pass(1);
  EXPECT_EQ(client.read(), "TIMED_OUT\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout-ms 250\r\n"), "");
  server.pass(250);
  EXPECT_EQ(client.read(), "TIMED_OUT\r\n");
}

TEST(Session, NothingIsCarriedOutWhileAReserveWaits) {
  TestServer server;
  Client worker(server);
  Client producer(server);
  EXPECT_EQ(worker.say("reserve\r\nuse a\r\n"), "");
  EXPECT_EQ(worker.session().wants(), Session::Wants::kDelivery);
  EXPECT_EQ(worker.unused(), "use a\r\n");
  EXPECT_EQ(producer.say("put 0 0 60 1\r\nx\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(worker.read(), "RESERVED 1 1\r\nx\r\nUSING a\r\n");
}

TEST(Session, WaitingWorkersAreServedInTurn) {
  TestServer server;
  Client first(server);
  Client second(server);
  Client producer(server);
  first.say("reserve\r\n");
  second.say("reserve\r\n");
  producer.say("put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\n");
  EXPECT_EQ(first.read(), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(second.read(), "RESERVED 2 1\r\nb\r\n");
}

TEST(Session, DeadlineSoonInTheLastSecondOfATtr) {
  TestServer server;
  Client client(server);
  client.say("put 0 0 2 1\r\na\r\nreserve\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 9\r\n"), "");
  server.pass(1'000);
  EXPECT_EQ(client.read(), "DEADLINE_SOON\r\n");
  EXPECT_EQ(client.say("touch 1\r\n"), "TOUCHED\r\n");
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
}

TEST(Session, ReleaseBuryKickAndPeek) {
  TestServer server;
  Client client(server);
  client.say("put 0 0 60 1\r\na\r\nreserve\r\n");
  EXPECT_EQ(client.say("release 1 5 10\r\n"), "RELEASED\r\n");
  EXPECT_EQ(client.say("peek-ready\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("peek-delayed\r\n"), "FOUND 1 1\r\na\r\n");
  EXPECT_EQ(client.say("kick 3\r\n"), "KICKED 1\r\n");
  EXPECT_EQ(client.say("peek-ready\r\n"), "FOUND 1 1\r\na\r\n");
  EXPECT_EQ(client.say("reserve-job 1\r\n"), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(client.say("bury 1 7\r\n"), "BURIED\r\n");
  EXPECT_EQ(client.say("peek-buried\r\n"), "FOUND 1 1\r\na\r\n");
  EXPECT_EQ(client.say("kick-job 1\r\n"), "KICKED\r\n");
  EXPECT_EQ(client.say("kick-job 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("kick 1\r\n"), "KICKED 0\r\n");
  EXPECT_EQ(
      client.say(
          "release 1 0 0\r\nbury 1 0\r\ntouch 1\r\nreserve-job 9\r\npeek 9\r\nstats-job 9\r\n"),
      "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
}

TEST(Session, ATubeBeyondThe10000thIsNotWatched) {
  TestServer server;
  Client client(server);
  for (int i = 2; i <= 10'000; ++i) {
    const std::string number = std::to_string(i);
    ASSERT_EQ(client.say("watch t" + number + "\r\n"), "WATCHING " + number + "\r\n");
  }
  EXPECT_EQ(client.say("watch x\r\nwatch t2\r\nstats-tube x\r\n"),
            "OUT_OF_MEMORY\r\nWATCHING 10000\r\nNOT_FOUND\r\n");
}

TEST(Session, TubesAreUsedWatchedIgnoredListedAndPaused) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("use a\r\nwatch b\r\nwatch b\r\nignore nobody\r\n"),
            "USING a\r\nWATCHING 2\r\nWATCHING 2\r\nWATCHING 2\r\n");
  EXPECT_EQ(client.say("list-tubes\r\n"), "OK 22\r\n---\n- default\n- a\n- b\n\r\n");
  EXPECT_EQ(client.say("ignore default\r\nignore b\r\n"), "WATCHING 1\r\nNOT_IGNORED\r\n");
  EXPECT_EQ(client.say("list-tubes-watched\r\n"), "OK 8\r\n---\n- b\n\r\n");
  EXPECT_EQ(client.say("pause-tube b 2\r\npause-tube nobody 2\r\nstats-tube nobody\r\n"),
            "PAUSED\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  EXPECT_EQ(client.say("use b\r\nput 0 0 60 1\r\nx\r\nreserve\r\n"), "USING b\r\nINSERTED 1\r\n");
  server.pass(1'999);
  EXPECT_EQ(client.read(), "");
  server.pass(1);
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\nx\r\n");
}

TEST(Session, CarillonsOwnVerbsTakeMilliseconds) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put-ms 0 1500 2500 1\r\na\r\nreserve\r\n"), "INSERTED 1\r\n");
  server.pass(1'499);
  EXPECT_EQ(client.read(), "");
  server.pass(1);
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(client.say("release-ms 1 0 250\r\nreserve\r\n"), "RELEASED\r\n");
  server.pass(249);
  EXPECT_EQ(client.read(), "");
  server.pass(1);
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
}

TEST(Session, PutAtIsDueAtAMomentAndThePastIsNow) {
  TestServer server;  // it is 1700000000000 ms since 1970
  Client client(server);
  EXPECT_EQ(client.say("put-at 0 1700000000750 60000 1\r\na\r\nput-at 9 1 60000 1\r\nb\r\n"),
            "INSERTED 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(client.say("reserve\r\nreserve\r\n"), "RESERVED 2 1\r\nb\r\n");
  server.pass(749);
  EXPECT_EQ(client.read(), "");
  server.pass(1);
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
}

TEST(Session, AMomentInSecondsIsRefusedAfterTheBodyWasRead) {
  TestServer server;
  Client client(server);
  for (const char* const due : {"1000000000", "1700000060", "31535999999"})
    EXPECT_EQ(client.say("put-at 0 " + std::string(due) + " 0 14\r\nlist-tube-used\r\n"),
              "NOT_MILLISECONDS\r\n");
  EXPECT_EQ(client.say("put-at 0 999999999 0 1\r\na\r\nput-at 0 31536000000 0 1\r\na\r\n"),
            "INSERTED 1\r\nINSERTED 2\r\n");
}

TEST(Session, ATimeTooLargeIsOutOfRangeAfterTheBodyWasRead) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put-at 0 253402300800000 0 1\r\na\r\n"), "OUT_OF_RANGE\r\n");
  EXPECT_EQ(client.say("put-at 0 253402300799999 0 1\r\na\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("put-ms 0 18446744073709551615 0 1\r\na\r\n"), "OUT_OF_RANGE\r\n");
  EXPECT_EQ(client.say("put-ms 0 0 4294967295001 1\r\na\r\n"), "OUT_OF_RANGE\r\n");
  EXPECT_EQ(client.say("reserve-job 1\r\nrelease-ms 1 0 18446744073709551615\r\n"),
            "RESERVED 1 1\r\na\r\nOUT_OF_RANGE\r\n");
  EXPECT_EQ(client.say("release-ms 1 0 5\r\n"), "RELEASED\r\n");
}

TEST(Session, QuitClosesWithoutAReplyAndGivesTheJobsBack) {
  TestServer server;
  Client worker(server);
  Client other(server);
  worker.say("put 0 0 60 1\r\na\r\nreserve\r\n");
  EXPECT_EQ(worker.say("list-tube-used\r\nquitfoo\r\nlist-tube-used\r\n"), "USING default\r\n");
  EXPECT_EQ(worker.session().wants(), Session::Wants::kNothing);
  EXPECT_EQ(other.say("reserve-with-timeout 0\r\n"), "RESERVED 1 1\r\na\r\n");
}

TEST(Session, AHangUpGivesTheJobsBack) {
  TestServer server;
  Client worker(server);
  Client other(server);
  worker.say("put 0 0 60 1\r\na\r\nreserve\r\n");
  EXPECT_EQ(other.say("reserve\r\n"), "");
  worker.hang_up();
  server.deliver();
  EXPECT_EQ(other.read(), "RESERVED 1 1\r\na\r\n");
}

TEST(Session, AHalfClosedConnectionsReserveTimesOutAndTheRestIsAnswered) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(
      client.say("reserve\r\nuse a\r\nreserve\r\nput 0 0 60 1\r\nx\r\nwatch a\r\nreserve\r\nstat"),
      "");
  EXPECT_EQ(
      client.end_input(),
      "TIMED_OUT\r\nUSING a\r\nTIMED_OUT\r\nINSERTED 1\r\nWATCHING 2\r\nRESERVED 1 1\r\nx\r\n");
  EXPECT_EQ(client.session().wants(), Session::Wants::kNothing);
}

TEST(Session, TellsIfItsClientIsAtWork) {
  TestServer server;
  Client client(server);
  Client other(server);
  const auto at_work_after = [&](std::string_view bytes) {
    client.say(bytes);
    return client.session().is_at_work();
  };
  EXPECT_FALSE(at_work_after("put 0 0 1 1\r\na\r\nput 0 0 60 1\r\nb\r\n"));
  EXPECT_TRUE(at_work_after("reserve\r\n"));
  EXPECT_FALSE(other.session().is_at_work());
  server.pass(1'001);  // its ttr is over
  EXPECT_FALSE(client.session().is_at_work());
  EXPECT_TRUE(at_work_after("reserve-job 2\r\n"));
  EXPECT_TRUE(at_work_after("watch w\r\nignore default\r\nreserve\r\n"));  // also while it waits
  server.pass(60'000);
  EXPECT_FALSE(at_work_after("quit\r\n"));
}

}  // namespace
}  // namespace carillon::server::beanstalk
