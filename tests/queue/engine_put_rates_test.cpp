// The rate of a tube's puts: how fast clients may put jobs into it.

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

using Result = PutOutcome::Result;

class EnginePutRates : public EngineTest {
 protected:
  void set(const Limits& rate) { engine.set_tube(queue.now(), "default", {.put_rate = rate}); }
  PutOutcome put(PutOrder order = {}) { return engine.put(producer, queue.now(), order, "job"); }
  BatchOutcome put_all(std::size_t jobs, BatchOrder order = {}) {
    return engine.put_all(producer, queue.now(),
                          std::vector<NewJob>(jobs, {.order = {}, .body = "job"}), order);
  }
  std::optional<PutRate> rate() { return queue.engine().put_rate(queue.now(), "default"); }
};

TEST_F(EnginePutRates, APutWithoutATokenIsRefusedAndToldWhenToTryAgain) {
  EXPECT_FALSE(rate());
  set({.rate = 2, .period = 1'000, .burst = 2});
  EXPECT_EQ(rate()->tokens, 2U) << "the bucket begins full";
  EXPECT_EQ(rate()->next, 0U);
  EXPECT_TRUE(put().done());
  EXPECT_EQ(rate()->next, 500U);
  EXPECT_TRUE(put().done());
  PutOutcome refused = put();
  EXPECT_EQ(refused.result, Result::kTooFast);
  EXPECT_EQ(refused.wait, 500U);
  EXPECT_EQ(refused.id, 0U);
  queue.pass(499);
  EXPECT_EQ(put().wait, 1U);
  queue.pass(1);
  EXPECT_EQ(put().id, 3U) << "a put that is refused uses up no id";
  EXPECT_EQ(counts().ready, 3U);
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->puts_too_fast, 2U);
  EXPECT_EQ(engine.stats(queue.now()).totals.puts_too_fast, 2U);
}

TEST_F(EnginePutRates, WhatIsRefusedLeavesNothingBehind) {
  engine.use(producer, "a");
  engine.set_tube(queue.now(), "a", {.put_rate = {.rate = 1, .period = 60'000, .burst = 1}});
  EXPECT_TRUE(put().done());
  const Sequence before = engine.last_sequence();
  EXPECT_EQ(put({.key = "k", .group = "g"}).result, Result::kTooFast);
  const std::vector<NewJob> two{{.order = {.group = "h"}, .body = "x"}};
  EXPECT_EQ(engine.put_all(producer, queue.now(), two, {.once = "t"}).jobs.back().result,
            Result::kTooFast);
  EXPECT_EQ(engine.last_sequence(), before);
  EXPECT_FALSE(engine.job_with_key(producer, "k"));
  EXPECT_FALSE(engine.group_stats(queue.now(), "a", "g"));
  EXPECT_FALSE(engine.group_stats(queue.now(), "a", "h"));
  queue.pass(60'000);
  EXPECT_EQ(engine.put_all(producer, queue.now(), two, {.once = "t"}).result,
            BatchOutcome::Result::kPut)
      << "its token is free";
}

TEST_F(EnginePutRates, WhatAddsNothingTakesNoToken) {
  set({.rate = 1, .period = 60'000, .burst = 2});
  EXPECT_TRUE(put({.key = "k"}).done());
  EXPECT_EQ(put({.key = "k"}).result, Result::kExists);
  EXPECT_EQ(put({.due_at = kLastDue + 1}).result, Result::kTooFar);
  EXPECT_EQ(rate()->tokens, 1U);
  EXPECT_EQ(put_all(1, {.once = "t"}).result, BatchOutcome::Result::kPut);
  EXPECT_EQ(rate()->tokens, 0U);
  EXPECT_EQ(put_all(1, {.once = "t"}).result, BatchOutcome::Result::kAlready);
  EXPECT_EQ(put({.key = "k"}).result, Result::kExists);
  EXPECT_EQ(put({.key = "k", .on_conflict = OnConflict::kReplace}).result, Result::kTooFast);
  queue.pass(60'000);
  EXPECT_EQ(put({.key = "k", .on_conflict = OnConflict::kReplace}).result, Result::kReplaced);
  EXPECT_EQ(rate()->tokens, 0U);
}

TEST_F(EnginePutRates, APutThatFailsTakesNoToken) {
  set({.rate = 1, .period = 60'000, .burst = 3});
  queue.store().faults.appends = true;
  EXPECT_THROW(put(), StoreError);
  EXPECT_THROW(put_all(2), StoreError);
  queue.store().faults.appends = false;
  EXPECT_EQ(rate()->tokens, 3U);
  EXPECT_THROW(put({.key = std::string(kMaxKey + 1, 'k')}), std::invalid_argument);
  EXPECT_EQ(rate()->tokens, 3U);
}

TEST_F(EnginePutRates, ABatchGetsAllOfItsTokensOrNone) {
  set({.rate = 1, .period = 1'000, .burst = 4});
  EXPECT_EQ(put_all(2).result, BatchOutcome::Result::kPut);
  BatchOutcome refused = put_all(4);
  EXPECT_EQ(refused.result, BatchOutcome::Result::kRefused);
  EXPECT_EQ(refused.stopper, 2U);
  EXPECT_EQ(refused.jobs.size(), 3U);
  EXPECT_EQ(refused.jobs.back().result, Result::kTooFast);
  EXPECT_EQ(refused.jobs.back().wait, 2'000U);
  EXPECT_EQ(rate()->tokens, 2U);
  refused = put_all(6);
  EXPECT_EQ(refused.stopper, 4U);
  EXPECT_EQ(refused.jobs.back().result, Result::kTooMany) << "more than there can ever be";
  queue.pass(2'000);
  EXPECT_EQ(put_all(4).result, BatchOutcome::Result::kPut);
  EXPECT_EQ(counts().ready, 6U);
}

TEST_F(EnginePutRates, OnlyJobsOfABatchThatArePutNeedTokensAndOtherRefusalsAreTold) {
  set({.rate = 1, .period = 1'000, .burst = 2});
  EXPECT_TRUE(put({.key = "k"}).done());
  const NewJob there{.order = {.key = "k", .on_conflict = OnConflict::kIgnore}, .body = "x"};
  const NewJob taken{.order = {.key = "k"}, .body = "x"};
  const NewJob free{.order = {}, .body = "x"};
  std::vector<NewJob> batch{free, there};
  EXPECT_EQ(engine.put_all(producer, queue.now(), batch).result, BatchOutcome::Result::kPut);
  EXPECT_EQ(rate()->tokens, 0U);
  batch = {there};
  EXPECT_EQ(engine.put_all(producer, queue.now(), batch).result, BatchOutcome::Result::kPut);
  batch = {free, taken};
  const BatchOutcome refused = engine.put_all(producer, queue.now(), batch);
  EXPECT_EQ(refused.stopper, 1U);
  EXPECT_EQ(refused.jobs.back().result, Result::kExists);
}

TEST_F(EnginePutRates, SchedulesRetriesAndMovesAreFree) {
  set({.rate = 1, .period = 60'000, .burst = 1});
  EXPECT_TRUE(put().done());
  engine.set_schedule(queue.now(), "s", {.tube = "default", .every = 1'000});
  queue.pass(3'000);
  EXPECT_GE(counts().ready, 3U);
  EXPECT_TRUE(engine.reserve(worker, queue.now(), 0));
  EXPECT_TRUE(engine.release(worker, queue.now(), 1, 0, 0).done);
  EXPECT_EQ(put().result, Result::kTooFast);
}

TEST_F(EnginePutRates, ARestartKeepsTheRateAndFillsTheBucket) {
  set({.rate = 1, .period = 60'000, .burst = 2});
  EXPECT_EQ(put_all(2).result, BatchOutcome::Result::kPut);
  queue.restart();
  EXPECT_EQ(rate()->tokens, 2U);
  EXPECT_EQ(rate()->limits, (Limits{.rate = 1, .period = 60'000, .burst = 2}));
  queue.engine().set_tube(queue.now(), "default", {});
  EXPECT_FALSE(rate());
}

TEST_F(EnginePutRates, OtherSettingsLeaveTheBucketAsItIs) {
  const Limits rate_of_puts{.rate = 1, .period = 60'000, .burst = 2};
  set(rate_of_puts);
  EXPECT_TRUE(put().done());
  engine.set_tube(queue.now(), "default", {.limits = {.max_running = 1}, .put_rate = rate_of_puts});
  EXPECT_EQ(rate()->tokens, 1U);
}

TEST_F(EnginePutRates, WhatIsOutOfRangeIsRefused) {
  EXPECT_THROW(set({.max_running = 1}), std::invalid_argument);
  EXPECT_THROW(set({.rate = kMostTokens + 1, .period = 1, .burst = 1}), std::invalid_argument);
  EXPECT_THROW(set({.rate = 1, .period = 0, .burst = 1}), std::invalid_argument);
  EXPECT_EQ(engine.tube_settings("default"), TubeSettings());
}

}  // namespace
}  // namespace carillon::queue
