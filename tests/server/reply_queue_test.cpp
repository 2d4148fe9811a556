// Replies leave in order, and none leaves before the change that it reports is durable.

#include "server/net/reply_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "carillon/queue/engine.h"
#include "carillon/queue/memory_store.h"
#include "server/net/barrier.h"

namespace carillon::server::beanstalk {
namespace {

// Returns the bytes that leave when all changes up to `durable` are durable, and removes them as if
// the socket took them.
std::string send(ReplyQueue& replies, queue::Sequence durable) {
  const std::string bytes(replies.sendable(durable));
  replies.sent(bytes.size());
  return bytes;
}

TEST(ReplyQueue, AReplyThatWaitsForNoChangeLeavesAtOnce) {
  ReplyQueue replies;
  replies.add(0, "USING ", "a", "\r\n");
  EXPECT_EQ(send(replies, 0), "USING a\r\n");
  EXPECT_TRUE(replies.empty());
}

TEST(ReplyQueue, NumbersAreDecimal) {
  ReplyQueue replies;
  replies.add(0, "RESERVED ", std::uint64_t{18446744073709551615u}, " ", std::size_t{0}, "\r\n");
  EXPECT_EQ(send(replies, 0), "RESERVED 18446744073709551615 0\r\n");
}

TEST(ReplyQueue, AReplyIsHeldUntilItsSequenceIsDurable) {
  ReplyQueue replies;
  replies.add(3, "INSERTED 1\r\n");
  EXPECT_EQ(send(replies, 2), "");
  EXPECT_TRUE(replies.holds());
  EXPECT_EQ(send(replies, 3), "INSERTED 1\r\n");
  EXPECT_FALSE(replies.holds());
}

TEST(ReplyQueue, LaterRepliesWaitForThoseBeforeThem) {
  ReplyQueue replies;
  replies.add(5, "a");
  replies.add(0, "b");
  replies.add(3, "c");
  replies.add(7, "d");
  replies.add(0, "e");
  EXPECT_EQ(send(replies, 4), "");
  EXPECT_EQ(send(replies, 5), "abc");
  EXPECT_EQ(send(replies, 6), "");
  EXPECT_EQ(send(replies, 9), "de");
}

TEST(ReplyQueue, APartlySentReplyGoesOnWhereItStopped) {
  ReplyQueue replies;
  replies.add(0, "hello");
  replies.add(1, "world");
  EXPECT_EQ(replies.sendable(0), "hello");
  replies.sent(2);
  EXPECT_EQ(replies.sendable(0), "llo");
  EXPECT_EQ(replies.sendable(1), "lloworld");
  replies.sent(4);
  EXPECT_EQ(replies.bytes(), 4u);
  EXPECT_EQ(send(replies, 1), "orld");
}

TEST(ReplyQueue, AFailedSyncReplacesEachHeldReplyAndNoOther) {
  ReplyQueue replies;
  replies.add(1, "one.");
  replies.add(2, "two.");
  replies.add(2, "three.");
  replies.add(4, "four.");
  replies.add(0, "five.");
  EXPECT_EQ(replies.sendable(1), "one.");
  replies.sent(2);
  replies.replace_held("ERROR.");
  EXPECT_EQ(send(replies, 1), "e.ERROR.ERROR.ERROR.ERROR.");
  EXPECT_FALSE(replies.holds());
}

TEST(ReplyQueue, ClearForgetsAllAndGoesOn) {
  ReplyQueue replies;
  replies.add(0, "a");
  replies.add(9, "b");
  replies.clear();
  EXPECT_TRUE(replies.empty());
  EXPECT_FALSE(replies.holds());
  replies.add(2, "c");
  EXPECT_EQ(send(replies, 1), "");
  EXPECT_EQ(send(replies, 2), "c");
}

// A list is read in several turns: each part waits for an append behind its reading.
TEST(ReplyQueue, EachPartOfAReplyWaitsForTheBarrierAsOfThen) {
  queue::MemoryStore store;
  queue::Engine engine(store, {}, {});
  Barrier barrier(engine);
  ReplyQueue replies(&barrier);
  replies.add(0, "head");
  EXPECT_EQ(send(replies, 0), "");
  engine.append_barrier();
  EXPECT_EQ(send(replies, 1), "head");
  replies.add_to_last(" tail");
  EXPECT_EQ(send(replies, 1), "");
  engine.append_barrier();
  EXPECT_EQ(send(replies, 2), " tail");
  replies.add(0, "a");
  replies.add_to_last("b");
  replies.replace_held("ERROR");
  EXPECT_EQ(send(replies, 2), "ERROR") << "two parts are one reply";
}

TEST(ReplyQueue, ABacklogOfMegabytesLeavesInOrderWhateverTheSteps) {
  ReplyQueue replies;
  std::string expected;
  std::string got;
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    const std::string body(i % 97, static_cast<char>('a' + i % 26));
    replies.add(i, i, " ", body, "\r\n");
    expected += std::to_string(i) + " " + body + "\r\n";
    if (i % 3 != 0) continue;
    const std::string_view ready = replies.sendable(i - 1);
    const std::size_t some =
        ready.size() * (i % 5) / 4 > ready.size() ? ready.size() : ready.size() * (i % 5) / 4;
    got.append(ready.substr(0, some));
    replies.sent(some);
  }
  got += send(replies, 20'000);
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace carillon::server::beanstalk
