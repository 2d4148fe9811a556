// Batches: many jobs put, released or deleted with one append; and batches that are sent again.
// Row Q4 of the product's table.

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

using Result = PutOutcome::Result;
using Batch = BatchOutcome::Result;

std::vector<bool> done(const std::vector<Outcome>& outcomes) {
  std::vector<bool> done;
  for (const Outcome& outcome : outcomes) done.push_back(outcome.done);
  return done;
}

std::vector<std::pair<Result, JobId>> told(const BatchOutcome& outcome) {
  std::vector<std::pair<Result, JobId>> told;
  for (const PutOutcome& put : outcome.jobs) told.emplace_back(put.result, put.id);
  return told;
}

class EngineBatchesTest : public EngineTest {
 protected:
  PutOutcome put(std::string_view key, std::string_view body, OnConflict on_conflict = {},
                 Millis due_in = 0, Millis window = 0) {
    return engine.put(
        producer, queue.now(),
        {.due_in = due_in, .key = key, .on_conflict = on_conflict, .key_window = window}, body);
  }
  BatchOutcome put_all(const std::vector<NewJob>& jobs, const BatchOrder& order = {}) {
    return queue.engine().put_all(producer, queue.now(), jobs, order);
  }
  std::uint64_t ready() { return queue.engine().stats(queue.now()).jobs.ready; }

  const std::vector<NewJob> three{{{}, "1"}, {{.key = "k"}, "2"}, {{}, "3"}};
};

TEST_F(EngineBatchesTest, ABatchIsPutWithOneAppend) {
  const Sequence before = engine.last_sequence();
  const std::vector<NewJob> jobs{{.order = {.key = "a"}, .body = "1"},
                                 {.order = {.due_in = 50}, .body = "2"},
                                 {.order = {}, .body = "3"}};
  const BatchOutcome outcome = engine.put_all(producer, queue.now(), jobs);
  EXPECT_EQ(outcome.result, BatchOutcome::Result::kPut);
  EXPECT_EQ(outcome.jobs.size(), 3U);
  EXPECT_EQ(outcome.jobs[2].id, 3U);
  EXPECT_EQ(engine.last_sequence(), before + 1);
  EXPECT_EQ(queue.reserve(worker), "1");
  EXPECT_EQ(queue.reserve(worker), "3");
  queue.pass(51);
  EXPECT_EQ(queue.reserve(worker), "2");
}

TEST_F(EngineBatchesTest, ABatchIsPutAsAWholeOrNotAtAll) {
  put("b", "old");
  std::vector<NewJob> jobs{{.order = {.key = "a"}, .body = "1"},
                           {.order = {.key = "b"}, .body = "2"},
                           {.order = {.key = "c"}, .body = "3"}};
  const BatchOutcome refused = engine.put_all(producer, queue.now(), jobs);
  EXPECT_EQ(refused.result, BatchOutcome::Result::kRefused);
  EXPECT_EQ(refused.stopper, 1U);
  EXPECT_EQ(refused.jobs[1].result, Result::kExists);
  EXPECT_EQ(engine.job_with_key(producer, "a"), std::nullopt);
  EXPECT_EQ(counts().ready, 1U);

  jobs[1].order.on_conflict = OnConflict::kIgnore;
  const BatchOutcome put = engine.put_all(producer, queue.now(), jobs);
  EXPECT_EQ(put.result, BatchOutcome::Result::kPut);
  EXPECT_EQ(put.jobs[1].result, Result::kExists);
  EXPECT_EQ(counts().ready, 3U);

  jobs[0].order.key = jobs[2].order.key = "x";
  EXPECT_THROW(engine.put_all(producer, queue.now(), jobs), std::invalid_argument);
  engine.check_invariants();
}

