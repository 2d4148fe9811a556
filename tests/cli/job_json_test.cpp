// Tests of jobs as JSON, of Base64 and of the UTF-8 check.

#include "cli/job_json.h"

#include <gtest/gtest.h>

#include <string>

namespace carillon::cli {
namespace {

using namespace std::string_literals;

TEST(JobJson, Put) {
  EXPECT_EQ(
      put_json(18'446'744'073'709'551'615U, "mail", 1'893'488'400'250),
      "{\"id\":18446744073709551615,\"tube\":\"mail\",\"due\":\"2030-01-01T09:00:00.250Z\"}\n");
}

TEST(JobJson, TextIsInBody) {
  EXPECT_EQ(job_json({.id = 7, .body = "hello"}, "default", ""),
            "{\"id\":7,\"tube\":\"default\",\"body\":\"hello\"}\n");
  EXPECT_EQ(job_json({.id = 7, .body = ""}, "t", "delayed"),
            "{\"id\":7,\"tube\":\"t\",\"state\":\"delayed\",\"body\":\"\"}\n");
  EXPECT_EQ(job_json({.id = 7, .body = "\"a\"\n\0b"s}, "t", ""),
            "{\"id\":7,\"tube\":\"t\",\"body\":\"\\\"a\\\"\\n\\u0000b\"}\n");
}

TEST(JobJson, OtherBytesAreBase64) {
  EXPECT_EQ(job_json({.id = 7, .body = "\xFF\x00\x01"s}, "t", ""),
            "{\"id\":7,\"tube\":\"t\",\"body_base64\":\"/wAB\"}\n");
}

// RFC 4648, section 10.
TEST(JobJson, Base64AsInTheRfc) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foob"), "Zm9vYg==");
  EXPECT_EQ(to_base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(to_base64("\xFB\xEF\xBE\xFF"), "++++/w==");
}

TEST(JobJson, Utf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("hello\0world"s));
  EXPECT_TRUE(is_utf8("\xC2\x80 \xDF\xBF"));                  // U+0080, U+07FF
  EXPECT_TRUE(is_utf8("\xE0\xA0\x80 \xEF\xBF\xBF"));          // U+0800, U+FFFF
  EXPECT_TRUE(is_utf8("\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"));  // U+10000, U+10FFFF
  EXPECT_TRUE(is_utf8("\xED\x9F\xBF \xEE\x80\x80"));          // just below and above the surrogates
}

TEST(JobJson, NotUtf8) {
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

}  // namespace
}  // namespace carillon::cli
