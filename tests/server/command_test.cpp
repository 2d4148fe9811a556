// The parser of beanstalk command lines, with its corner cases.

#include "server/beanstalk/command.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace carillon::server::beanstalk {
namespace {

using namespace std::string_view_literals;

Command parse(std::string_view line) {
  return parse_command(line);
}

void expect_bad(std::string_view line) {
  EXPECT_EQ(parse(line).form, Form::kBad) << '"' << line << '"';
}

void expect_good(std::string_view line, Verb verb) {
  EXPECT_EQ(parse(line).verb, verb) << '"' << line << '"';
  EXPECT_EQ(parse(line).form, Form::kGood) << '"' << line << '"';
}

void expect_unknown(std::string_view line) {
  expect_good(line, Verb::kUnknown);
}

TEST(Command, PutHasPriorityDelayTtrAndSize) {
  const Command c = parse("put 1024 10 60 5");
  EXPECT_EQ(c.verb, Verb::kPut);
  EXPECT_EQ(c.form, Form::kGood);
  EXPECT_EQ(c.priority, 1024u);
  EXPECT_EQ(c.delay, 10'000u);
  EXPECT_EQ(c.ttr, 60'000u);
  EXPECT_EQ(c.bytes, 5u);
}

TEST(Command, PutTakesTheWholeRangeOfU32) {
  const Command c = parse("put 4294967295 4294967295 4294967295 4294967295");
  EXPECT_EQ(c.form, Form::kGood);
  EXPECT_EQ(c.priority, 4294967295u);
  EXPECT_EQ(c.delay, 4294967295'000u);
  EXPECT_EQ(c.ttr, 4294967295'000u);
  EXPECT_EQ(c.bytes, 4294967295u);
  expect_bad("put 4294967296 0 60 5");
  expect_bad("put 0 4294967296 60 5");
  expect_bad("put 0 0 4294967296 5");
  expect_bad("put 0 0 60 4294967296");
}

TEST(Command, APutWithoutAllNumbersIsBad) {
  expect_bad("put ");
  expect_bad("put 0");
  expect_bad("put 0 0");
  expect_bad("put 0 0 60");
  expect_bad("put 0 0 60 ");
}

TEST(Command, APutWithTrailingBytesIsBadButCountedAndItsSizeIsKnown) {
  for (const auto line : {"put 0 0 60 70000 "sv, "put 0 0 60 70000x"sv, "put 0 0 60 70000 1"sv}) {
    const Command c = parse(line);
    EXPECT_EQ(c.verb, Verb::kPut);
    EXPECT_EQ(c.form, Form::kCountedBad) << line;
    EXPECT_EQ(c.bytes, 70'000u);
  }
}

TEST(Command, PutMsTakesMilliseconds) {
  const Command c = parse("put-ms 7 1500 2500 0");
  EXPECT_EQ(c.verb, Verb::kPutMs);
  EXPECT_EQ(c.priority, 7u);
  EXPECT_EQ(c.delay, 1'500u);
  EXPECT_EQ(c.ttr, 2'500u);
  EXPECT_EQ(c.bytes, 0u);
  EXPECT_EQ(parse("put-ms 0 18446744073709551615 18446744073709551615 1").delay,
            18446744073709551615u);
  expect_bad("put-ms 0 18446744073709551616 0 1");
  expect_bad("put-ms 0 0 18446744073709551616 1");
  EXPECT_EQ(parse("put-ms 0 0 0 1 x").form, Form::kCountedBad);
}

TEST(Command, PutAtTakesAMomentInUtcMilliseconds) {
  const Command c = parse("put-at 7 253402300799999 60000 3");
  EXPECT_EQ(c.verb, Verb::kPutAt);
  EXPECT_EQ(c.due_at, 253402300799999u);
  EXPECT_EQ(c.delay, 0u);
  EXPECT_EQ(c.ttr, 60'000u);
  expect_bad("put-at 0 -1 0 1");
}

TEST(Command, OnlySpacesBeforeNumbersAreSkipped) {
  EXPECT_EQ(parse("delete    7").id, 7u);
  EXPECT_EQ(parse("put   1  2   3    4").bytes, 4u);
  expect_bad("delete \t7");
  expect_bad("put 0\t0 60 1");
  expect_bad("put 0,0 60 1");
}

TEST(Command, IdsMayUseTheWholeRangeOfU64) {
  EXPECT_EQ(parse("delete 18446744073709551615").id, 18446744073709551615u);
  EXPECT_EQ(parse("delete 00000000000000000000000000000007").id, 7u);
  expect_bad("delete 18446744073709551616");
  expect_bad("delete 99999999999999999999999999999999");
}

TEST(Command, CommandsOfOneIdAllowNoOtherArgument) {
  const struct {
    std::string prefix;
    Verb verb;
  } kAll[] = {{"peek ", Verb::kPeek},     {"reserve-job ", Verb::kReserveJob},
              {"delete ", Verb::kDelete}, {"kick-job ", Verb::kKickJob},
              {"touch ", Verb::kTouch},   {"stats-job ", Verb::kStatsJob}};
  for (const auto& [prefix, verb] : kAll) {
    expect_good(prefix + "1", verb);
    for (const char* bad : {"", " ", "1foo", "1 ", "1 2", "x", "-1", "+1", "1.5", "0x1"})
      expect_bad(prefix + bad);
  }
}

TEST(Command, ReleaseHasIdPriorityAndDelay) {
  const Command c = parse("release 9 5 30");
  EXPECT_EQ(c.verb, Verb::kRelease);
  EXPECT_EQ(c.id, 9u);
  EXPECT_EQ(c.priority, 5u);
  EXPECT_EQ(c.delay, 30'000u);
  expect_bad("release 9 5");
  expect_bad("release 9 5 30 ");
  expect_bad("release 9 4294967296 30");
  EXPECT_EQ(parse("release-ms 9 5 1250").delay, 1'250u);
  EXPECT_EQ(parse("release-ms 9 5 1250").verb, Verb::kReleaseMs);
  expect_bad("release-ms 9 5 1250x");
}

TEST(Command, BuryHasIdAndPriority) {
  EXPECT_EQ(parse("bury 9 5").priority, 5u);
  expect_bad("bury 9");
  expect_bad("bury 9 5 1");
}

TEST(Command, ReserveWithTimeoutTakesSecondsAndIgnoresTrailingBytes) {
  EXPECT_EQ(parse("reserve-with-timeout 2").timeout, 2'000u);
  EXPECT_EQ(parse("reserve-with-timeout 2147483647").timeout, 2147483647'000u);
  EXPECT_EQ(parse("reserve-with-timeout 2foo").timeout, 2'000u);
  EXPECT_EQ(parse("reserve-with-timeout 2foo").form, Form::kGood);
  expect_bad("reserve-with-timeout 2147483648");
  expect_bad("reserve-with-timeout -1");
  expect_bad("reserve-with-timeout ");
  expect_bad("reserve-with-timeout");
}

TEST(Command, ReserveWithTimeoutMs) {
  EXPECT_EQ(parse("reserve-with-timeout-ms 250").verb, Verb::kReserveWithTimeoutMs);
  EXPECT_EQ(parse("reserve-with-timeout-ms 250").timeout, 250u);
  EXPECT_EQ(parse("reserve-with-timeout-ms 2147483647000").timeout, 2147483647'000u);
  expect_bad("reserve-with-timeout-ms 2147483647001");
  expect_bad("reserve-with-timeout-ms 250foo");
}

TEST(Command, KickReadsItsBoundAsStrtoulDoes) {
  EXPECT_EQ(parse("kick 10").bound, 10u);
  EXPECT_EQ(parse("kick \t10").bound, 10u);
  EXPECT_EQ(parse("kick +10").bound, 10u);
  EXPECT_EQ(parse("kick 10foo").bound, 10u);
  EXPECT_EQ(parse("kick -1").bound, 4294967295u);
  EXPECT_EQ(parse("kick 4294967297").bound, 1u);
  EXPECT_EQ(parse("kick 18446744073709551615").bound, 4294967295u);
  for (const char* bad : {"kick ", "kick x", "kick - 1", "kick +-1", "kick 18446744073709551616"})
    expect_bad(bad);
}

TEST(Command, CommandsWithoutArgumentsAllowNoTrailingBytes) {
  const struct {
    std::string line;
    Verb verb;
  } kAll[] = {{"peek-ready", Verb::kPeekReady},
              {"peek-delayed", Verb::kPeekDelayed},
              {"peek-buried", Verb::kPeekBuried},
              {"reserve", Verb::kReserve},
              {"stats", Verb::kStats},
              {"list-tubes", Verb::kListTubes},
              {"list-tube-used", Verb::kListTubeUsed},
              {"list-tubes-watched", Verb::kListTubesWatched}};
  for (const auto& [line, verb] : kAll) {
    expect_good(line, verb);
    expect_bad(line + "x");
    expect_bad(line + " ");
    expect_bad(line + " 1");
  }
}

TEST(Command, TheFirstPrefixWins) {
  expect_bad("peek-readyx");
  expect_bad("statsx");
  expect_bad("stats-job");  // a malformed stats
  expect_bad("stats-tube");
  expect_bad("reserve-job");  // a malformed reserve
  expect_bad("list-tubes-");
  expect_good("quitfoo", Verb::kQuit);
  expect_good("quit now", Verb::kQuit);
}

TEST(Command, ALineWithoutAKnownPrefixIsUnknown) {
  for (const auto line :
       {""sv, " "sv, "x"sv, "peek"sv, "put"sv, "PUT 0 0 1 1"sv, " stats"sv, "delete"sv, "use"sv,
        "list-tube"sv, "kick-jobs 1"sv, "qui"sv, "pause"sv, "put-msx"sv, "check"sv}) {
    expect_unknown(line);
  }
}

TEST(Command, ANulIsBadWhateverTheCommand) {
  for (const auto line : {"\0"sv, "quit\0"sv, "delete 1\0"sv, "\0stats"sv, "put 0 0 60 1\0"sv})
    expect_bad(line);
}

TEST(Command, TubeNamesHave1To200OfTheAllowedBytes) {
  const std::string longest(200, 't');
  for (const std::string prefix : {"use ", "watch ", "ignore ", "stats-tube "}) {
    EXPECT_EQ(parse(prefix + "a").tube, "a");
    EXPECT_EQ(parse(prefix + longest).tube, longest);
    EXPECT_EQ(parse(prefix + "Az09-+/;.$_()").tube, "Az09-+/;.$_()");
    expect_bad(prefix + longest + "t");
    for (const char* bad : {"", "-a", " a", "a ", "a b", "a:b", "a,b", "a@b", "\xc3\xa9", "a\n"})
      expect_bad(prefix + bad);
  }
}

TEST(Command, PauseTubeSkipsSpacesAroundTheName) {
  const Command c = parse("pause-tube  a  3");
  EXPECT_EQ(c.verb, Verb::kPauseTube);
  EXPECT_EQ(c.tube, "a");
  EXPECT_EQ(c.delay, 3'000u);
  EXPECT_EQ(parse("pause-tubeab 3").tube, "ab");
  expect_bad("pause-tube");
  expect_bad("pause-tube a");
  expect_bad("pause-tube a1");
  expect_bad("pause-tube a 3 ");
  expect_bad("pause-tube a 4294967296");
  expect_bad("pause-tube a@ 3");
}

TEST(Command, PauseTubeOfAnImpossibleNameIsCounted) {
  EXPECT_EQ(parse("pause-tube -a 3").form, Form::kCountedBad);
  EXPECT_EQ(parse("pause-tube " + std::string(201, 't') + " 3").form, Form::kCountedBad);
  EXPECT_EQ(parse("pause-tube " + std::string(200, 't') + " 3").form, Form::kGood);
}

}  // namespace
}  // namespace carillon::server::beanstalk
