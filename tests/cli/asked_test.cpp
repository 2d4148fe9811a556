// The arguments that are made from the fields of a request, and what is wrong with them.

#include "cli/asked.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "server/api/bulk.h"
#include "server/api/jobs.h"
#include "server/api/tubes.h"

namespace carillon::cli {
namespace {

// Parses the words as the arguments of a command for such a request.
template <class Request>
class Parsed {
 public:
  Parsed(const AskedOptions& options, std::vector<std::string> words) {
    asked.add_arguments(app, server::kShape<Request>, options);
    std::reverse(words.begin(), words.end());
    app.parse(words);
  }
  Request read() { return asked.template read<Request>(); }

  CLI::App app;
  Asked asked;
};

template <class Action>
std::string usage_error(Action action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

constexpr AskedOptions kPause{.positionals = "tube duration"};
constexpr AskedOptions kMove{.positionals = "tube to", .without = "limit page_token"};

TEST(Asked, FieldsAreArgumentsAndOptions) {
  const auto pause = Parsed<server::PauseTube>(kPause, {"mail", "10m"}).read();
  EXPECT_EQ(pause.tube, "mail");
  EXPECT_EQ(pause.duration->ms, 600'000u);
  EXPECT_FALSE(Parsed<server::PauseTube>(kPause, {"mail"}).read().duration);
}

TEST(Asked, FieldsOfAnObjectWithinAreOptionsOfTheCommand) {
  const auto move = Parsed<server::MoveJobs>(
                        kMove, {"mail", "slow", "--key-prefix", "a-", "--due-after",
                                "2030-01-01T09:00:00Z", "--state", "ready,dead", "--dry-run"})
                        .read();
  EXPECT_EQ(move.filter.tube, "mail");
  EXPECT_EQ(move.to, "slow");
  EXPECT_EQ(move.filter.key_prefix->bytes, "a-");
  EXPECT_EQ(move.filter.due_after->at, 1'893'488'400'000u);
  EXPECT_TRUE(move.filter.state);
  EXPECT_TRUE(move.dry_run);
  Parsed<server::MoveJobs> without(kMove, {"mail", "slow"});
  EXPECT_FALSE(without.asked.has("/filter/state"));
  EXPECT_TRUE(without.asked.has("/filter/tube"));
}

TEST(Asked, EveryWrongValueIsNamedByItsArgument) {
  EXPECT_EQ(usage_error([] {
              Parsed<server::MoveJobs>(kMove, {"a b", "slow", "--group", "c d"}).read();
            }).substr(0, 40),
            "TUBE \"a b\": not the name of a tube: 1 to");
  EXPECT_NE(usage_error([] {
              Parsed<server::MoveJobs>(kMove, {"a b", "slow", "--group", "c d"}).read();
            }).find("; --group \"c d\": "),
            std::string::npos);
  EXPECT_EQ(usage_error([] {
              Parsed<server::KickTube>({.positionals = "max:N"}, {"0", "--tube", "mail"}).read();
            }),
            "N 0: not a whole number from 1 to 4294967295");
  EXPECT_EQ(usage_error([] {
              Parsed<server::PauseTube>(kPause, {"mail", "3 parsecs"}).read();
            }).substr(0, 36),
            "DURATION \"3 parsecs\": not a duration");
}

TEST(Asked, WhatTheServerRefusesIsNamedByItsArgument) {
  Asked asked;
  asked.set("/max", 0, "N");
  const Refusal refusal("no", 400,
                        {{"/max", "0: not a number"}, {"/due_by", "there is no such field"}});
  EXPECT_EQ(usage_error([&] { asked.throw_usage(refusal); }),
            "N 0: not a number; --due-by: there is no such field");
}

TEST(Asked, FieldsInAnErrorAreNamedByTheirArguments) {
  Asked asked;
  asked.set("/job/time_zone", "UTC", "--zone");
  const Refusal refusal("no", 400, {{"/job/gap", "needs `time_zone`, or `key_window`"}});
  EXPECT_EQ(usage_error([&] { asked.throw_usage(refusal); }),
            "--gap needs --zone, or --key-window");
  EXPECT_EQ(replace_fields("`one` and a ` alone", option_named), "--one and a ` alone");
}

TEST(Asked, OptionsMayHaveOtherNamesAndNeverIsNull) {
  Parsed<server::ChangeJob> change(
      {.without = "id", .names = "priority:pri due:at"},
      {"--pri", "7", "--at", "2030-01-01T09:00:00Z", "--expires-at", "never", "--ttr", "1m30s"});
  EXPECT_EQ(boost::json::serialize(change.asked.fields()),
            R"({"priority":7,"due":1893488400000,"ttr":"90000ms","expires_at":null})");
}

TEST(Asked, AFieldOfAFormOfItsOwnIsFoundByWhatIsWithin) {
  Asked asked;
  asked.set("/limits/rate", boost::json::object{{"jobs", 0}, {"per", "1m"}}, "--rate");
  EXPECT_EQ(usage_error([&] { asked.read<server::PatchTube>(); }),
            "--rate 0: not a whole number from 1 to 1000000");
  asked.set("/limits/rate/burst", 3, "--burst");
  EXPECT_EQ(asked.argument_within("/limits"), "--rate");
  EXPECT_EQ(asked.argument_within("/retry"), "");
}

}  // namespace
}  // namespace carillon::cli
