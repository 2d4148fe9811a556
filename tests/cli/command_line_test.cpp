// Tests of command lines that need no server: help, version, and each kind of wrong argument with
// its error line and exit code.

#include "cli/commands.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "server/text/address.h"

namespace carillon::cli {
namespace {

struct Ended {
  int exit_code;
  std::string out;
  std::string err;
};

Ended run_line(std::vector<std::string> words) {
  words.insert(words.begin(), "carillon");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int exit_code = run_command_line(static_cast<int>(words.size()), argv.data());
  return {exit_code, testing::internal::GetCapturedStdout(),
          testing::internal::GetCapturedStderr()};
}

void expect_usage_error(const std::vector<std::string>& words, const std::string& line) {
  const Ended ended = run_line(words);
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.err, line + "\n");
  EXPECT_EQ(ended.out, "");
}

// Returns the length of the longest line in columns. The text must be ASCII.
std::size_t width_of(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    widest = std::max(widest, end - begin);
    begin = end + 1;
  }
  return widest;
}

TEST(CommandLine, WithoutArgumentsItListsEveryCommandWithAnExample) {
  const Ended ended = run_line({});
  EXPECT_EQ(ended.exit_code, 0);
  for (const Command& command : kCommands) {
    EXPECT_NE(ended.out.find("\n  " + std::string(command.name) + " "), std::string::npos)
        << command.name;
    EXPECT_NE(ended.out.find(command.example), std::string::npos) << command.name;
  }
  EXPECT_LE(width_of(ended.out), 80U);
  EXPECT_EQ(run_line({"--help"}).out, ended.out);
  EXPECT_EQ(run_line({"-h"}).out, ended.out);
}

std::string all_commands() {
  std::string all;
  for (const Command& command : kCommands) all.append(all.empty() ? "" : ", ").append(command.name);
  return all;
}

TEST(CommandLine, HelpOfACommand) {
  EXPECT_EQ(run_line({"help", "put"}).out, run_line({"put", "--help"}).out);
  for (const auto& line :
       {std::vector<std::string>{"help", "beanstalkd"}, {"beanstalkd", "--help"}}) {
    const Ended ended = run_line(line);
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_TRUE(ended.out.starts_with("Use: beanstalkd [OPTIONS]")) << ended.out;
    EXPECT_NE(ended.out.find("Example: beanstalkd -b"), std::string::npos) << ended.out;
  }
  expect_usage_error({"help", "putt"},
                     "carillon: there is no command \"putt\"; there are " + all_commands());
}

