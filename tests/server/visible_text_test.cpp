// What clients have named can neither forge a line of the log nor command a terminal.
#include "server/text/visible_text.h"

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
  EXPECT_EQ(visible("\u061B\u061D\u2010\u2027\u202F\u205F\u2070"),
            "\u061B\u061D\u2010\u2027\u202F\u205F\u2070");
}

// Two keys that differ only in these would look alike.
TEST(VisibleText, HasNoInvisibleCharacters) {
  EXPECT_EQ(visible("pay\u00ADpal\u200B\u200C\u200D\u2060\u2065\u206F\uFEFF"),
            "pay\\u00ADpal\\u200B\\u200C\\u200D\\u2060\\u2065\\u206F\\uFEFF");
  EXPECT_EQ(visible("\u034F\u115F\u17B4\u180E\u3164\uFFA0\uFFF8"),
            "\\u034F\\u115F\\u17B4\\u180E\\u3164\\uFFA0\\uFFF8");
  EXPECT_EQ(visible("a\u2028b\u2029c"), "a\\u2028b\\u2029c");
  EXPECT_EQ(visible("\u0645\u06CC\u200C\u062E"), "\u0645\u06CC\\u200C\u062E");
  EXPECT_EQ(visible("\U0001F468\u200D\U0001F469"), "\U0001F468\\u200D\U0001F469");
}

TEST(VisibleText, HasEveryCharacterThatIsSeen) {
  for (const char* const text :
       {"\u00AC\u00AE", "\u4E2D\u6587", "\uD55C\uAD6D", "\u0646\u0645", "\uFEFE\uFF01\uFFF9\uFFFD",
        "\u26A0\uFE0F", "\U0001F600", "\U0001BCA4\U0001D172\U0001D17B\U000E1000"})
    EXPECT_EQ(visible(text), text);
}

TEST(VisibleText, HasNoBytesThatAreNotUtf8) {
  EXPECT_EQ(visible("\x9B\xC2"), "\\x9B\\xC2");
  EXPECT_EQ(visible("\xE2\x80"), "\\xE2\\x80");
}

TEST(VisibleText, KeepsWhatLinesAreMadeOf) {
  EXPECT_EQ(visible("a\tb\nc\r", kLineFormat), "a\tb\nc\\x0D");
}

// In JSON the escapes mean what they stand for.
TEST(VisibleText, EscapedJsonMeansTheSame) {
  EXPECT_EQ(visible("{\"key\":\"\u009B\u202E\x7F\"}\n", kLineFormat),
            "{\"key\":\"\\u009B\\u202E\\u007F\"}\n");
  EXPECT_EQ(visible("{\"key\":\"\U0001D173\U000E0041\"}"),
            "{\"key\":\"\\uD834\\uDD73\\uDB40\\uDC41\"}");
}

}  // namespace
}  // namespace carillon::server
