// No reply leaves before the change that it reports is durable, a failing store is reported to the
// client, and unread replies do not pile up.

#include <gtest/gtest.h>

#include <string>

#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

TEST(SessionDurability, InsertedWaitsForItsSync) {
  TestServer server;
  Client client(server);
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.say("put 0 0 60 1\r\na\r\n"), "");
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.read(), "INSERTED 1\r\n");
}

TEST(SessionDurability, EachChangeWaitsForItsSyncAndLaterRepliesWaitToo) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("put 0 0 60 1\r\na\r\nreserve\r\n"), "INSERTED 1\r\nRESERVED 1 1\r\na\r\n");
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.say("use t\r\nrelease 1 0 0\r\nuse u\r\n"), "USING t\r\n");
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.say("reserve\r\nbury 1 0\r\n"), "RELEASED\r\nUSING u\r\nRESERVED 1 1\r\na\r\n");
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.say("kick-job 1\r\n"), "BURIED\r\n");
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.say("delete 1\r\n"), "KICKED\r\n");
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.read(), "DELETED\r\n");
}

TEST(SessionDurability, AJobIsNotHandedOutBeforeItIsDurable) {
  TestServer server;
  Client producer(server);
  Client worker(server);
  worker.durable = server.engine.last_sequence();
  worker.say("reserve\r\n");
  producer.say("put 0 0 60 1\r\na\r\n");
  EXPECT_EQ(worker.read(), "");
  EXPECT_EQ(worker.session().wants(), Session::Wants::kInput);
  worker.durable = server.engine.last_sequence();
  EXPECT_EQ(worker.read(), "RESERVED 1 1\r\na\r\n");
}

TEST(SessionDurability, NotFoundWaitsForTheDeletionThatItMayReport) {
  TestServer server;
  Client one(server);
  Client two(server);
  one.say("put 0 0 60 1\r\na\r\n");
  two.durable = server.engine.last_sequence();
  one.say("delete 1\r\n");
  EXPECT_EQ(two.say("peek 1\r\n"), "");
  two.durable = server.engine.last_sequence();
  EXPECT_EQ(two.read(), "NOT_FOUND\r\n");
}

TEST(SessionDurability, AFailingStoreIsAnInternalErrorAndTheConnectionLivesOn) {
  TestServer server;
  Client client(server);
  client.say("put 0 0 60 1\r\na\r\nreserve\r\n");
  server.store.appends_fail = true;
  EXPECT_EQ(
      client.say(
          "put 0 0 60 1\r\nb\r\ndelete 1\r\nrelease 1 0 0\r\nbury 1 0\r\nlist-tube-used\r\n"),
      "INTERNAL_ERROR\r\nINTERNAL_ERROR\r\nINTERNAL_ERROR\r\nINTERNAL_ERROR\r\nUSING default\r\n");
  server.store.appends_fail = false;
  EXPECT_EQ(client.say("delete 1\r\ndelete 2\r\n"), "DELETED\r\nNOT_FOUND\r\n");
}

TEST(SessionDurability, AnUnreadableBodyIsAnInternalErrorAndTheJobStaysAsItIs) {
  TestServer server;
  Client client(server);
  client.say("put 0 0 60 1\r\na\r\n");
  server.store.bodies_fail = true;
  EXPECT_EQ(client.say("peek 1\r\nreserve\r\nreserve-with-timeout 0\r\nreserve-job 1\r\n"),
            "INTERNAL_ERROR\r\nINTERNAL_ERROR\r\nINTERNAL_ERROR\r\nINTERNAL_ERROR\r\n");
  server.store.bodies_fail = false;
  EXPECT_EQ(client.say("peek-ready\r\nreserve\r\n"), "FOUND 1 1\r\na\r\nRESERVED 1 1\r\na\r\n");
}

TEST(SessionDurability, ADamagedBodyIsAnInternalErrorAndTheJobIsBuried) {
  TestServer server;
  Client client(server);
  client.say("put 0 0 60 1\r\na\r\n");
  server.store.bodies_are_damaged = true;
  EXPECT_EQ(client.say("peek 1\r\nreserve\r\nreserve-job 1\r\n"),
            "INTERNAL_ERROR\r\nINTERNAL_ERROR\r\nINTERNAL_ERROR\r\n");
  server.store.bodies_are_damaged = false;
  EXPECT_EQ(client.say("peek-buried\r\nkick 1\r\nreserve\r\n"),
            "FOUND 1 1\r\na\r\nKICKED 1\r\nRESERVED 1 1\r\na\r\n");
}

