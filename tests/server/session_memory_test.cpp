// Sessions share the memory of all connections: what a body or unread replies of one client take is
// not there for another, and is there again afterwards.

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <deque>
#include <new>
#include <string>
#include <string_view>

#include "server/beanstalk/session.h"
#include "server/net/memory_reserve.h"
#include "server/test_server.h"

namespace carillon::server::beanstalk {
namespace {

class SessionMemory : public ::testing::Test {
 protected:
  void put(Client& client) {
    ASSERT_EQ(client.say("put 0 0 60 40000\r\n" + body + "\r\n").substr(0, 8), "INSERTED");
    client.session().count_memory();
  }

  const std::string body = std::string(40'000, 'b');
  TestServer server{{.memory = 390'000}};
  Client one{server};
  Client two{server};
  Client three{server};
};

TEST_F(SessionMemory, APutWithoutMemoryIsRefusedAfterItsBody) {
  one.say("put 0 0 60 40000\r\nthe first bytes");
  two.say("put 0 0 60 40000\r\nthe first bytes");
  EXPECT_EQ(three.say("put 0 0 60 40000\r\n"), "");
  EXPECT_EQ(three.say(body + "\r\n"), "OUT_OF_MEMORY\r\n");
  EXPECT_EQ(three.say("put 0 0 60 5\r\nsmall\r\n"), "INSERTED 1\r\n");
  one.hang_up();
  put(three);
}

TEST_F(SessionMemory, AJobWithoutMemoryStaysReady) {
  put(one);
  two.durable = 0;  // its replies do not leave
  two.say("peek 1\r\npeek 1\r\n");
  two.session().count_memory();
  EXPECT_EQ(three.say("reserve\r\n"), "OUT_OF_MEMORY\r\n");
  EXPECT_EQ(three.say("reserve-job 1\r\n"), "OUT_OF_MEMORY\r\n");
  EXPECT_EQ(three.say("peek 1\r\n"), "OUT_OF_MEMORY\r\n");
  EXPECT_EQ(server.engine.stats().jobs.ready, 1u);
  two.hang_up();
  EXPECT_EQ(three.say("reserve\r\n"), "RESERVED 1 40000\r\n" + body + "\r\n");
}

TEST_F(SessionMemory, TheMoreIsTakenTheFewerRepliesMayBeUnread) {
  const auto expect_most = [](const Service& service, std::size_t most) {
    EXPECT_FALSE(service.are_too_many_unsent(most));
    EXPECT_TRUE(service.are_too_many_unsent(most + 1));
  };
  expect_most(server.service, 390'000u / 16);
  one.say("put 0 0 60 40000\r\nthe first bytes");
  expect_most(server.service, 350'000u / 16);
  one.hang_up();
  expect_most(server.service, 390'000u / 16);
  TestServer small({.memory = 40'000});
  expect_most(small.service, 8u << 10);  // each client has this much
}

// Each takes an eighth of what is free at most, so there is something for one that comes later.
TEST_F(SessionMemory, BodiesNeverTakeTheLastOfIt) {
  std::deque<Client> greedy;
  for (int n = 0; n < 200; ++n)
    greedy.emplace_back(server).say("put 0 0 60 " + std::to_string(40'000 - 150 * n) + "\r\nx");
  EXPECT_GT(server.service.memory().free(), 70'000u);
  EXPECT_EQ(one.say("put 0 0 60 5000\r\n" + std::string(5'000, 'b') + "\r\n"), "INSERTED 1\r\n");
}

TEST_F(SessionMemory, RepliesThatNobodyReadsTakeAnEighthOfWhatIsFree) {
  constexpr std::size_t kMemory = 8 << 20;
  TestServer large({.memory = kMemory});
  Client putter(large);
  putter.say("put 0 0 60 5000\r\n" + std::string(5'000, 'b') + "\r\n");
  std::string peeks;
  for (int n = 0; n < 300; ++n) peeks += "peek 1\r\n";
  std::deque<Client> deaf;
  for (int n = 0; n < 30; ++n) {
    const std::size_t before = large.service.memory().free();
    Client& client = deaf.emplace_back(large);
    client.durable = 0;  // its replies do not leave
    client.say(peeks);
    client.session().count_memory();
    ASSERT_GE(large.service.memory().free() + 2 * kOwnReplies, before - before / 8);
  }
}

// The allocator is asked what is in use. (It knows nothing of that under a sanitizer.)
TEST_F(SessionMemory, ABodyThatComesInPartsTakesWhatItWasGranted) {
  Client slow(server);
  slow.say("put 0 0 60 40000\r\n" + body.substr(0, 1'000));
  const auto before = ::mallinfo2();
  for (int n = 1; n < 35; ++n) slow.say(body.substr(0, 1'000));
  const auto after = ::mallinfo2();
  EXPECT_LE(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd + 41'000);
}

TEST_F(SessionMemory, ALongListWithoutMemoryIsRefused) {
  for (int n = 0; n < 400; ++n)
    one.say("watch " + std::string(190, 't') + std::to_string(n) + "\r\n");
  EXPECT_EQ(one.say("list-tubes-watched\r\n"), "OUT_OF_MEMORY\r\n");
  two.say("watch " + std::string(190, 't') + "\r\n");
  EXPECT_EQ(two.say("list-tubes-watched\r\n").substr(0, 3), "OK ");
  TestServer large({.memory = 2'000'000});
  Client other(large);
  for (int n = 0; n < 400; ++n)
    other.say("watch " + std::string(190, 't') + std::to_string(n) + "\r\n");
  EXPECT_EQ(other.say("list-tubes-watched\r\n").substr(0, 3), "OK ");
}

// The system gives no more memory: an allocation has failed, and the reserve was given up for it.
class SessionWithoutMemory : public ::testing::Test {
 protected:
  static constexpr std::size_t kBody = 60'000;

  void put_jobs(int jobs) {
    for (int n = 0; n < jobs; ++n) client.say("put 0 0 60 60000\r\n" + body + "\r\n");
    client.session().count_memory();
  }
  void give_up_reserve() {
    server.service.renew_reserve();
    std::get_new_handler()();
    ASSERT_TRUE(server.service.is_out_of_memory());
  }
  std::string words(std::string_view command) {
    const std::string reply = client.say(std::string(command) + "\r\n");
    return reply.substr(0, reply.find_first_of(" \r"));
  }

  const std::string body = std::string(kBody, 'b');
  MemoryReserve reserve;
  TestServer server{{.reserve = &reserve}};
  Client client{server};
};

TEST_F(SessionWithoutMemory, TheQueueCanBeEmptied) {
  put_jobs(3);
  give_up_reserve();
  for (const char* command :
       {"peek-ready", "peek-delayed", "peek-buried", "peek 1", "stats-job 1", "stats-tube default",
        "stats", "list-tubes", "list-tubes-watched", "list-tube-used", "pause-tube default 0"})
    EXPECT_NE(words(command), "OUT_OF_MEMORY") << command;
  for (const char* id : {"1", "2", "3"}) {
    EXPECT_EQ(client.say("reserve\r\n"),
              std::string("RESERVED ") + id + " 60000\r\n" + body + "\r\n");
    EXPECT_EQ(client.say(std::string("delete ") + id + "\r\n"), "DELETED\r\n");
  }
}

TEST_F(SessionWithoutMemory, WhatFillsItIsRefused) {
  put_jobs(1);
  give_up_reserve();
  for (const char* command : {"use a", "watch a", "kick 1", "kick-job 1", "put 0 0 60 1\r\nx"})
    EXPECT_EQ(words(command), "OUT_OF_MEMORY") << command;
}

TEST_F(SessionWithoutMemory, BodiesThatNobodyReadsTakeAQuarterOfTheReserveAtMost) {
  constexpr std::size_t kQuarter = MemoryReserve::kBytes / 4;
  put_jobs(100);
  give_up_reserve();
  std::deque<Client> greedy;
  std::size_t reserved = 0;
  for (int n = 0; n < 100; ++n) {
    Client& worker = greedy.emplace_back(server);
    worker.durable = 0;  // its replies do not leave
    worker.say("reserve\r\n");
    worker.session().count_memory();
    if (worker.session().is_at_work()) ++reserved;
  }
  EXPECT_GT(reserved, kQuarter / kBody / 3);
  EXPECT_LE(reserved, kQuarter / kBody);
  EXPECT_LE(server.service.memory().used(), kQuarter);
  greedy.clear();
  EXPECT_EQ(words("reserve"), "RESERVED");
}

}  // namespace
}  // namespace carillon::server::beanstalk
