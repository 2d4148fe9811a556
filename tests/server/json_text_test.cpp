// Tests of JSON strings, of Base64 and of the UTF-8 check.

#include "server/text/json_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace carillon::server {
namespace {

using namespace std::string_literals;

// RFC 4648, section 10.
TEST(JsonText, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(to_utf8("a\xC3\xA4"), "a\xC3\xA4");
  EXPECT_EQ(to_utf8("a\xC3"), "a\uFFFD");
  EXPECT_EQ(to_utf8("\xFF\xFE"
                    "b"),
            "\uFFFD\uFFFD"
            "b");
}

TEST(JsonText, Base64AsInTheRfc) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foob"), "Zm9vYg==");
  EXPECT_EQ(to_base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(to_base64("\xFB\xEF\xBE\xFF"), "++++/w==");
}

TEST(JsonText, AnyBytesComeBackFromBase64) {
  std::mt19937 random(1);
  for (int i = 0; i < 1'000; ++i) {
    std::string bytes(random() % 50, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ASSERT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

TEST(JsonText, NotBase64) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zh==", "Zm9=",
                                      "Zm9v ", "Zm-v", "Z=9v", "Zg==\n"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

TEST(JsonText, Utf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("hello\0world"s));
  EXPECT_TRUE(is_utf8("\xC2\x80 \xDF\xBF"));                  // U+0080, U+07FF
  EXPECT_TRUE(is_utf8("\xE0\xA0\x80 \xEF\xBF\xBF"));          // U+0800, U+FFFF
  EXPECT_TRUE(is_utf8("\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"));  // U+10000, U+10FFFF
  EXPECT_TRUE(is_utf8("\xED\x9F\xBF \xEE\x80\x80"));          // just below and above the surrogates
}

TEST(JsonText, CharactersComeBackFromUtf8) {
  for (const char32_t code : {U'\x01', U'\x7F', U'\u0080', U'\u07FF', U'\u0800', U'\uD7FF',
                              U'\uE000', U'\uFFFF', U'\U00010000', U'\U0010FFFF'}) {
    std::string text;
    append_utf8(text, code);
    EXPECT_TRUE(is_utf8(text));
    EXPECT_EQ(first_character(text + "a").code, code);
    EXPECT_EQ(first_character(text + "a").size, text.size());
  }
  EXPECT_EQ(first_character("\x80").size, 0U);
}

TEST(JsonText, NotUtf8) {
  EXPECT_FALSE(is_utf8("\x80"));   // a continuation without a start
  EXPECT_FALSE(is_utf8("a\xC3"));  // cut off
  EXPECT_FALSE(is_utf8("\xE2\x82"));
  EXPECT_FALSE(is_utf8("\xE2\x82z"));
  EXPECT_FALSE(is_utf8("\xC0\xAF"));  // longer than needed
  EXPECT_FALSE(is_utf8("\xE0\x9F\xBF"));
  EXPECT_FALSE(is_utf8("\xF0\x8F\xBF\xBF"));
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // a surrogate
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // U+110000
  EXPECT_FALSE(is_utf8("\xF5\x80\x80\x80"));
  EXPECT_FALSE(is_utf8("\xFF"));
}

TEST(JsonText, Fields) {
  std::string text;
  append_json_field(text, "a", "\"\\\n\0\x7f\xC3\xA4"s);
  EXPECT_EQ(text, "\"a\":\"\\\"\\\\\\u000a\\u0000\x7f\xC3\xA4\"");
  text.clear();
  append_json_field(text, "a", "\xFF\x00\x01"s);
  EXPECT_EQ(text, "\"a_base64\":\"/wAB\"");
}

}  // namespace
}  // namespace carillon::server