TEST(CommandLine, Version) {
  const Ended ended = run_line({"--version"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out, "carillon " CARILLON_VERSION "\n");
}

TEST(CommandLine, EveryHelpHasExamplesAndFits80Columns) {
  for (const Command& command : kCommands) {
    if (command.add == nullptr) continue;
    const std::string name(command.name);
    const Ended ended = run_line({name, "--help"});
    EXPECT_EQ(ended.exit_code, 0) << name;
    EXPECT_TRUE(ended.out.starts_with(std::string(command.summary) + ".\nUsage: carillon " + name))
        << ended.out;
    EXPECT_NE(ended.out.find("Examples:\n  "), std::string::npos) << name;
    EXPECT_LE(width_of(ended.out), 80U) << name;
    EXPECT_EQ(ended.err, "") << name;
  }
}

TEST(CommandLine, HelpIsShownAlthoughAValueIsWrong) {
  ::setenv("CARILLON_SERVER", "a:b", 1);
  const Ended with_variable = run_line({"put", "--help"});
  ::unsetenv("CARILLON_SERVER");
  EXPECT_EQ(with_variable.exit_code, 0);
  EXPECT_EQ(with_variable.err, "");
  EXPECT_EQ(with_variable.out, run_line({"put", "--help"}).out);
  EXPECT_EQ(run_line({"put", "--delay", "soon", "-h"}).out, with_variable.out);
}

TEST(CommandLine, HelpOfWorkStatesTheExitCode) {
  const std::string help = run_line({"work", "--help"}).out;
  EXPECT_NE(help.find("Exit when no job is ready, with 0 even if"), std::string::npos) << help;
}

TEST(CommandLine, UnknownCommandsAndOptions) {
  expect_usage_error({"putt"},
                     "carillon: there is no command \"putt\"; there are " + all_commands());
  expect_usage_error(
      {"--server", "x", "put"},
      "carillon: there is no option \"--server\" before the command; see carillon --help");
  expect_usage_error({"put", "--dealy", "3s", "hello"},
                     "carillon put: there is no option \"--dealy\"; see carillon put --help");
  // Not what its value would be without it: `ID "1h": not a job's id`.
  expect_usage_error(
      {"release", "7", "--dely", "1h"},
      "carillon release: there is no option \"--dely\"; see carillon release --help");
  expect_usage_error({"cancel", "--kee", "invoice-7", "--tube", "mail"},
                     "carillon cancel: there is no option \"--kee\"; see carillon cancel --help");
  expect_usage_error(
      {"reserve", "hello"},
      "carillon reserve: unexpected argument \"hello\"; see carillon reserve --help");
  expect_usage_error({"put", "a", "b"},
                     "carillon put: unexpected argument \"b\"; see carillon put --help");
  expect_usage_error({"put", "a", "--", "b"},
                     "carillon put: unexpected argument \"b\"; see carillon put --help");
}

TEST(CommandLine, WrongValues) {
  expect_usage_error(
      {"put", "--delay", "3 parsecs", "x"},
      "carillon put: --delay \"3 parsecs\": not a duration; use e.g. 250ms, 3s, 2h, 40d");
  expect_usage_error({"put", "--delay=-3s", "x"},
                     "carillon put: --delay \"-3s\": not a duration; use e.g. 250ms, 3s, 2h, 40d");
  expect_usage_error(
      {"put", "--ttr", "60", "x"},
      "carillon put: --ttr \"60\": a number without a unit; write 60ms, 60s, 60m, 60h or 60d");
  expect_usage_error({"put", "--ttr", "999ms", "x"},
                     "carillon put: --ttr \"999ms\": the shortest is 1s");
  EXPECT_EQ(run_line({"put", "--ttr", "4294967295s", "--help"}).exit_code, 0);
  for (const char* ttr : {"49711d", "4294967295001ms"}) {
    expect_usage_error(
        {"put", "--ttr", ttr, "x"},
        fmt::format("carillon put: --ttr \"{}\": the longest is 4294967295s (49710 days)", ttr));
  }
  expect_usage_error(
      {"put", "--server", "11301", "x"},
      "carillon put: --server \"11301\": a port needs its host; write 127.0.0.1:11301");
  expect_usage_error({"put", "--at", "2030-01-01T09:00:00", "x"},
                     "carillon put: --at \"2030-01-01T09:00:00\": lacks its offset from UTC; "
                     "append Z for UTC, or e.g. +02:00");
  expect_usage_error({"put", "--pri", "-1", "x"},
                     "carillon put: --pri \"-1\": not a number from 0 to 4294967295");
  expect_usage_error({"put", "--tube", "a b", "x"},
                     "carillon put: --tube \"a b\": a tube's name is made of letters, digits and - "
                     "+ / ; . $ _ ( )");
  expect_usage_error(
      {"reserve", "--timeout", "soon"},
      "carillon reserve: --timeout \"soon\": not a duration; use e.g. 250ms, 3s, 2h, 40d");
  expect_usage_error({"reserve", "--timeout", "2147483647001ms"},
                     "carillon reserve: --timeout \"2147483647001ms\": the longest time-out is "
                     "2147483647s; without one it waits for ever");
  expect_usage_error({"delete", "7", "x"},
                     "carillon delete: ID \"x\": not a job's id, a number from 1 up");
  expect_usage_error({"kick", "0"}, "carillon kick: N 0: not a whole number from 1 to 4294967295");
  expect_usage_error({"kick", "--job", "x"},
                     "carillon kick: --job \"x\": not a job's id, a number from 1 up");
  expect_usage_error({"peek", "x"}, "carillon peek: ID \"x\": not a job's id, a number from 1 up");
  expect_usage_error({"stats", "--job", "0"},
                     "carillon stats: --job \"0\": not a job's id, a number from 1 up");
  expect_usage_error({"work", "--jobs", "0", "--", "true"},
                     "carillon work: --jobs \"0\": not a number from 1 to 1000");
  expect_usage_error({"work", "--backoff", "x", "--", "true"},
                     "carillon work: --backoff \"x\": not a duration; use e.g. 250ms, 3s, 2h, 40d");
}

TEST(CommandLine, WrongValuesOfServe) {
  expect_usage_error({"serve", "--data", ""},
                     "carillon serve: --data \"\": not a directory's name");
  EXPECT_EQ(run_line({"serve", "--load-ahead", "2932896d", "--help"}).exit_code, 0);
  for (const char* load_ahead : {"400000000d", "2932896d1ms"}) {
    expect_usage_error(
        {"serve", "--data", "/proc/none", "--load-ahead", load_ahead},
        fmt::format("carillon serve: --load-ahead \"{}\": the longest is 2932896d", load_ahead));
  }
  for (const char* address : {"127.0.0.1:11399", "localhost", "[::1]:11399", "unix:c.sock"}) {
    expect_usage_error(
        {"serve", "--data", "/proc/none", "--listen", address, "--listen", "127.0.0.1:11398",
         "--listen", address},
        fmt::format("carillon serve: --listen \"{}\" was given twice; once is enough",
                    to_string(server::parse_address(address))));
  }
}

TEST(CommandLine, MissingAndContradictoryArguments) {
  expect_usage_error({"put", "--delay"},
                     "carillon put: --delay lacks its value: write --delay DURATION");
  expect_usage_error({"put", "x", "--pri="}, "carillon put: --pri lacks its value: write --pri N");
  expect_usage_error({"reserve", "--tube", "a", "--tube", "b", "--tube"},
                     "carillon reserve: --tube lacks its value: write --tube TUBE");
  expect_usage_error({"put", "--delay", "1s", "--delay", "2s", "x"},
                     "carillon put: --delay was given 2 times; once is enough");
  expect_usage_error({"put", "--delay", "1s", "--at", "2030-01-01T09:00:00Z", "x"},
                     "carillon put: give --delay or --at, not both");
  expect_usage_error({"put", "--json=maybe", "x"}, "carillon put: --json takes no value");
  expect_usage_error({"delete"}, "carillon delete: give the jobs' IDs, or the --key of one");
  expect_usage_error({"kick", "5", "--job", "7"}, "carillon kick: give N or --job, not both");
  expect_usage_error(
      {"peek"}, "carillon peek: give a job's ID, or one of --key, --ready, --delayed and --buried");
  for (const char* first : {"--ready", "7"}) {
    expect_usage_error(
        {"peek", first, "--buried"},
        "carillon peek: give only one of a job's ID, --key, --ready, --delayed and --buried");
  }
  expect_usage_error({"peek", "7", "--tube", "mail"}, "carillon peek: give ID or --tube, not both");
  expect_usage_error({"stats", "--job", "7", "--tube", "mail"},
                     "carillon stats: give --job or --tube, not both");
}

TEST(CommandLine, WorkNeedsACommandItCanRun) {
  expect_usage_error({"work"},
                     "carillon work: no command to run; write e.g. carillon work -- ./send-mail");
  expect_usage_error({"work", "--"},
                     "carillon work: no command to run; write e.g. carillon work -- ./send-mail");
  expect_usage_error({"work", "--", "no-such-program-anywhere"},
                     "carillon work: cannot run \"no-such-program-anywhere\": no such program, or "
                     "it is not executable");
  expect_usage_error({"work", "--job", "4", "--", "true"},
                     "carillon work: there is no option \"--job\"; see carillon work --help");
  expect_usage_error({"work", "--once", "--jobs", "4", "--", "true"},
                     "carillon work: give --jobs or --once, not both");
}

}  // namespace
}  // namespace carillon::cli
