// Tests of the argument parsers, and of options and positionals that use them.

#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace carillon::cli {
namespace {

// Returns the message of the exception that `parse(text)` throws.
template <class Parse>
std::string error_of(Parse parse, const std::string& text) {
  try {
    parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Arguments, JobIds) {
  EXPECT_EQ(parse_job_id("1"), 1U);
  EXPECT_EQ(parse_job_id("18446744073709551615"), 18'446'744'073'709'551'615U);
  for (const std::string text :
       {"", "0", "-1", "+1", "7 ", " 7", "7x", "18446744073709551616", "seven"}) {
    EXPECT_EQ(error_of(parse_job_id, text), "\"" + text + "\": not a job's id, a number from 1 up");
  }
}

TEST(Arguments, Priorities) {
  EXPECT_EQ(parse_priority("0"), 0U);
  EXPECT_EQ(parse_priority("4294967295"), 4'294'967'295U);
  EXPECT_EQ(error_of(parse_priority, "4294967296"),
            "\"4294967296\": not a number from 0 to 4294967295");
  EXPECT_EQ(error_of(parse_priority, "high"), "\"high\": not a number from 0 to 4294967295");
}

TEST(Arguments, TubeNames) {
  EXPECT_EQ(parse_tube("default"), "default");
  EXPECT_EQ(parse_tube("aZ09-+/;.$_()"), "aZ09-+/;.$_()");
  EXPECT_EQ(parse_tube(std::string(200, 't')).size(), 200U);
  EXPECT_EQ(error_of(parse_tube, std::string(201, 't')),
            "\"tttttttttttttttttttt...\": the name has 201 bytes; the limit is 200");
  EXPECT_EQ(error_of(parse_tube, ""), "\"\": a tube's name has 1 to 200 bytes");
  EXPECT_EQ(error_of(parse_tube, "-mail"), "\"-mail\": a tube's name does not start with -");
  EXPECT_EQ(error_of(parse_name, "-mail"), "\"-mail\": a name does not start with -");
  EXPECT_EQ(error_of(parse_tube, "a b"),
            "\"a b\": a tube's name is made of letters, digits and - + / ; . $ _ ( )");
  EXPECT_EQ(error_of(parse_tube, "a\r\ndelete 1"),
            "\"a\r\ndelete 1\": a tube's name is made of letters, digits and - + / ; . $ _ ( )");
}

class ArgumentsOfACommand : public testing::Test {
 protected:
  void SetUp() override { ::unsetenv("CARILLON_SERVER"); }
  void TearDown() override { ::unsetenv("CARILLON_SERVER"); }

  void parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    app.parse(words);
  }
  std::string usage_error(std::vector<std::string> words) {
    try {
      parse(std::move(words));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }

  CLI::App app;
};

TEST_F(ArgumentsOfACommand, AValueIsSetAndAWrongOneIsQuoted) {
  std::optional<std::uint32_t> priority;
  add_value(app, "--pri", priority, parse_priority, "");
  parse({});
  EXPECT_FALSE(priority);
  parse({"--pri", "7"});
  EXPECT_EQ(priority, 7U);
  parse({"--pri=8"});
  EXPECT_EQ(priority, 8U);
  EXPECT_EQ(usage_error({"--pri", "-1"}), "--pri \"-1\": not a number from 0 to 4294967295");
}

TEST_F(ArgumentsOfACommand, AVectorTakesOneValuePerOption) {
  std::vector<std::string> tubes;
  std::string body;
  add_value(app, "--tube", tubes, parse_tube, "");
  add_value(
      app, "BODY", body, [](const std::string& text) { return text; }, "");
  parse({"--tube", "a", "--tube", "b", "c"});
  EXPECT_EQ(tubes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(body, "c");
}

TEST_F(ArgumentsOfACommand, AVectorOfPositionalsTakesAll) {
  std::vector<std::uint64_t> ids;
  add_value(app, "ID", ids, parse_job_id, "");
  parse({"3", "1", "2"});
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{3, 1, 2}));
  EXPECT_EQ(usage_error({"3", "x"}), "ID \"x\": not a job's id, a number from 1 up");
}

TEST_F(ArgumentsOfACommand, ServerHasADefault) {
  ServerAddress address;
  add_server_option(app, address);
  parse({});
  EXPECT_EQ(to_string(address), "127.0.0.1:11300");
}

TEST_F(ArgumentsOfACommand, ServerComesFromTheEnvironment) {
  ::setenv("CARILLON_SERVER", "unix:/run/c.sock", 1);
  ServerAddress address;
  add_server_option(app, address);
  parse({});
  EXPECT_EQ(to_string(address), "unix:/run/c.sock");
}

TEST_F(ArgumentsOfACommand, TheOptionWinsOverTheEnvironment) {
  ::setenv("CARILLON_SERVER", "unix:/run/c.sock", 1);
  ServerAddress address;
  add_server_option(app, address);
  parse({"--server", "[::1]:4444"});
  EXPECT_EQ(to_string(address), "[::1]:4444");
}

TEST_F(ArgumentsOfACommand, AWrongServerNamesTheOptionOrTheVariable) {
  ServerAddress address;
  add_server_option(app, address);
  EXPECT_EQ(usage_error({"--server", "a:b"}).substr(0, 16), "--server \"a:b\": ");
  ::setenv("CARILLON_SERVER", "c:d", 1);
  EXPECT_EQ(usage_error({}).substr(0, 23), "CARILLON_SERVER \"c:d\": ");
  EXPECT_EQ(usage_error({"--server", "a:b"}).substr(0, 16), "--server \"a:b\": ");
}

}  // namespace
}  // namespace carillon::cli
