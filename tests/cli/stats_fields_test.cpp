// Tests of the server's statistics: parsing, and printing as a table and as JSON.

#include "cli/stats_fields.h"

#include <gtest/gtest.h>

#include <vector>

#include "cli/exit_status.h"

namespace carillon::cli {
namespace {

TEST(StatsFields, ReadsNamesAndValuesInOrder) {
  const StatsFields stats = parse_stats("---\nid: 7\ntube: \"mail\"\nrusage-utime: 0.148125\n");
  const std::vector<StatsField> expected{
      {.name = "id", .value = "7", .quoted = false},
      {.name = "tube", .value = "mail", .quoted = true},
      {.name = "rusage-utime", .value = "0.148125", .quoted = false},
  };
  EXPECT_EQ(std::vector<StatsField>(stats.begin(), stats.end()), expected);
}

TEST(StatsFields, ValuesMayBeEmptyOrHoldColons) {
  const StatsFields stats =
      parse_stats("---\nhostname: \nos: #1 SMP: 2024 10:00:00\nplatform: \"\"\n");
  EXPECT_EQ(stats.text("hostname"), "");
  EXPECT_EQ(stats.text("os"), "#1 SMP: 2024 10:00:00");
  EXPECT_EQ(stats.text("platform"), "");
}

TEST(StatsFields, LooksUpByName) {
  const StatsFields stats = parse_stats("---\nttr: 60\nstate: ready\nid: 18446744073709551615\n");
  EXPECT_EQ(stats.number("ttr"), 60U);
  EXPECT_EQ(stats.number("id"), 18'446'744'073'709'551'615U);
  EXPECT_EQ(stats.text("state"), "ready");
  EXPECT_THROW(stats.text("tube"), Failure);
  EXPECT_THROW(stats.number("state"), Failure);
}

TEST(StatsFields, AMalformedLineIsQuoted) {
  try {
    parse_stats("---\nid: 7\n- default\n");
    FAIL() << "no error";
  } catch (const Failure& error) {
    EXPECT_STREQ(
        error.what(),
        "the server sent statistics with a line that is not \"name: value\": \"- default\"");
  }
}

TEST(StatsFields, UndoesTheEscapesOfQuotes) {
  const StatsFields stats = parse_stats("---\nkey: \"\\\"\\\\\\x9b\\u2028\\q\\x9\"\n");
  EXPECT_EQ(stats.text("key"), "\"\\\u009B\u2028qx9");
}

TEST(StatsFields, ATableCommandsNoTerminal) {
  EXPECT_EQ(to_table(parse_stats("---\nkey: \"\\x1b[2J\\x0a\\x9b\"\n")),
            "key  \\x1B[2J\\x0A\\u009B\n");
}

TEST(StatsFields, TheTableAlignsItsValues) {
  EXPECT_EQ(to_table(parse_stats("---\nid: 7\ncurrent-jobs-ready: 12\ntube: \"mail\"\n")),
            "id                  7\n"
            "current-jobs-ready  12\n"
            "tube                mail\n");
  EXPECT_EQ(to_table(parse_stats("---\n")), "");
}

TEST(StatsFields, JsonHasNumbersAsNumbers) {
  EXPECT_EQ(to_json(parse_stats("---\nid: 7\ntube: mail\nstate: ready\npri: 65536\n")),
            "{\"id\":7,\"tube\":\"mail\",\"state\":\"ready\",\"pri\":65536}\n");
}

TEST(StatsFields, JsonOfTheServer) {
  EXPECT_EQ(to_json(parse_stats(
                "---\ncmd-put: 18446744073709551615\nversion: \"1.12\"\nrusage-utime: 0.5\n"
                "draining: false\nid: 1234567890123456\nhostname: 10\nplatform: x86_64\n")),
            "{\"cmd-put\":18446744073709551615,\"version\":\"1.12\",\"rusage-utime\":0.5,"
            "\"draining\":false,\"id\":\"1234567890123456\",\"hostname\":\"10\","
            "\"platform\":\"x86_64\"}\n");
}

TEST(StatsFields, ATubeNamedLikeANumberIsText) {
  EXPECT_EQ(to_json(parse_stats("---\nname: 7\ntotal-jobs: 7\n")),
            "{\"name\":\"7\",\"total-jobs\":7}\n");
  EXPECT_EQ(to_json(parse_stats("---\nname: \"true\"\n")), "{\"name\":\"true\"}\n");
}

TEST(StatsFields, ValuesThatAreNotJsonNumbersAreText) {
  EXPECT_EQ(to_json(parse_stats("---\nuptime: inf\nage: nan\npause: -\n")),
            "{\"uptime\":\"inf\",\"age\":\"nan\",\"pause\":\"-\"}\n");
}

}  // namespace
}  // namespace carillon::cli
