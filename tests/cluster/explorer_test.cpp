#include "cluster/explorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <tuple>

#include "cluster/entries.h"
#include "cluster/rule_names.h"
#include "cluster/scopes.h"

namespace carillon::cluster::explorer {
namespace {

// A sanitizer takes ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kMostClaims = 2;
#else
constexpr unsigned kMostClaims = 3;
#endif

using Case = std::tuple<Scope, Writes>;

class AllOrdersOfEvents : public testing::TestWithParam<Case> {};

TEST_P(AllOrdersOfEvents, KeepWhatIsAcknowledgedAndAcceptAllOnceAndInOrder) {
  const auto& [scope, writes] = GetParam();
  Model model{.writes = writes, .bounds = scope.bounds, .cut = scope.cut};
  model.bounds.claims = std::min(model.bounds.claims, kMostClaims);
  const Found found = explore(model);
  std::printf("%zu worlds, depth %zu, %zu steps, of which %zu beyond the bounds\n", found.worlds,
              found.depth, found.steps, found.beyond);
  EXPECT_EQ(found.fault, "") << found.story;
  EXPECT_TRUE(found.complete);
  EXPECT_GT(found.worlds, 100U);
}

INSTANTIATE_TEST_SUITE_P(Scopes, AllOrdersOfEvents,
                         testing::Combine(testing::ValuesIn(kScopes),
                                          testing::Values(Writes::kConditional,
                                                          Writes::kUnconditional)),
                         [](const testing::TestParamInfo<Case>& one) {
                           return std::get<0>(one.param).name + name_of(std::get<1>(one.param));
                         });

// A rule that is broken, or a log that compares too little, and what it leads to.
struct Mutant {
  const char* name;
  Rule broken;
  Writes writes;
  Scope scope;
  const char* fault;
  LogFault log_fault = LogFault::kNone;
};

constexpr Scope kUnknowns{"Unknown", {.unknown = 1}};
constexpr Scope kRepeats{"Repeat", {.repeats = 1}};
constexpr Scope kBadClock{"BadClock", {.bad_clocks = 1}};
constexpr Scope kCut{"Cut", {.cuts = 1}};
constexpr Scope kSilentCut{"SilentCut", {.cuts = 1}, Cut::kSilent};

constexpr char kNotInTheLog[] = "what was acknowledged is not in the log";
constexpr char kSkipped[] = "a window is skipped";
constexpr char kDoesNotCount[] = "an entry is accepted that does not count";

constexpr Writes kSql = Writes::kConditional;
constexpr Writes kTopic = Writes::kUnconditional;

constexpr Mutant kMutants[] = {
    {"NoCheckOfThePlace", Rule::kPlace, kSql, kCut, kDoesNotCount},
    {"NoCheckOfThePlace", Rule::kPlace, kTopic, kCut, kDoesNotCount},
    {"AMissingClaimIsIgnored", Rule::kEveryClaim, kSql, kSilentCut, kSkipped},
    {"AMissingClaimIsIgnored", Rule::kEveryClaim, kTopic, kSilentCut, kSkipped},
    {"AnOwnerMayBeBehind", Rule::kNotBehind, kTopic, kSilentCut, kSkipped},
    {"AGapIsAccepted", Rule::kNoGap, kSql, kCut, kDoesNotCount},
    {"AGapIsAccepted", Rule::kNoGap, kTopic, kSilentCut,
     "the state after a window is not the state of its writer"},
    {"NoCheckOfTheChain", Rule::kChain, kSql, kCut, kDoesNotCount},
    {"NoCheckOfTheChain", Rule::kChain, kTopic, kCut, kDoesNotCount},
    {"AWindowOfAnotherOwnerIsTaken", Rule::kOwner, kTopic, kSilentCut, kSkipped},
    {"AWindowOfAnEarlierEpochIsTaken", Rule::kEpoch, kTopic, kUnknowns,
     "a node stops, and the log has lost nothing"},
    {"ARepeatIsAccepted", Rule::kRepeat, kTopic, kRepeats, kDoesNotCount},
    {"NoBarrier", Rule::kBarrier, kSql, kUnknowns, kNotInTheLog},
    {"NoBarrier", Rule::kBarrier, kTopic, kUnknowns, kNotInTheLog},
    {"AReplyDoesNotWait", Rule::kCommit, kSql, kUnknowns, kNotInTheLog},
    {"AReplyDoesNotWait", Rule::kCommit, kTopic, kUnknowns, kNotInTheLog},
    {"ADeliveryReportCounts", Rule::kReadBack, kTopic, kUnknowns, kNotInTheLog},
    {"UnknownIsCommitted", Rule::kUnknown, kSql, kUnknowns, kNotInTheLog},
    {"UnknownIsCommitted", Rule::kUnknown, kTopic, kUnknowns, kNotInTheLog},
    {"UnknownIsSentAgain", Rule::kOwnClaim, kSql, kUnknowns, kNotInTheLog},
    {"UnknownIsSentAgain", Rule::kOwnClaim, kTopic, kUnknowns, kNotInTheLog},
    {"AClaimIsATakeOver", Rule::kReadToClaim, kSql, kUnknowns, "an entry is skipped"},
    {"AClaimIsATakeOver", Rule::kReadToClaim, kTopic, kUnknowns, "an entry is skipped"},
    {"ADeposedOwnerKeepsItsEngine", Rule::kDrop, kSql, kUnknowns,
     "the state of a follower has what its log has not"},
    {"ADeposedOwnerKeepsItsEngine", Rule::kDrop, kTopic, kUnknowns,
     "the state of a follower has what its log has not"},
    {"AnOldClaimIsOwnedAgain", Rule::kOwnOnce, kSql, kUnknowns, kNotInTheLog},
    {"AnOldClaimIsOwnedAgain", Rule::kOwnOnce, kTopic, kUnknowns, kNotInTheLog},
    {"ABadClockOwns", Rule::kClock, kSql, kBadClock, "a node whose clock is off owns"},
    {"ABadClockOwns", Rule::kClock, kTopic, kBadClock, "a node whose clock is off owns"},
    {"TheLogComparesTheNumberAlone", Rule::kNone, kSql, kUnknowns, kDoesNotCount,
     LogFault::kNumberAlone},
    {"TheLogComparesNumberAndEpoch", Rule::kNone, kSql, kCut, kDoesNotCount,
     LogFault::kNumberAndEpoch},
    {"TheLogComparesNumberEpochAndOwner", Rule::kNone, kSql, kCut, kDoesNotCount,
     LogFault::kNumberEpochOwner},
};

class EachRuleIsNeeded : public testing::TestWithParam<Mutant> {};

TEST_P(EachRuleIsNeeded, AndWithoutItAnOrderOfEventsDoesHarm) {
  const Mutant& mutant = GetParam();
  Model model{.writes = mutant.writes,
              .bounds = mutant.scope.bounds,
              .cut = mutant.scope.cut,
              .broken = mutant.broken,
              .log_fault = mutant.log_fault};
  const Found found = explore(model);
  std::printf("%s: %zu worlds\n%s\n%s", name_of(mutant.broken).c_str(), found.worlds,
              found.fault.c_str(), found.story.c_str());
  EXPECT_EQ(found.fault, mutant.fault);
}

INSTANTIATE_TEST_SUITE_P(Mutants, EachRuleIsNeeded, testing::ValuesIn(kMutants),
                         [](const testing::TestParamInfo<Mutant>& one) {
                           return one.param.name + std::string("On") + name_of(one.param.writes);
                         });

// In this world all entries are of one log, and intact.
TEST(Explorer, HasAMutantOfEachRuleButTwo) {
  for (const auto& [rule, name] : kRuleNames) {
    if (rule == Rule::kLogId || rule == Rule::kIntact) continue;
    EXPECT_TRUE(std::any_of(std::begin(kMutants), std::end(kMutants),
                            [broken = rule](const Mutant& one) { return one.broken == broken; }))
        << name;
  }
}

TEST(Explorer, TellsTheShortestStory) {
  Model model{.broken = Rule::kBarrier};
  EXPECT_EQ(explore(model).story,
            "1. A: after 2000 ms, and sends claim(epoch 1, A1, from change 1)\n"
            "2. the log gets claim(epoch 1, A1, from change 1)\n"
            "3. A: reads claim(epoch 1, A1, from change 1), and owns the shard\n"
            "4. A: is told that the log has taken claim(epoch 1, A1, from change 1)\n"
            "5. A: command 1 runs, and sends window(epoch 1, A1, from change 1, command 1)\n"
            "6. the log gets window(epoch 1, A1, from change 1, command 1)\n"
            "7. A: command 2 runs\n"
            "8. A: reads window(epoch 1, A1, from change 1, command 1), and answers command 1, and "
            "answers command 2\n");
}

TEST(Explorer, SaysThatItHasNotTriedAll) {
  Model model;
  const Found found = explore(model, 1'000);
  EXPECT_FALSE(found.complete);
  EXPECT_GT(found.worlds, 1'000U);
}

}  // namespace
}  // namespace carillon::cluster::explorer
