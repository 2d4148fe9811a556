// Attempts that fail: what counts as one, when the job comes again, the dead and their stories, and
// a cancel that is asked for.
// Rows Q7 and Q8 of the product's table.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

using Failed = FailOutcome::Result;
using Changed = ChangeOutcome::Result;

class EngineAttemptsTest : public EngineTest {
 protected:
  JobId put(const RetryPolicy& retry = {}, Millis ttr = 60'000) {
    return engine.put(producer, queue.now(), {.ttr = ttr, .retry = retry}, "a").id;
  }
  FailOutcome fail(JobId id, std::string_view error = "no luck") {
    return engine.fail(worker, queue.now(), id, {.error = error});
  }
  JobRecord record(JobId id) { return engine.job_stats(queue.now(), id)->record; }
  std::vector<Attempt> story(JobId id) { return *engine.story(queue.now(), id); }
  // The client comes anew after a restart.
  void restart() {
    queue.restart(0);
    producer = queue.engine().connect();
    worker = queue.engine().connect();
  }
};

TEST_F(EngineAttemptsTest, AFailedAttemptIsCountedAndItsStoryIsKept) {
  engine.name_client(worker, "mill 3");
  put();
  EXPECT_EQ(queue.reserve(worker), "a");
  const FailOutcome failed = fail(1, "disk full");
  EXPECT_EQ(failed.result, Failed::kAgain);
  EXPECT_EQ(failed.attempts, 1U);
  EXPECT_EQ(failed.delay, 0U);
  EXPECT_EQ(state(1), JobState::kReady) << "without a policy the job comes again at once";
  EXPECT_EQ(record(1).extras->attempts, 1U);
  const std::vector<Attempt> expected = {{queue.utc(), Ending::kFailed, "mill 3", "disk full"}};
  EXPECT_EQ(story(1), expected);
  EXPECT_EQ(engine.story(queue.now(), 2), std::nullopt);
}

