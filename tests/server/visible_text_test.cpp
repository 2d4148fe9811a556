// What clients have named can neither forge a line of the log nor command a terminal.
#include "server/visible_text.h"

#include <gtest/gtest.h>

namespace carillon::server {
namespace {

TEST(VisibleText, StaysOneLine) {
  EXPECT_EQ(visible("closed tube \u00FCber"), "closed tube \u00FCber");
  EXPECT_EQ(visible("a\n2026-11-25 error all is lost"), "a\\x0A2026-11-25 error all is lost");
}

TEST(VisibleText, HasNoControlCharacters) {
  EXPECT_EQ(visible("\x1B[2J\r\t"), "\\x1B[2J\\x0D\\x09");
  EXPECT_EQ(visible("\x7F\u0080\u009B2J\u009F\u00A0"), "\\u007F\\u0080\\u009B2J\\u009F\u00A0");
}

TEST(VisibleText, HasNoBidiControls) {
  EXPECT_EQ(visible("\u061C\u200E\u200F\u202A\u202E\u2066\u2069"),
            "\\u061C\\u200E\\u200F\\u202A\\u202E\\u2066\\u2069");
  EXPECT_EQ(visible("\u061B\u200D\u2010\u2029\u202F\u2065\u206A\U0001F600"),
            "\u061B\u200D\u2010\u2029\u202F\u2065\u206A\U0001F600");
}

TEST(VisibleText, HasNoBytesThatAreNotUtf8) {
  EXPECT_EQ(visible("\x9B\xC2"), "\\x9B\\xC2");
  EXPECT_EQ(visible("\xE2\x80"), "\\xE2\\x80");
}

TEST(VisibleText, KeepsWhatLinesAreMadeOf) {
  EXPECT_EQ(visible("a\tb\nc\r", kLineFormat), "a\tb\nc\\x0D");
}

// In JSON the escapes mean what they stand for.
TEST(VisibleText, OfJsonMeansTheSame) {
  EXPECT_EQ(visible("{\"key\":\"\u009B\u202E\x7F\"}\n", kLineFormat),
            "{\"key\":\"\\u009B\\u202E\\u007F\"}\n");
}

}  // namespace
}  // namespace carillon::server
