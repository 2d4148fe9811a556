// Bodies that are not at hand: the session waits for each, in order with its replies, and the job
// is neither lost nor left reserved without a worker, whatever happens meanwhile.

#include <gtest/gtest.h>

#include <string>

#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

class SessionBodies : public ::testing::Test {
 public:
  ~SessionBodies() override { server.engine.check_invariants(); }

 protected:
  SessionBodies() { server.store.bodies_are_on_disk = true; }

  queue::JobState state(queue::JobId id) { return server.engine.job_stats(server.now, id)->state; }

  TestServer server;
  Client client{server};
  Client other{server};
};

TEST_F(SessionBodies, TheNextCommandsWaitUntilTheBodyIsRead) {
  client.say("put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\n");
  EXPECT_EQ(client.say("use t\r\nreserve\r\nlist-tube-used\r\nreserve\r\n"), "USING t\r\n");
  EXPECT_EQ(client.session().wants(), Session::Wants::kDelivery);
  EXPECT_EQ(client.unused(), "list-tube-used\r\nreserve\r\n");
  server.read_bodies();
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\nUSING t\r\n");
  server.read_bodies();
  EXPECT_EQ(client.read(), "RESERVED 2 1\r\nb\r\n");
  EXPECT_EQ(client.session().wants(), Session::Wants::kInput);
}

TEST_F(SessionBodies, OtherClientsAreAnsweredMeanwhile) {
  client.say("put 0 0 60 1\r\na\r\nreserve\r\n");
  server.store.bodies_are_on_disk = false;
  EXPECT_EQ(other.say("put 0 0 60 1\r\nb\r\nreserve\r\ndelete 2\r\n"),
            "INSERTED 2\r\nRESERVED 2 1\r\nb\r\nDELETED\r\n");
}

TEST_F(SessionBodies, AClientThatHasWaitedForItsJobWaitsForTheBody) {
  client.say("reserve\r\n");
  other.say("put 0 0 60 1\r\na\r\n");
  EXPECT_EQ(client.read(), "");
  EXPECT_EQ(server.reads.asked.size(), 1u);
  server.read_bodies();
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
}

TEST_F(SessionBodies, TheTtrBeginsWhenTheBodyIsThere) {
  client.say("put 0 0 2 1\r\na\r\nreserve\r\n");
  server.pass(1'999);
  server.read_bodies();
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
  server.pass(1'999);
  EXPECT_EQ(state(1), queue::JobState::kReserved);
  server.pass(1);
  EXPECT_EQ(state(1), queue::JobState::kReady);
}

TEST_F(SessionBodies, AJobWhoseTtrIsOverBeforeItsBodyIsReadGoesToTheNextClient) {
  client.say("put 0 0 2 1\r\na\r\nreserve\r\n");
  other.say("reserve\r\n");
  server.pass(2'000);
  server.read_bodies();
  EXPECT_EQ(client.read(), "INTERNAL_ERROR\r\n");
  EXPECT_EQ(other.read(), "RESERVED 1 1\r\na\r\n");
}

TEST_F(SessionBodies, AJobWhoseBodyCannotBeReadIsReadyAgain) {
  client.say("put 0 0 60 1\r\na\r\nreserve\r\n");
  server.store.bodies_fail = true;
  server.read_bodies();
  EXPECT_EQ(client.read(), "INTERNAL_ERROR\r\n");
  EXPECT_EQ(state(1), queue::JobState::kReady);
  EXPECT_EQ(server.engine.job_stats(server.now, 1)->record.history.reserves, 0u);
  server.store.bodies_fail = false;
  EXPECT_EQ(client.say("reserve\r\n"), "");
  server.read_bodies();
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
}

TEST_F(SessionBodies, AJobWhoseBodyIsDamagedIsBuried) {
  client.say("put 7 0 60 1\r\na\r\nreserve\r\n");
  server.store.bodies_are_damaged = true;
  server.store.appends_fail = true;
  server.read_bodies();
  EXPECT_EQ(client.read(), "INTERNAL_ERROR\r\n");
  EXPECT_EQ(state(1), queue::JobState::kReady) << "it cannot be buried, so it stays";
  server.store.appends_fail = false;
  client.say("reserve\r\n");
  server.read_bodies();
  EXPECT_EQ(client.read(), "INTERNAL_ERROR\r\n");
  EXPECT_EQ(state(1), queue::JobState::kBuried);
  EXPECT_EQ(server.engine.job_stats(server.now, 1)->record.priority, 7u);
}

TEST_F(SessionBodies, AJobOfAClientThatIsGoneIsReadyAgainAndNotRead) {
  client.say("put 0 0 60 1\r\na\r\nreserve\r\n");
  client.hang_up();
  EXPECT_EQ(state(1), queue::JobState::kReady);
  EXPECT_TRUE(server.reads.asked.empty());
}

TEST_F(SessionBodies, AClientThatHasClosedItsHalfGetsItsReply) {
  EXPECT_EQ(client.say("put 0 0 60 1\r\na\r\nreserve\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.end_input(), "");
  server.read_bodies();
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(client.session().wants(), Session::Wants::kNothing);
}

TEST_F(SessionBodies, APeekOfAJobThatIsDeletedMeanwhileFindsNone) {
  client.say("put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\n");
  EXPECT_EQ(client.say("peek 1\r\npeek-ready\r\n"), "");
  other.say("delete 1\r\n");
  server.read_bodies();
  EXPECT_EQ(client.read(), "NOT_FOUND\r\n");
  server.read_bodies();
  EXPECT_EQ(client.read(), "FOUND 2 1\r\nb\r\n");
  server.store.bodies_are_damaged = true;
  client.say("peek 2\r\n");
  server.read_bodies();
  EXPECT_EQ(client.read(), "INTERNAL_ERROR\r\n");
  EXPECT_EQ(state(2), queue::JobState::kReady) << "to look at a job buries none";
}

TEST_F(SessionBodies, ReserveJobChangesNothingBeforeTheBodyIsThere) {
  client.say("put 0 60 60 1\r\na\r\nreserve-job 1\r\n");
  EXPECT_EQ(state(1), queue::JobState::kDelayed);
  server.store.bodies_fail = true;
  server.read_bodies();
  EXPECT_EQ(client.read(), "INTERNAL_ERROR\r\n");
  EXPECT_EQ(state(1), queue::JobState::kDelayed);
  server.store.bodies_fail = false;
  client.say("reserve-job 1\r\n");
  other.say("reserve-job 1\r\n");
  server.read_bodies();
  EXPECT_EQ(client.read(), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(other.read(), "NOT_FOUND\r\n") << "one of them gets it";
}

}  // namespace
}  // namespace carillon::server::beanstalk
