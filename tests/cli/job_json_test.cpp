// Tests of jobs as JSON.

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

}  // namespace
}  // namespace carillon::cli