TEST_F(EngineAttemptsTest, WhatAWorkerNamesCountsInsteadOfThePolicy) {
  put({.max_attempts = 1, .backoff = 1'000});
  EXPECT_EQ(queue.reserve(worker), "a");
  const FailOutcome again =
      engine.fail(worker, queue.now(), 1, {.priority = 7, .delay = 50, .max_attempts = 0});
  EXPECT_EQ(again.result, Failed::kAgain);
  EXPECT_EQ(again.delay, 50U);
  EXPECT_EQ(record(1).priority, 7U);
  queue.pass(50);
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_THROW(engine.fail(worker, queue.now(), 1, {.delay = kLastDue}), std::out_of_range);
  EXPECT_EQ(engine.fail(worker, queue.now(), 1, {.max_attempts = 2}).result, Failed::kDead);
  EXPECT_EQ(record(1).extras->death, Death::kAttempts);
}

TEST_F(EngineAttemptsTest, StatsTellThePolicyInForceAndTheWorker) {
  engine.name_client(worker, "mill 3");
  put();
  put({.max_attempts = 2});
  engine.set_tube(queue.now(), "default", {.retry = {.max_attempts = 9}});
  EXPECT_EQ(queue.reserve(worker), "a");
  const auto first = engine.job_stats(queue.now(), 1);
  EXPECT_EQ(first->retry.max_attempts, 9U);
  EXPECT_EQ(first->worker, "mill 3");
  const auto second = engine.job_stats(queue.now(), 2);
  EXPECT_EQ(second->retry.max_attempts, 2U);
  EXPECT_EQ(second->worker, "");
}

TEST_F(EngineAttemptsTest, OnlyTheHolderMayFailAJob) {
  put();
  EXPECT_EQ(fail(1).result, Failed::kNone) << "it is ready";
  EXPECT_EQ(queue.reserve(other), "a");
  EXPECT_EQ(fail(1).result, Failed::kNone);
  EXPECT_EQ(fail(7).result, Failed::kNone);
  EXPECT_EQ(record(1).extras->attempts, 0U);
}

TEST_F(EngineAttemptsTest, TheLastAttemptBuriesTheJob) {
  put({.max_attempts = 2});
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(fail(1, "one").result, Failed::kAgain);
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(fail(1, "two").result, Failed::kDead);
  EXPECT_EQ(state(1), JobState::kBuried);
  EXPECT_EQ(record(1).extras->death, Death::kAttempts);
  EXPECT_EQ(story(1).size(), 2U);
  EXPECT_EQ(story(1)[1].error, "two");
  EXPECT_EQ(counts().buried, 1U);
}

TEST_F(EngineAttemptsTest, TheBackOffDoublesUpToItsBound) {
  put({.backoff = 1'000, .backoff_max = 3'000});
  for (const Millis delay : {1'000U, 2'000U, 3'000U, 3'000U}) {
    EXPECT_EQ(queue.reserve(worker), "a");
    EXPECT_EQ(fail(1).delay, delay);
    queue.pass(delay - 1);
    EXPECT_EQ(state(1), JobState::kDelayed) << "never early";
    queue.pass(1);
    EXPECT_EQ(state(1), JobState::kReady);
  }
}

TEST_F(EngineAttemptsTest, ABackOffWithoutABoundIsFixed) {
  const RetryPolicy policy{.backoff = 500};
  for (const std::uint32_t failed : {1U, 2U, 50U}) EXPECT_EQ(delay_after(policy, 1, failed), 500U);
}

TEST_F(EngineAttemptsTest, ABackOffNeverOverflows) {
  const RetryPolicy policy{.backoff = 1, .backoff_max = kLastDue, .jitter = 100};
  EXPECT_LE(delay_after(policy, 1, UINT32_MAX), 2 * kLastDue);
  EXPECT_EQ(delay_after({.backoff = UINT64_MAX, .backoff_max = 3}, 1, 9), kLastDue);
  put(policy);
  for (int n = 0; n < 60; ++n) {
    const auto got = engine.reserve_job(worker, queue.now(), 1);
    ASSERT_TRUE(got);
    EXPECT_EQ(fail(1).result, Failed::kAgain);
    EXPECT_LE(record(1).due, kLastDue);
  }
}

TEST_F(EngineAttemptsTest, JitterIsAddedAndDiffersFromJobToJob) {
  const RetryPolicy policy{.backoff = 10'000, .jitter = 20};
  Millis least = UINT64_MAX;
  Millis most = 0;
  for (JobId id = 1; id <= 1'000; ++id) {
    least = std::min(least, delay_after(policy, id, 1));
    most = std::max(most, delay_after(policy, id, 1));
  }
  EXPECT_GE(least, 10'000U);
  EXPECT_LE(most, 12'000U);
  EXPECT_GT(most - least, 1'900U);
}

TEST_F(EngineAttemptsTest, APolicyOfZerosOfAJobCountsInsteadOfTheTubes) {
  engine.set_tube(queue.now(), "default", {.retry = {.max_attempts = 1, .lost_fails = true}});
  put({.counts_empty = true});
  put();
  EXPECT_EQ(engine.job_stats(queue.now(), 1)->retry.max_attempts, 0U);
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(fail(1).result, Failed::kAgain);
  restart();
  EXPECT_EQ(queue.engine().job_stats(queue.now(), 1)->retry.max_attempts, 0U);
  EXPECT_EQ(queue.engine().job_stats(queue.now(), 2)->retry.max_attempts, 1U);
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(queue.engine().fail(worker, queue.now(), 1, {}).result, Failed::kAgain);
  EXPECT_EQ(queue.reserve(worker), "a");
  queue.engine().disconnect(worker, queue.now());
  queue.pass(0);
  EXPECT_EQ(queue.engine().job_stats(queue.now(), 1)->record.extras->attempts, 2U)
      << "a lost connection is no failure";
}

TEST_F(EngineAttemptsTest, ATimeOutIsAFailedAttemptIfThereIsAPolicy) {
  put({.max_attempts = 2, .backoff = 5'000}, 1'000);
  EXPECT_EQ(queue.reserve(worker), "a");
  queue.pass(1'001);
  EXPECT_EQ(state(1), JobState::kDelayed);
  EXPECT_EQ(story(1).back().ending, Ending::kTimedOut);
  EXPECT_EQ(record(1).history.timeouts, 1U);
  queue.pass(5'000);
  EXPECT_EQ(queue.reserve(worker), "a");
  queue.pass(1'001);
  EXPECT_EQ(state(1), JobState::kBuried);
  EXPECT_EQ(engine.stats().timeouts, 2U);
  EXPECT_EQ(engine.next_wakeup(), std::nullopt);
}

TEST_F(EngineAttemptsTest, WithoutAPolicyATimeOutAppendsNothing) {
  put({}, 1'000);
  EXPECT_EQ(queue.reserve(worker), "a");
  const std::size_t changed = queue.store().changed;
  queue.pass(1'001);
  EXPECT_EQ(state(1), JobState::kReady);
  EXPECT_EQ(queue.store().changed, changed);
  EXPECT_TRUE(story(1).empty());
}

TEST_F(EngineAttemptsTest, ALostConnectionIsAFailureIfThePolicySaysSo) {
  put({.max_attempts = 1});
  put({.max_attempts = 1, .lost_fails = true});
  engine.name_client(worker, "w");
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(queue.reserve(worker), "a");
  engine.disconnect(worker, queue.now());
  EXPECT_EQ(state(1), JobState::kReady);
  EXPECT_EQ(state(2), JobState::kBuried);
  EXPECT_EQ(story(2), (std::vector<Attempt>{{queue.utc(), Ending::kLost, "w", ""}}));
  worker = engine.connect();
}

TEST_F(EngineAttemptsTest, WhatIsOverStaysReservedUntilThatIsStored) {
  put({.max_attempts = 1}, 1'000);
  EXPECT_EQ(queue.reserve(worker), "a");
  queue.store().faults = {.appends = true};
  EXPECT_THROW(queue.pass(1'001), StoreError);
  EXPECT_EQ(state(1), JobState::kReserved);
  EXPECT_FALSE(engine.touch(worker, queue.now(), 1).done) << "the ttr is over all the same";
  EXPECT_EQ(engine.stats().timeouts, 1U);
  queue.store().faults = {};
  queue.pass(1'001);
  EXPECT_EQ(state(1), JobState::kBuried);
  EXPECT_EQ(story(1).size(), 1U);
  EXPECT_EQ(engine.stats().timeouts, 1U) << "a time-out is counted once";
}

TEST_F(EngineAttemptsTest, AStoryHasABoundAndGoesWithItsJob) {
  put();
  for (int n = 0; n < 13; ++n) {
    EXPECT_EQ(queue.reserve(worker), "a");
    fail(1, std::to_string(n) + std::string(2'000, 'x'));
  }
  ASSERT_EQ(story(1).size(), kMaxStory);
  EXPECT_EQ(story(1).front().error.substr(0, 2), "3x");
  EXPECT_EQ(story(1).back().error.size(), kMaxError);
  EXPECT_EQ(record(1).extras->attempts, 13U);
  EXPECT_TRUE(engine.remove(worker, queue.now(), 1).done);
  EXPECT_TRUE(queue.store().story(1).empty());
}

TEST_F(EngineAttemptsTest, ARevivedJobHasAllAttemptsAnew) {
  for (JobId id = 1; id <= 3; ++id) {
    put({.max_attempts = 1});
    EXPECT_EQ(queue.reserve(worker), "a");
    EXPECT_EQ(fail(id).result, Failed::kDead);
  }
  EXPECT_TRUE(engine.kick_job(queue.now(), 1).done);
  EXPECT_EQ(engine.patch(queue.now(), 2, {.due_in = 5}).result, Changed::kDone);
  EXPECT_TRUE(engine.reserve_job(worker, queue.now(), 3));
  for (JobId id = 1; id <= 3; ++id) {
    EXPECT_EQ(record(id).extras->attempts, 0U) << id;
    EXPECT_EQ(record(id).extras->death, Death::kNone) << id;
    EXPECT_EQ(story(id).size(), 1U) << "the story goes on";
  }
}

TEST_F(EngineAttemptsTest, AJobThatWasOnlyBuriedKeepsItsAttempts) {
  for (JobId id = 1; id <= 3; ++id) {
    put({.max_attempts = 2});
    EXPECT_EQ(queue.reserve(worker), "a");
    EXPECT_EQ(fail(id).result, Failed::kAgain);
    EXPECT_EQ(engine.bury_job(queue.now(), id, {}).result, Changed::kDone);
  }
  EXPECT_TRUE(engine.kick_job(queue.now(), 1).done);
  EXPECT_EQ(engine.patch(queue.now(), 2, {.due_in = 5}).result, Changed::kDone);
  EXPECT_TRUE(engine.reserve_job(worker, queue.now(), 3));
  for (JobId id = 1; id <= 3; ++id) EXPECT_EQ(record(id).extras->attempts, 1U) << id;
}

TEST_F(EngineAttemptsTest, ADamagedStoryBeginsAnewAndHoldsUpNobody) {
  for (JobId id = 1; id <= 2; ++id) {
    put({.max_attempts = 3}, 1'000);
    EXPECT_EQ(queue.reserve(worker), "a");
    fail(id, "before");
    EXPECT_EQ(queue.reserve(worker), "a");
  }
  queue.store().faults.story = 1;
  EXPECT_THROW(queue.pass(1'001), StoreError) << "the owner is told";
  queue.store().faults = {};
  EXPECT_EQ(state(1), JobState::kReady);
  EXPECT_EQ(state(2), JobState::kReady);
  EXPECT_EQ(record(1).extras->attempts, 2U);
  EXPECT_EQ(story(1), (std::vector<Attempt>{{queue.utc(), Ending::kTimedOut, "", ""}}));
  EXPECT_EQ(story(2).size(), 2U);
}

TEST_F(EngineAttemptsTest, AStoryThatCannotBeReadNowHoldsUpNobodyElse) {
  put({.max_attempts = 3}, 1'000);
  EXPECT_EQ(queue.reserve(worker), "a");
  fail(1, "before");
  EXPECT_EQ(queue.reserve(worker), "a");
  put({.max_attempts = 3}, 1'000);
  EXPECT_EQ(queue.reserve(worker), "a");
  queue.store().faults.records = true;
  EXPECT_THROW(queue.pass(1'001), StoreError);
  EXPECT_THROW(queue.pass(0), StoreError);
  queue.store().faults = {};
  EXPECT_EQ(state(1), JobState::kReserved);
  EXPECT_EQ(engine.job_stats(queue.now(), 1)->time_left, 0U);
  EXPECT_EQ(state(2), JobState::kReady);
  queue.pass(1'000);
  EXPECT_EQ(state(1), JobState::kReady);
  EXPECT_EQ(story(1).size(), 2U);
}

TEST_F(EngineAttemptsTest, ManyAttemptsThatEndTogetherEndInSteps) {
  for (JobId id = 1; id <= 40; ++id) {
    put({.max_attempts = 1}, 1'000);
    EXPECT_EQ(queue.reserve(worker), "a");
  }
  queue.pass(1'001);
  EXPECT_EQ(engine.stats().jobs.buried, 16U);
  queue.pass(0);
  queue.pass(0);
  EXPECT_EQ(engine.stats().jobs.buried, 40U);
}

TEST_F(EngineAttemptsTest, ATubeStaysAsLongAsAnythingIsSet) {
  engine.set_tube(queue.now(), "mail", {.retry = {.max_attempts = 3}});
  EXPECT_TRUE(engine.tube_stats(queue.now(), "mail"));
  engine.set_tube(queue.now(), "mail", {});
  EXPECT_FALSE(engine.tube_stats(queue.now(), "mail"));
  EXPECT_TRUE(queue.store().recover().tubes.empty());
}

TEST_F(EngineAttemptsTest, PoliciesOutOfTheirRangeAreRefused) {
  const auto set = [&](const RetryPolicy& policy) {
    engine.set_tube(queue.now(), "t", {.retry = policy});
  };
  EXPECT_THROW(set({.jitter = 101}), std::invalid_argument);
  EXPECT_THROW(set({.backoff = kLastDue + 1}), std::invalid_argument);
  EXPECT_THROW(set({.backoff_max = kLastDue + 1}), std::invalid_argument);
  EXPECT_THROW(put({.jitter = 101}), std::invalid_argument);
  EXPECT_FALSE(engine.tube_stats(queue.now(), "t"));
}

// --- A cancel of a reserved job.

TEST_F(EngineAttemptsTest, ACancelOfAReservedJobIsRefusedOrAskedFor) {
  put();
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(engine.cancel(queue.now(), 1).result, Changed::kReserved);
  EXPECT_FALSE(engine.cancel_asked(worker, 1));
  EXPECT_EQ(engine.cancel(queue.now(), 1, true).result, Changed::kAsked);
  EXPECT_TRUE(engine.cancel_asked(worker, 1));
  EXPECT_FALSE(engine.cancel_asked(other, 1)) << "it is not its job";
  EXPECT_EQ(engine.cancel(queue.now(), 1, true).result, Changed::kAsked);
}

}  // namespace
}  // namespace carillon::queue
