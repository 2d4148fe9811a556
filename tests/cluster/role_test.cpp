#include "cluster/role.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "cluster/entries.h"

namespace carillon::cluster {
namespace {

constexpr LogId kLog{0xaa, 0xbb};
constexpr Owner kMe{1, 1};
constexpr Owner kOther{2, 2};
using Phase = Role::Phase;

// The log of these tests: the last position, and the chain up to it.
struct Log {
  Position position = 0;
  Chain chain = {};

  Entry add(Entry sent) {
    sent.log = kLog;
    const Entry entry = found_at(++position, chain, sent, 0);
    chain = entry.after;
    return entry;
  }
  Entry claim(Epoch epoch, const Owner& owner, LogNumber first = 1) {
    return add({.kind = Entry::Kind::kClaim,
                .epoch = epoch,
                .owner = owner,
                .first = first,
                .before = chain});
  }
  Entry window(Epoch epoch, const Owner& owner, LogNumber first, LogNumber end, UtcMs utc = 0) {
    Entry entry =
        add({.epoch = epoch, .owner = owner, .first = first, .before = chain, .utc = utc});
    entry.end = end;
    return entry;
  }
};

Role follower(Writes writes = Writes::kConditional, unsigned before_me = 0) {
  Role role({.me = kMe, .writes = writes, .before_me = before_me}, {});
  role.found(kLog, Place::kThere);
  role.measured(0);
  return role;
}

Role owner(Log& log, Writes writes = Writes::kConditional) {
  Role role = follower(writes);
  role.passed(2'000);
  const Entry claim = log.claim(1, kMe);
  role.committed(claim);
  role.read(claim);
  return role;
}

TEST(Role, AFollowerClaimsAfterTwoSecondsOfSilence) {
  Role role = follower();
  EXPECT_FALSE(role.passed(1'999).append);
  EXPECT_EQ(role.next_wakeup(), 1U);
  const Actions actions = role.passed(1);
  ASSERT_TRUE(actions.append);
  EXPECT_EQ(actions.append->kind, Entry::Kind::kClaim);
  EXPECT_EQ(actions.append->epoch, 1U);
  EXPECT_EQ(actions.append->owner, kMe);
  EXPECT_EQ(actions.append->first, 1U);
  EXPECT_FALSE(role.owns());
}

TEST(Role, EachFollowerBeforeItMakesAFollowerWaitThreeHundredMillisecondsMore) {
  Role role = follower(Writes::kConditional, 2);
  EXPECT_FALSE(role.passed(2'599).append);
  EXPECT_TRUE(role.passed(1).append);
}

TEST(Role, AFollowerClaimsSoonWhenTheOwnerHasLeft) {
  Log log;
  Role role = follower(Writes::kConditional, 1);
  role.read(log.claim(1, kOther));
  role.read(log.window(1, kOther, 1, 4));
  EXPECT_FALSE(role.read(log.claim(2, {}, 4)).append);
  EXPECT_FALSE(role.passed(399).append);
  EXPECT_EQ(role.passed(1).append->epoch, 3U);
}

TEST(Role, AnOwnerLeavesByAClaimForNobody) {
  Log log;
  Role role = owner(log);
  role.ran();
  role.committed(log.window(1, kMe, 1, 2));
  const Actions leaving = role.resign();
  ASSERT_TRUE(leaving.append);
  EXPECT_EQ(leaving.append->kind, Entry::Kind::kClaim);
  EXPECT_EQ(leaving.append->epoch, 2U);
  EXPECT_EQ(leaving.append->owner, Owner{});
  const Entry claim = log.claim(2, {}, 2);
  role.committed(claim);
  EXPECT_TRUE(role.read(claim).drop) << "if it did not end";
}

TEST(Role, AFollowerThatHearsItsOwnerDoesNotClaim) {
  Log log;
  Role role = follower();
  role.read(log.claim(1, kOther));
  role.passed(1'999);
  EXPECT_TRUE(role.read(log.window(1, kOther, 1, 2)).apply);
  EXPECT_FALSE(role.passed(1'999).append);
  EXPECT_EQ(role.passed(1).append->epoch, 2U);
}

TEST(Role, ANodeOwnsOnceItHasReadTheLogUpToItsClaim) {
  Log log;
  Role role = follower();
  role.read(log.claim(1, kOther));
  EXPECT_TRUE(role.passed(2'000).append);
  const Entry window = log.window(1, kOther, 1, 4, 1'700);
  const Entry claim = log.claim(2, kMe);
  EXPECT_FALSE(role.committed(claim).serve);
  EXPECT_FALSE(role.owns());
  EXPECT_TRUE(role.read(window).apply);
  EXPECT_TRUE(role.read(claim).serve);
  EXPECT_TRUE(role.accepts_commands());
  EXPECT_EQ(role.mark().next, 4U);
  EXPECT_EQ(role.mark().utc, 1'700U);  // where the new owner's UTC begins
}

TEST(Role, ANodeThatLosesTheRaceFollows) {
  Log log;
  Role role = follower();
  role.passed(2'000);
  role.failed(Failure::kRefused);
  EXPECT_FALSE(role.read(log.claim(1, kOther)).serve);
  EXPECT_FALSE(role.passed(1'999).append);
  EXPECT_FALSE(role.owns());
}

TEST(Role, AClaimOfWhichNobodyKnowsIsSentAgain) {
  Role role = follower();
  role.passed(2'000);
  EXPECT_FALSE(role.failed(Failure::kUnknown).append);
  EXPECT_FALSE(role.passed(99).append);
  EXPECT_EQ(role.passed(1).append->epoch, 1U);
}

// The answer of its own claim is late: it would be a retry that deposes a healthy owner.
TEST(Role, AClaimThatAnotherHasForestalledIsNotSentAgain) {
  for (const Failure failure : {Failure::kUnavailable, Failure::kUnknown, Failure::kRefused}) {
    Log log;
    Role role = follower();
    EXPECT_TRUE(role.passed(2'000).append);
    EXPECT_FALSE(role.read(log.claim(1, kOther)).append);
    EXPECT_FALSE(role.failed(failure).append);
    EXPECT_FALSE(role.passed(1'999).append);
    EXPECT_EQ(role.passed(1).append->epoch, 2U);
  }
}

// The same, if the node has lost its engine while its claim was under way.
TEST(Role, AClaimOfANodeThatHasDroppedItsEngineIsNotSentAgain) {
  Log log;
  Role role = owner(log);
  const Mark flushed = role.mark();
  role.ran();
  EXPECT_EQ(role.failed(Failure::kUnknown).append->epoch, 2U);
  EXPECT_TRUE(role.read(log.claim(2, kOther)).drop);
  role.reopened(flushed);
  role.found(kLog, Place::kThere);
  EXPECT_FALSE(role.failed(Failure::kUnknown).append);
  EXPECT_FALSE(role.passed(1'999).append);
}

TEST(Role, AReplyWaitsForAWindowThatWasAppendedAfterItsCommandRan) {
  Log log;
  Role role = owner(log);
  EXPECT_EQ(role.ticket(), 1U);
  const Actions first = role.ran();
  ASSERT_TRUE(first.append);
  EXPECT_EQ(first.release, 0U);
  EXPECT_EQ(role.ticket(), 2U);  // the window in flight was sent before
  EXPECT_FALSE(role.ran().append);
  const Actions second = role.committed(log.add(*first.append));
  EXPECT_EQ(second.release, 1U);
  ASSERT_TRUE(second.append);
  EXPECT_EQ(second.append->first, 2U);
  EXPECT_EQ(role.committed(log.add(*second.append)).release, 2U);
}

TEST(Role, AnOwnerBeatsEveryHalfSecond) {
  Log log;
  Role role = owner(log);
  EXPECT_FALSE(role.passed(499).append);
  const Actions beat = role.passed(1);
  ASSERT_TRUE(beat.append);
  role.committed(log.add(*beat.append));
  EXPECT_EQ(role.next_wakeup(), 500U);
}

TEST(Role, WithoutConditionalWritesAWindowCountsWhenItIsReadBack) {
  Log log;
  Role role = owner(log, Writes::kUnconditional);
  const Actions sent = role.ran();
  const Entry window = log.add(*sent.append);
  EXPECT_EQ(role.committed(window).release, 0U);
  const Actions read = role.read(window);
  EXPECT_EQ(read.release, 1U);
  EXPECT_FALSE(read.apply);  // its engine has it
}

TEST(Role, AWindowThatWasReportedButIsNotReadBackIsInDoubtAfterTwoSeconds) {
  Log log;
  Role role = owner(log, Writes::kUnconditional);
  const Actions sent = role.ran();
  role.committed(*sent.append);
  EXPECT_FALSE(role.passed(1'999).append);
  EXPECT_EQ(role.passed(1).append->kind, Entry::Kind::kClaim);
}

TEST(Role, AnUnavailableLogIsTriedAgainInTheSameEpochAndTheEngineStays) {
  Log log;
  Role role = owner(log);
  role.ran();
  const Actions failed = role.failed(Failure::kUnavailable);
  EXPECT_FALSE(failed.drop);
  EXPECT_FALSE(failed.append);
  EXPECT_TRUE(role.accepts_commands());
  Actions again = role.passed(100);
  ASSERT_TRUE(again.append);
  EXPECT_EQ(again.append->epoch, 1U);
  EXPECT_EQ(again.append->first, 1U);
  role.failed(Failure::kUnavailable);
  again = role.passed(1'899);
  EXPECT_TRUE(role.accepts_commands());
  role.failed(Failure::kUnavailable);
  again = role.passed(100);
  EXPECT_FALSE(role.accepts_commands());  // 2 s without a commit
  EXPECT_TRUE(role.owns());
  EXPECT_EQ(role.committed(log.add(*again.append)).release, 4U);
  EXPECT_TRUE(role.accepts_commands());
}

TEST(Role, AfterAnUnknownWindowTheOwnerClaimsAndFindsThatItCounts) {
  Log log;
  Role role = owner(log);
  const Entry window = log.add(*role.ran().append);
  const Actions doubt = role.failed(Failure::kUnknown);
  ASSERT_TRUE(doubt.append);
  EXPECT_EQ(doubt.append->kind, Entry::Kind::kClaim);
  EXPECT_EQ(doubt.append->epoch, 2U);
  role.committed(*doubt.append);
  EXPECT_EQ(role.read(window).release, 1U);
  const Actions own = role.read(log.claim(2, kMe, 1));
  EXPECT_FALSE(own.serve);  // the engine has stayed
  EXPECT_FALSE(own.append);
  EXPECT_EQ(role.phase(), Phase::kOwning);
}

TEST(Role, AfterAnUnknownWindowThatDoesNotCountItsChangesGoIntoTheNextOne) {
  Log log;
  Role role = owner(log);
  role.ran();
  role.failed(Failure::kUnknown);
  const Entry claim = log.claim(2, kMe, 1);
  role.committed(claim);
  const Actions again = role.read(claim);
  ASSERT_TRUE(again.append);
  EXPECT_EQ(again.append->epoch, 2U);
  EXPECT_EQ(again.append->first, 1U);
  EXPECT_EQ(role.committed(log.add(*again.append)).release, 2U);  // and so up to 1
}

TEST(Role, AnOwnerThatReadsTheClaimOfAnotherDropsItsEngine) {
  Log log;
  Role role = owner(log);
  role.ran();
  const Actions actions = role.read(log.claim(2, kOther));
  EXPECT_TRUE(actions.drop);
  EXPECT_EQ(
      actions.line,
      "another node owns the shard now: 00000000000000020000000000000002 has claimed epoch 2");
  EXPECT_EQ(role.phase(), Phase::kDropping);
  role.failed(Failure::kRefused);
  role.reopened({.log = kLog});
  EXPECT_EQ(role.phase(), Phase::kFollowing);
}

TEST(Role, AnOwnerWhoseWindowIsRefusedDropsItsEngine) {
  Log log;
  Role role = owner(log);
  role.ran();
  const Actions actions = role.failed(Failure::kRefused);
  EXPECT_TRUE(actions.drop);
  EXPECT_EQ(actions.line,
            "another node owns the shard now: the shared log has refused change 1 of epoch 1");
}

TEST(Role, ANodeThatReadsItsOldClaimAgainDoesNotOwnAgain) {
  Log log;
  Role role = follower();
  role.passed(2'000);
  const Entry claim = log.claim(1, kMe);
  role.committed(claim);
  EXPECT_TRUE(role.read(claim).serve);
  const Entry window = log.add(*role.ran().append);
  role.committed(window);
  const Entry other = log.claim(2, kOther, 2);
  EXPECT_TRUE(role.read(other).drop);
  role.reopened({.log = kLog});
  role.found(kLog, Place::kThere);
  EXPECT_FALSE(role.read(claim).serve);
  EXPECT_TRUE(role.read(window).apply);
  role.read(other);
  EXPECT_EQ(role.mark().epoch, 2U);
  EXPECT_EQ(role.mark().next, 2U);
}

TEST(Role, RepeatsAndWindowsOfEarlierEpochsAreIgnored) {
  Log log;
  Role role = follower();
  role.read(log.claim(1, kOther));
  const Entry window = log.window(1, kOther, 1, 3);
  EXPECT_TRUE(role.read(window).apply);
  Entry repeat = window;
  repeat.position = 10;
  EXPECT_FALSE(role.read(repeat).apply);
  Entry claim = log.claim(2, kMe, 3);
  claim.position = 11;
  role.read(claim);
  Entry late = window;
  late.first = 3;
  late.position = 12;
  EXPECT_FALSE(role.read(late).apply);
  EXPECT_EQ(role.mark().position, 11U);
  EXPECT_EQ(role.stopped_by(), Rule::kNone);
}

TEST(Role, ANodeMayOwnOnlyIfItsClockIsWithinHalfASecond) {
  Log log;
  Role role({.me = kMe}, {});
  role.found(kLog, Place::kThere);
  EXPECT_FALSE(role.passed(60'000).append);  // not measured
  EXPECT_EQ(role.measured(501).line,
            "the clock of this node is 501 ms ahead of the shared log's; beyond 500 ms it may not "
            "own the shard");
  EXPECT_FALSE(role.passed(60'000).append);
  EXPECT_EQ(role.measured(-500).line, "the clock is right again: this node may own the shard");
  EXPECT_TRUE(role.passed(0).append);
  const Entry claim = log.claim(1, kMe);
  role.committed(claim);
  EXPECT_TRUE(role.read(claim).serve);
  const Actions off = role.measured(-501);
  EXPECT_TRUE(off.drop);
  EXPECT_EQ(
      off.line,
      "the clock of this node is 501 ms behind the shared log's; beyond 500 ms it may not own "
      "the shard");
  EXPECT_EQ(follower().measured(std::numeric_limits<std::int64_t>::min()).line,
            "the clock of this node is 9223372036854775808 ms behind the shared log's; beyond 500 "
            "ms it may not own the shard");
}

TEST(Role, ANewStateTakesTheIdOfTheLogThatItFinds) {
  Role role({.me = kMe}, {});
  role.found(kLog, Place::kThere);
  EXPECT_EQ(role.mark().log, kLog);
}

TEST(Role, StopsOnAnotherLogAndSaysWhichOne) {
  Role role({.me = kMe}, {.log = kLog});
  const Actions actions = role.found({1, 2}, Place::kThere);
  EXPECT_TRUE(actions.stop);
  EXPECT_EQ(actions.line,
            "the shared log is another one: its id is 00000000000000010000000000000002, and the "
            "state is of 00000000000000aa00000000000000bb");
  EXPECT_EQ(role.phase(), Phase::kStopped);
  EXPECT_EQ(role.stopped_by(), Rule::kLogId);
}

TEST(Role, StopsIfItsPlaceInTheLogIsNotAsItWasRead) {
  const auto line = [](Place place) {
    Role role({.me = kMe}, {.log = kLog, .epoch = 1, .next = 5, .position = 7});
    const Actions actions = role.found(kLog, place);
    EXPECT_TRUE(actions.stop);
    EXPECT_EQ(role.stopped_by(), Rule::kPlace);
    return actions.line;
  };
  EXPECT_EQ(line(Place::kEndsBefore),
            "the state is ahead of the shared log, which ends before position 7, where the state "
            "has read change 4");
  EXPECT_EQ(line(Place::kBeginsAfter),
            "the shared log begins after position 7, where the state ends with change 4");
  EXPECT_EQ(line(Place::kAnother),
            "the shared log has another entry at position 7 than the one that the state has read "
            "there, or another history before it");
}

// What a follower of epoch 2, which began with change 3, says of an entry when change 5 is next.
std::string said(Entry entry, Rule rule) {
  Mark mark{.log = kLog, .epoch = 2, .owner = kOther, .epoch_began = 3, .next = 5};
  mark.chain = {9};
  mark.position = 7;
  Role role({.me = kMe}, mark);
  role.found(kLog, Place::kThere);
  entry.position = 8;
  const Actions actions = role.read(entry);
  EXPECT_TRUE(actions.stop);
  EXPECT_EQ(role.stopped_by(), rule);
  EXPECT_EQ(role.mark(), mark);
  EXPECT_FALSE(role.read(entry).stop);  // it is said once
  return actions.line;
}

TEST(Role, StopsOnAnEntryThatDoesNotFitAndSaysWhy) {
  const Entry good{.log = kLog, .epoch = 2, .owner = kOther, .first = 5, .end = 6, .before = {9}};
  Entry entry = good;
  entry.intact = false;
  EXPECT_EQ(said(entry, Rule::kIntact),
            "the entry at position 8 of the shared log is damaged: its checksum is wrong");
  entry = good;
  entry.log = {1, 2};
  EXPECT_EQ(said(entry, Rule::kLogId),
            "the window of epoch 2 at position 8 of the shared log is of another log, "
            "00000000000000010000000000000002, and the state is of "
            "00000000000000aa00000000000000bb");
  entry = good;
  entry.epoch = 3;
  EXPECT_EQ(said(entry, Rule::kEveryClaim),
            "the window of epoch 3 at position 8 of the shared log comes before any claim of epoch "
            "3: claims are missing");
  entry.kind = Entry::Kind::kClaim;
  entry.epoch = 4;
  EXPECT_EQ(said(entry, Rule::kEveryClaim),
            "the claim of epoch 4 at position 8 of the shared log comes before any claim of epoch "
            "3: claims are missing");
  entry = good;
  entry.owner = kMe;
  EXPECT_EQ(said(entry, Rule::kOwner),
            "the window of epoch 2 at position 8 of the shared log is of "
            "00000000000000010000000000000001, but this epoch was claimed by "
            "00000000000000020000000000000002");
  entry = good;
  entry.first = 2;
  EXPECT_EQ(said(entry, Rule::kNotBehind),
            "the window of epoch 2 at position 8 of the shared log goes on from change 2, but the "
            "changes before 3 were accepted in an earlier epoch");
  entry = good;
  entry.first = 6;
  EXPECT_EQ(said(entry, Rule::kNoGap),
            "the window of epoch 2 at position 8 of the shared log goes on from change 6, but "
            "change 5 is missing");
  entry = good;
  entry.before = {8};
  EXPECT_EQ(
      said(entry, Rule::kChain),
      "the window of epoch 2 at position 8 of the shared log goes on from change 5 of another "
      "history: the hash of what is before it differs");
}

TEST(Role, RefusesToBeMisused) {
  Role role({.me = kMe}, {});
  EXPECT_DEATH(role.read({}), "read\\(\\) requires: placed_");
  EXPECT_DEATH(role.ran(), "ran\\(\\) requires: owns\\(\\)");
  EXPECT_DEATH(role.failed(Failure::kUnknown), "failed\\(\\) requires: calls\\(\\)");
  Log log;
  Role dropping = owner(log);
  ASSERT_TRUE(dropping.read(log.claim(2, kOther)).drop);
  EXPECT_DEATH(dropping.read(log.claim(3, kOther)), "read\\(\\) requires: placed_ && ");
  EXPECT_DEATH(dropping.found(kLog, Place::kThere), "found\\(\\) requires: phase_ != ");
  EXPECT_DEATH(role.reopened({}), "reopened\\(\\) requires: phase_ == Phase::kDropping");
}

}  // namespace
}  // namespace carillon::cluster
