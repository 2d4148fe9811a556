// The parts of the server end the process when they are used against their contracts, and say how.
#include <gtest/gtest.h>

#include <string>

#include "server/net/fair_queue.h"
#include "server/net/reply_queue.h"
#include "server/text/json_text.h"

namespace carillon::server {
namespace {

TEST(ServerPreconditionsDeathTest, AQuantumIsMoreThanNothing) {
  EXPECT_DEATH(FairQueue(0, 1), "FairQueue\\(\\) requires: .*; quantum = 0, round = 1");
}

TEST(ServerPreconditionsDeathTest, NoMoreIsSentThanThereIs) {
  ReplyQueue replies;
  replies.add(0, "ready\r\n");
  EXPECT_DEATH(replies.sent(8), "sent\\(\\) requires: .*; bytes = 8, head_ = 0, ");
  EXPECT_DEATH(static_cast<void>(replies.waits_for()), "waits_for\\(\\) requires: holds\\(\\)");
}

TEST(ServerPreconditionsDeathTest, ACharacterIsOneOfUnicode) {
  std::string text;
  EXPECT_DEATH(append_utf8(text, 0x110000), "append_utf8\\(\\) requires: .*; code = 1114112");
}

TEST(ServerPreconditionsDeathTest, NoBytesHaveNoFirstCharacter) {
  EXPECT_DEATH(static_cast<void>(first_character("")), "utf8_sequence\\(\\) requires: ");
}

}  // namespace
}  // namespace carillon::server