TEST(SessionDurability, AKickThatStopsHalfwaySaysHowManyItHasKickedAndTheAuditWhy) {
  TestServer server;
  Client client(server);
  for (int n = 0; n < 100; ++n) client.say("put 0 3600 60 1\r\na\r\n");
  server.store.fail_after = 2;
  EXPECT_EQ(client.say("kick 80\r\n"), "KICKED 32\r\n");
  EXPECT_EQ(server.service.feed().actions().back().outcome,
            "kicked 32, then: no space left on device");
}

TEST(SessionDurability, TheNextCommandWaitsUntilTheRepliesHaveRoom) {
  TestServer server({.max_unsent = 1'000});
  Client client(server);
  client.say("put 0 0 60 400\r\n" + std::string(400, 'a') + "\r\n");
  client.durable = 0;
  Session& session = client.session();
  client.say("delete 9\r\n");  // held, so later replies cannot leave
  const std::string peek = "peek 1\r\n";
  std::string peeks;
  for (int i = 0; i < 5; ++i) peeks += peek;
  EXPECT_EQ(client.say(peeks), "");
  EXPECT_EQ(session.wants(), Session::Wants::kRoom);
  EXPECT_EQ(client.unused().size(), 2 * peek.size());
  EXPECT_EQ(session.receive(client.unused()), 0u);

  client.durable = UINT64_MAX;
  EXPECT_EQ(client.read().size(), 11 + 3 * (13 + 402u));
  EXPECT_EQ(session.wants(), Session::Wants::kInput);
  EXPECT_EQ(client.say("").size(), 2 * (13 + 402u));
}

// Else its append would keep the thread, and so all clients, waiting for the disk.
TEST(SessionDurability, APutWaitsUntilTheStoreHasRoom) {
  TestServer server({.max_job_size = kLargestMaxJobSize});
  Client client(server);
  Client other(server);
  server.store.is_full = true;
  EXPECT_EQ(client.say("use t\r\nput 0 0 60 5\r\nhel"), "USING t\r\n");
  EXPECT_EQ(client.session().wants(), Session::Wants::kStore);
  EXPECT_EQ(client.say("lo\r\nlist-tube-used\r\n"), "");
  EXPECT_EQ(client.unused(), "hello\r\nlist-tube-used\r\n");
  EXPECT_EQ(other.say("use u\r\nreserve-with-timeout 0\r\n"), "USING u\r\nTIMED_OUT\r\n");
  server.store.is_full = false;
  EXPECT_EQ(client.say(""), "INSERTED 1\r\nUSING t\r\n");

  const std::string piece(queue::kBodyPiece, 'b');
  client.say("put 0 0 60 " + std::to_string(2 * piece.size()) + "\r\n" + piece);
  server.store.is_full = true;
  EXPECT_EQ(client.say(piece + "\r\n"), "");
  EXPECT_EQ(client.unused().size(), piece.size() + 2);
  server.store.is_full = false;
  EXPECT_EQ(client.say(""), "INSERTED 2\r\n");
}

TEST(SessionDurability, WhatAppendsWaitsUntilTheStoreHasRoomAndOtherCommandsDoNot) {
  TestServer server;
  Client client(server);
  client.say("put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\nput 0 99 60 1\r\nc\r\n");
  EXPECT_EQ(client.say("reserve\r\n"), "RESERVED 1 1\r\na\r\n");
  const auto waits_for_room = [&](const std::string& command, const std::string& reply) {
    server.store.is_full = true;
    EXPECT_EQ(client.say(command), "");
    EXPECT_EQ(client.session().wants(), Session::Wants::kStore);
    server.store.is_full = false;
    EXPECT_EQ(client.say(""), reply);
  };
  waits_for_room("release 1 0 0\r\n", "RELEASED\r\n");
  EXPECT_EQ(client.say("reserve\r\n"), "RESERVED 1 1\r\na\r\n");
  waits_for_room("bury 1 0\r\n", "BURIED\r\n");
  waits_for_room("kick 5\r\n", "KICKED 1\r\n");
  waits_for_room("kick-job 3\r\n", "KICKED\r\n");
  waits_for_room("delete 1\r\n", "DELETED\r\n");
  server.store.is_full = true;
  EXPECT_EQ(client.say("reserve\r\n"), "RESERVED 2 1\r\nb\r\n");
  EXPECT_EQ(client.say("touch 2\r\n"), "TOUCHED\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
