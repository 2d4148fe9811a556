// Lines and bodies out of bytes.
#include "server/beanstalk/command_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "carillon/queue/store.h"

namespace carillon::server::beanstalk {
namespace {

using Event = CommandReader::Event;

TEST(CommandReader, ABodyThatComesInPartsIsPutTogether) {
  CommandReader reader;
  CommandReader::Read read = reader.read("put 0 0 60 5\r\nhel");
  EXPECT_EQ(read.event, Event::kLine);
  EXPECT_EQ(read.used, 14u);
  EXPECT_EQ(read.text, "put 0 0 60 5");
  reader.expect_body(5);
  read = reader.read("hel");
  EXPECT_EQ(read.event, Event::kNothing);
  EXPECT_EQ(read.used, 3u);
  read = reader.read("lo\r\nreserve\r\n");
  EXPECT_EQ(read.event, Event::kBody);
  EXPECT_EQ(read.used, 4u);
  EXPECT_EQ(read.text, "hello\r\n");
  reader.forget_body();
  EXPECT_EQ(reader.read("reserve\r\n").text, "reserve");
}

TEST(CommandReader, ALargeBodyComesInPieces) {
  CommandReader reader;
  constexpr std::uint32_t kBytes = queue::kBodyPiece + 3;
  const std::string bytes = std::string(kBytes, 'x') + "\r\n";
  reader.expect_pieces(kBytes);
  CommandReader::Read read = reader.read(bytes);
  EXPECT_EQ(read.event, Event::kPiece);
  EXPECT_EQ(read.text.size(), queue::kBodyPiece);
  EXPECT_EQ(reader.left(), 3u);
  const std::string rest = bytes.substr(read.used);
  read = reader.read(rest);
  EXPECT_EQ(read.event, Event::kPiece);
  EXPECT_EQ(read.text, "xxx");
  read = reader.read("\r");
  EXPECT_EQ(read.event, Event::kNothing);
  EXPECT_TRUE(reader.awaits_pieces());
  read = reader.read("\n");
  EXPECT_EQ(read.event, Event::kLastEnd);
  EXPECT_EQ(read.text, "\r\n");
  EXPECT_TRUE(reader.awaits_line());
}

TEST(CommandReader, SaysWhetherADiscardedBodyEndedWell) {
  CommandReader reader;
  reader.discard(4);
  EXPECT_EQ(reader.read("nope\r").event, Event::kNothing);
  EXPECT_EQ(reader.read("\n").event, Event::kDiscarded);
  EXPECT_TRUE(reader.ended_well());
  reader.discard(4);
  EXPECT_EQ(reader.read("longer").event, Event::kDiscarded);
  EXPECT_FALSE(reader.ended_well());
}

TEST(CommandReader, ALineThatIsTooLongIsKnownByItsVerb) {
  CommandReader reader;
  const std::string line = "put-job 5 key=" + std::string(kMaxLongLine, 'k') + "\r\n";
  CommandReader::Read read = reader.read(line);
  EXPECT_EQ(read.event, Event::kNothing);
  read = reader.read(line.substr(read.used));
  EXPECT_EQ(read.event, Event::kLongLine);
  EXPECT_EQ(reader.refused().verb, Verb::kPutJob);
  EXPECT_EQ(reader.refused().bytes, 5u);
}

}  // namespace
}  // namespace carillon::server::beanstalk