TEST_F(EngineBatchesTest, ManyJobsAreDeletedWithOneAppend) {
  engine.use(producer, "mail");
  put("a", "1", {}, 0, 1'000);
  put("b", "2", {}, 86'400'000);
  engine.use(producer, "default");
  const JobId held = put("c", "3").id;
  EXPECT_EQ(queue.reserve(worker), "3");
  const Sequence before = engine.last_sequence();
  const std::vector<JobId> ids{1, 2, 2, held, 99};
  const auto outcomes = engine.remove_all(producer, queue.now(), ids);
  std::vector<bool> done;
  for (const Outcome& outcome : outcomes) done.push_back(outcome.done);
  EXPECT_EQ(done, (std::vector<bool>{true, true, false, false, false}));
  EXPECT_EQ(engine.last_sequence(), before + 1);
  EXPECT_TRUE(engine.tube_stats(queue.now(), "mail")) << "a key of it still counts";
}

TEST_F(EngineBatchesTest, ABatchThatCannotBeStoredHasPutNothing) {
  queue.store().faults.appends = true;
  EXPECT_THROW(put_all(three, {.once = "t"}), StoreError);
  queue.store().faults.appends = false;
  EXPECT_EQ(ready(), 0U);
  EXPECT_EQ(engine.job_with_key(producer, "k"), std::nullopt);
  EXPECT_EQ(put_all(three, {.once = "t"}).result, Batch::kPut);
  EXPECT_EQ(ready(), 3U);
}

TEST_F(EngineBatchesTest, AnEmptyBatchPutsNothing) {
  const Sequence before = engine.last_sequence();
  EXPECT_EQ(put_all({}).result, Batch::kPut);
  EXPECT_EQ(engine.last_sequence(), before);
}

// A producer that got no answer sends its batch again, and learns the ids, whatever happened to the
// tube meanwhile.
TEST_F(EngineBatchesTest, ABatchThatAddsNothingIsAnsweredWhileItsTubeIsDrained) {
  std::vector<NewJob> jobs{
      {.order = {.key = "a", .on_conflict = OnConflict::kIgnore}, .body = "1"},
      {.order = {.key = "b", .on_conflict = OnConflict::kIgnore}, .body = "2"}};
  EXPECT_EQ(put_all(jobs).result, Batch::kPut);
  engine.set_tube(queue.now(), "default", {.refuses_puts = true});
  const BatchOutcome again = put_all(jobs);
  EXPECT_EQ(again.result, Batch::kPut);
  EXPECT_EQ(told(again),
            (std::vector<std::pair<Result, JobId>>{{Result::kExists, 1}, {Result::kExists, 2}}));
  jobs.push_back({.order = {.key = "c"}, .body = "3"});
  const BatchOutcome more = put_all(jobs);
  EXPECT_EQ(more.result, Batch::kRefused);
  EXPECT_EQ(more.stopper, 2U);
  EXPECT_EQ(more.jobs.back().result, Result::kDraining);
  jobs[1].order.on_conflict = OnConflict::kReject;
  const BatchOutcome refused = put_all(jobs);
  EXPECT_EQ(refused.stopper, 1U);
  EXPECT_EQ(told(refused).back(), std::pair(Result::kExists, JobId{2}));
  EXPECT_EQ(ready(), 2U);
}

// The append has counted all of the batch when the first of its jobs is taken into memory.
TEST_F(EngineBatchesTest, AFarJobIsNotForgottenWhenABatchTakesAnotherJobAway) {
  constexpr Millis kFar = 3'600'000;
  put("", "far", {}, kFar);
  put("x", "in memory");
  put_all({{{.due_in = 2 * kFar}, "later"},
           {{.ttr = 2 * kFar, .key = "x", .on_conflict = OnConflict::kReplace, .group = "acme"},
            "moved"}});
  EXPECT_EQ(queue.reserve(worker), "moved");
  queue.pass(kFar);
  EXPECT_EQ(queue.reserve(worker), "far");
}

// --- Tokens.

TEST_F(EngineBatchesTest, ABatchThatIsSentAgainGetsTheFirstAnswer) {
  put("x", "old");
  const std::vector<NewJob> jobs{{{}, "1"},
                                 {{}, "2"},
                                 {{.key = "x", .on_conflict = OnConflict::kIgnore}, "3"},
                                 {{.key = "y"}, "4"}};
  const BatchOutcome first = put_all(jobs, {.once = "t", .window = 1'000, .fingerprint = "7"});
  EXPECT_EQ(first.result, Batch::kPut);
  const Sequence last = engine.last_sequence();
  const BatchOutcome again = put_all(jobs, {.once = "t", .window = 1'000, .fingerprint = "7"});
  EXPECT_EQ(again.result, Batch::kAlready);
  EXPECT_EQ(told(again), told(first));
  EXPECT_GE(again.durable_at, first.durable_at);
  EXPECT_EQ(engine.last_sequence(), last);
  EXPECT_EQ(put_all(jobs, {.once = "t", .fingerprint = "8"}).result, Batch::kOtherBatch);
  EXPECT_EQ(ready(), 4U);

  engine.use(producer, "other");
  EXPECT_EQ(put_all(jobs, {.once = "t", .fingerprint = "7"}).result, Batch::kAlready)
      << "a token holds in all tubes";
  EXPECT_EQ(put("t", "a key of that name is another thing").result, Result::kInserted);
}

TEST_F(EngineBatchesTest, ATokenWithoutAFingerprintIsOfAnyBatch) {
  put_all(three, {.once = "t"});
  EXPECT_EQ(put_all(three, {.once = "t", .fingerprint = "7"}).result, Batch::kAlready);
  EXPECT_EQ(ready(), 3U);
  const std::vector<NewJob> one{{{}, "4"}};
  put_all(one, {.once = "u", .fingerprint = "7"});
  EXPECT_EQ(put_all(one, {.once = "u"}).result, Batch::kOtherBatch);
  const std::string large(kMaxFingerprint + 1, 'x');
  EXPECT_THROW(put_all(one, {.once = "v", .fingerprint = large}), std::invalid_argument);
}

TEST_F(EngineBatchesTest, ATokenCountsForItsWindowAndIsForgottenThen) {
  put_all(three, {.once = "t", .window = 1'000});
  queue.pass(999);
  EXPECT_EQ(put_all(three, {.once = "t", .window = 1'000}).result, Batch::kAlready);
  queue.pass(1);
  EXPECT_EQ(put_all({{{}, "4"}}, {.once = "t", .window = 5'000}).result, Batch::kPut);
  queue.pass(4'000);
  EXPECT_EQ(put_all({{{}, "4"}}, {.once = "t"}).result, Batch::kAlready);
  queue.pass(3'000);
  EXPECT_TRUE(queue.store().scan_ended_keys(0, 9).empty());
  EXPECT_THROW(put_all(three, {.once = std::string(kMaxKey + 1, 't')}), std::invalid_argument);
}

TEST_F(EngineBatchesTest, ABatchOfOneIsToldAgainOfTheJobAsItWasPut) {
  const BatchOrder order{.once = "t", .tells_job = true};
  const std::vector<NewJob> one{{{.priority = 5, .due_in = 3'000, .group = "acme"}, "1"}};
  const BatchOutcome first = put_all(one, order);
  EXPECT_EQ(first.job->record.id, first.jobs.front().id);
  EXPECT_EQ(first.job->record.priority, 5U);
  EXPECT_EQ(first.job->tube, "default");
  EXPECT_EQ(first.job->group, "acme");
  engine.patch(queue.now(), first.jobs.front().id, {.priority = 9});
  EXPECT_EQ(put_all(one, order).job, first.job);
  engine.cancel(queue.now(), first.jobs.front().id, false);
  queue.crash(1'000);
  producer = queue.engine().connect();
  EXPECT_EQ(put_all(one, order).job, first.job);
  EXPECT_FALSE(put_all(three, {.once = "u", .tells_job = true}).job);
  EXPECT_FALSE(put_all(one, {.once = "v"}).job);
}

// --- Many releases.

TEST_F(EngineBatchesTest, ManyJobsAreReleasedWithOneAppend) {
  put_all({{{.priority = 5}, "1"}, {{.priority = 6}, "2"}, {{.priority = 7}, "3"}});
  for (int i = 0; i < 3; ++i) queue.reserve(worker);
  const Sequence before = engine.last_sequence();
  const std::vector<JobId> ids{3, 1, 3, 99};
  EXPECT_EQ(done(engine.release_all(other, queue.now(), ids, 0, 0)),
            (std::vector<bool>{false, false, false, false}));
  EXPECT_EQ(done(engine.release_all(worker, queue.now(), ids, std::nullopt, 0)),
            (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(engine.last_sequence(), before + 1);
  EXPECT_EQ(queue.reserve(other), "1") << "each keeps its priority";
  EXPECT_EQ(queue.reserve(other), "3");
  const std::vector<JobId> second{2};
  EXPECT_EQ(done(engine.release_all(worker, queue.now(), second, 9, 50)),
            (std::vector<bool>{true}));
  EXPECT_EQ(state(2), JobState::kDelayed);
  EXPECT_THROW(engine.release_all(other, queue.now(), ids, 0, kLastDue), std::out_of_range);
}

TEST_F(EngineBatchesTest, FailedReleasesAndDeletesChangeNothing) {
  put_all(three);
  for (int i = 0; i < 2; ++i) queue.reserve(worker);
  queue.store().faults.appends = true;
  const std::vector<JobId> ids{1, 2, 3};
  EXPECT_THROW(engine.release_all(worker, queue.now(), ids, 0, 0), StoreError);
  EXPECT_THROW(engine.remove_all(worker, queue.now(), ids), StoreError);
  queue.store().faults.appends = false;
  EXPECT_EQ(state(1), JobState::kReserved);
  EXPECT_EQ(ready(), 1U);
}

}  // namespace
}  // namespace carillon::queue
