// The engine's commands one by one, on a virtual clock. Waiting and time: engine_waiting_test.cpp.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

TEST_F(EngineTest, APutJobIsReservedOnceAndGoneOnceRemoved) {
  const JobId id = queue.put(producer, "hello");
  EXPECT_EQ(id, 1u);
  EXPECT_EQ(queue.reserve(worker), "hello");
  EXPECT_EQ(queue.reserve(other), "TIMED_OUT");
  EXPECT_TRUE(engine.remove(worker, queue.now(), id).done);
  EXPECT_FALSE(engine.peek(queue.now(), id));
  EXPECT_FALSE(engine.remove(worker, queue.now(), id).done);
}

TEST_F(EngineTest, ReadyJobsGoOutByPriorityThenId) {
  queue.put(producer, "c", {.priority = 7});
  queue.put(producer, "a", {.priority = 1});
  queue.put(producer, "d", {.priority = 7});
  queue.put(producer, "b", {.priority = 1});
  EXPECT_EQ(counts().urgent, 4u);
  for (const char* expected : {"a", "b", "c", "d"}) EXPECT_EQ(queue.reserve(worker), expected);
}

TEST_F(EngineTest, TheLowestPriorityOfAllWatchedTubesGoesFirst) {
  engine.use(producer, "slow");
  queue.put(producer, "slow", {.priority = 5});
  engine.use(producer, "fast");
  queue.put(producer, "fast", {.priority = 4});
  engine.watch(worker, "slow");
  EXPECT_EQ(engine.watch(worker, "fast"), 3u);
  EXPECT_EQ(queue.reserve(worker), "fast");
  EXPECT_EQ(queue.reserve(worker), "slow");
}

TEST_F(EngineTest, ADelayedJobIsReadyAtItsMillisecondAndNotBefore) {
  queue.put(producer, "later", {.due_in = 3'000});
  queue.wait(worker);
  queue.pass(2'999);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"2:later"});
}

TEST_F(EngineTest, ADelayCountsFromTheEndOfTheRunningMillisecond) {
  queue.add_ns(1);
  queue.put(producer, "later", {.due_in = 10});
  queue.add_ns(10 * kMs - 1);
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT") << "1 ns before 10 ms have passed";
  queue.add_ns(kMs - 1);
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  queue.add_ns(1);
  EXPECT_EQ(queue.reserve(worker), "later");
}

TEST_F(EngineTest, AnAbsoluteTimeInThePastIsNow) {
  queue.put(producer, "past", {.due_at = 17});
  EXPECT_EQ(queue.reserve(worker), "past");
  queue.put(producer, "future", {.due_at = queue.utc() + 50});
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  queue.pass(50);
  EXPECT_EQ(queue.reserve(worker), "future");
}

TEST_F(EngineTest, ADelayTooLargeToRepresentIsRefusedAndNothingFires) {
  const Millis most = kLastDue - queue.utc();
  EXPECT_TRUE(engine.fits(queue.now(), most));
  EXPECT_FALSE(engine.fits(queue.now(), most + 1));
  EXPECT_FALSE(engine.fits(queue.now(), UINT64_MAX));
  EXPECT_EQ(queue.put(producer, "never", {.due_in = most + 1}), 0u);
  EXPECT_EQ(queue.put(producer, "never", {.due_in = UINT64_MAX}), 0u);
  EXPECT_EQ(queue.put(producer, "never", {.due_at = kLastDue + 1}), 0u);
  EXPECT_NE(queue.put(producer, "at the end of time", {.due_in = most}), 0u);
  EXPECT_EQ(counts().delayed, 1u);
  const JobId id = queue.put(producer, "now");
  ASSERT_EQ(queue.reserve(worker), "now");
  EXPECT_THROW(engine.release(worker, queue.now(), id, 0, most + 1), std::out_of_range);
  EXPECT_EQ(state(id), JobState::kReserved);
}

TEST_F(EngineTest, ReleaseMakesReadyAgainWithANewPriority) {
  const JobId id = queue.put(producer, "job", {.priority = 5});
  queue.put(producer, "other", {.priority = 7});
  ASSERT_EQ(queue.reserve(worker), "job");
  EXPECT_FALSE(engine.release(other, queue.now(), id, 9, 0).done);
  EXPECT_TRUE(engine.release(worker, queue.now(), id, 9, 0).done);
  EXPECT_EQ(queue.reserve(worker), "other");
  EXPECT_EQ(queue.reserve(worker), "job");
  EXPECT_EQ(engine.job_stats(queue.now(), id)->record.history.releases, 1u);
}

TEST_F(EngineTest, ReleaseWithoutADelayKeepsTheJobsDueTime) {
  const UtcMs put_at = queue.utc();
  const JobId id = queue.put(producer, "job");
  queue.pass(500);
  ASSERT_EQ(queue.reserve(worker), "job");
  EXPECT_TRUE(engine.release(worker, queue.now(), id, 0, 0).done);
  EXPECT_EQ(engine.job_stats(queue.now(), id)->record.due, put_at)
      << "a later one would put it behind a backlog that is not loaded";
}

TEST_F(EngineTest, ReleaseWithADelayIsNotShortened) {
  const JobId id = queue.put(producer, "job");
  ASSERT_EQ(queue.reserve(worker), "job");
  EXPECT_TRUE(engine.release(worker, queue.now(), id, 0, 500).done);
  EXPECT_EQ(state(id), JobState::kDelayed);
  queue.pass(499);
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  queue.pass(1);
  EXPECT_EQ(queue.reserve(worker), "job");
}

TEST_F(EngineTest, KickTakesTheBuriedFirstInOrderElseTheDelayedNearestFirst) {
  std::vector<JobId> ids;
  for (const char* body : {"a", "b", "c"}) {
    ids.push_back(queue.put(producer, body));
    ASSERT_EQ(queue.reserve(worker), body);
  }
  for (const std::size_t i : {2u, 0u, 1u})
    EXPECT_TRUE(engine.bury(worker, queue.now(), ids[i], 0).done);
  queue.put(producer, "far", {.due_in = 90'000});
  queue.put(producer, "near", {.due_in = 1'000});
  EXPECT_EQ(counts().buried, 3u);
  EXPECT_EQ(queue.body(engine.peek_buried(producer, queue.now())), "c");
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 2), 2u);
  EXPECT_EQ(state(ids[1]), JobState::kBuried) << "the last one buried";
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 10), 1u) << "buried or delayed, not both";
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 1), 1u);
  EXPECT_EQ(queue.body(peek_delayed(engine, producer, queue.now())), "far");
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 10), 1u);
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 10), 0u);
  EXPECT_EQ(counts().ready, 5u);
}

TEST_F(EngineTest, AJobMayBeBuriedFromTheStart) {
  const UtcMs due = queue.utc() - 5'000;
  const JobId near = queue.put(producer, "near", {.due_at = due, .buried = true});
  const JobId far = queue.put(producer, "far", {.due_in = 100'000'000, .key = "k", .buried = true});
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  EXPECT_EQ(engine.job_stats(queue.now(), near)->record.due, due);
  EXPECT_EQ(engine.job_stats(queue.now(), far)->record.due, queue.utc() + 100'000'000);
  EXPECT_EQ(counts().buried, 2u);
  EXPECT_EQ(counts().total, 2u);
  queue.restart(0);
  Engine& again = queue.engine();
  producer = again.connect();
  worker = again.connect();
  EXPECT_EQ(queue.body(again.peek_buried(producer, queue.now())), "near");
  const PutOrder order{.key = "k", .on_conflict = OnConflict::kReplace};
  EXPECT_EQ(again.put(producer, queue.now(), order, "now").result, PutOutcome::Result::kReplaced);
  EXPECT_EQ(queue.reserve(worker), "now") << "it is not buried any more";
  EXPECT_EQ(kick_all(again, producer, queue.now(), 9), 1u);
  EXPECT_EQ(queue.reserve(worker), "near");
}

TEST_F(EngineTest, AJobMayBeReplacedByABuriedOne) {
  const JobId ready = queue.put(producer, "a", {.key = "ready"});
  const JobId far = queue.put(producer, "b", {.due_in = 100'000'000, .key = "far"});
  for (const std::string_view key : {"ready", "far"}) {
    const PutOrder order{.key = key, .on_conflict = OnConflict::kReplace, .buried = true};
    EXPECT_EQ(engine.put(producer, queue.now(), order, "c").result, PutOutcome::Result::kReplaced);
  }
  EXPECT_EQ(state(ready), JobState::kBuried);
  EXPECT_EQ(state(far), JobState::kBuried);
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  EXPECT_EQ(counts().buried, 2u);
}

TEST_F(EngineTest, KickJobTakesABuriedOrDelayedOne) {
  const JobId ready = queue.put(producer, "ready");
  const JobId delayed = queue.put(producer, "delayed", {.due_in = 1'000});
  const JobId far = queue.put(producer, "far", {.due_in = 100'000'000});
  EXPECT_FALSE(engine.kick_job(queue.now(), ready).done);
  EXPECT_FALSE(engine.kick_job(queue.now(), 99).done);
  EXPECT_TRUE(engine.kick_job(queue.now(), delayed).done);
  EXPECT_TRUE(engine.kick_job(queue.now(), far).done);
  EXPECT_EQ(counts().ready, 3u);
}

TEST_F(EngineTest, ReserveJobTakesAGivenJobOfAnyStateButReserved) {
  const JobId ready = queue.put(producer, "ready");
  const JobId delayed = queue.put(producer, "delayed", {.due_in = 5'000});
  const JobId far = queue.put(producer, "far", {.due_in = 100'000'000});
  const JobId buried = queue.put(producer, "buried", {.priority = 0});
  ASSERT_TRUE(engine.reserve_job(worker, queue.now(), buried));
  ASSERT_TRUE(engine.bury(worker, queue.now(), buried, 0).done);
  for (const JobId id : {ready, delayed, far, buried}) {
    const auto got = engine.reserve_job(worker, queue.now(), id);
    ASSERT_TRUE(got) << id;
    EXPECT_EQ(got->job.id, id);
    EXPECT_EQ(state(id), JobState::kReserved);
    EXPECT_FALSE(engine.reserve_job(other, queue.now(), id)) << "it is taken";
  }
  EXPECT_EQ(counts().buried, 0u);
  EXPECT_FALSE(engine.reserve_job(worker, queue.now(), 99));
  engine.disconnect(worker, queue.now());
  EXPECT_EQ(counts().ready, 2u) << "the buried one too: it was not buried any more";
  EXPECT_EQ(counts().delayed, 2u) << "until their own time";
}

TEST_F(EngineTest, RemoveWorksOnAllJobsExceptThoseReservedByOthers) {
  const JobId ready = queue.put(producer, "ready", {.priority = 2});
  const JobId delayed = queue.put(producer, "delayed", {.due_in = 5'000});
  const JobId far = queue.put(producer, "far", {.due_in = 100'000'000});
  const JobId reserved = queue.put(producer, "reserved", {.priority = 1});
  const JobId buried = queue.put(producer, "buried", {.priority = 0});
  ASSERT_EQ(queue.reserve(worker), "buried");
  ASSERT_TRUE(engine.bury(worker, queue.now(), buried, 0).done);
  ASSERT_EQ(queue.reserve(worker), "reserved");
  EXPECT_FALSE(engine.remove(producer, queue.now(), reserved).done);
  EXPECT_TRUE(engine.remove(worker, queue.now(), reserved).done);
  for (const JobId id : {ready, delayed, far, buried})
    EXPECT_TRUE(engine.remove(producer, queue.now(), id).done) << id;
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->deletes, 5u);
  queue.pass(200'000'000);
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
}

TEST_F(EngineTest, ADisconnectedClientGivesItsJobsBackAtOnce) {
  queue.put(producer, "a");
  ASSERT_EQ(queue.reserve(worker), "a");
  queue.wait(other);
  engine.disconnect(worker, queue.now());
  EXPECT_EQ(queue.deliveries(), Words{"3:a"});
  queue.wait(producer);
  engine.disconnect(producer, queue.now());
  EXPECT_EQ(engine.stats().waiting, 0u);
}

TEST_F(EngineTest, TubesVanishWhenNothingRefersToThemButDefaultStays) {
  engine.use(producer, "work");
  const JobId id = queue.put(producer, "job");
  engine.use(producer, "default");
  EXPECT_EQ(engine.tubes(), (Words{"default", "work"})) << "its job keeps it";
  EXPECT_TRUE(engine.remove(producer, queue.now(), id).done);
  EXPECT_EQ(engine.tubes(), Words{"default"});
  engine.watch(worker, "w");
  EXPECT_EQ(engine.ignore(worker, "default"), 1u);
  EXPECT_EQ(engine.ignore(worker, "w"), std::nullopt) << "the only one stays";
  EXPECT_EQ(engine.ignore(worker, "unknown"), 1u);
  EXPECT_EQ(engine.watched(worker), Words{"w"});
  engine.disconnect(worker, queue.now());
  EXPECT_EQ(engine.tubes(), Words{"default"});
}

TEST_F(EngineTest, EveryAnswerNamesTheAppendThatItReports) {
  const PutOutcome put = engine.put(producer, queue.now(), {}, "job");
  EXPECT_EQ(put.durable_at, 1u);
  EXPECT_EQ(engine.peek(queue.now(), put.id)->durable_at, 1u);
  const auto got = engine.reserve(worker, queue.now(), 0);
  EXPECT_EQ(got->job.durable_at, 1u);
  queue.put(producer, "another");
  EXPECT_EQ(engine.touch(worker, queue.now(), put.id).durable_at, 1u);
  EXPECT_EQ(engine.remove(worker, queue.now(), put.id).durable_at, 3u);
  EXPECT_EQ(engine.remove(worker, queue.now(), put.id).durable_at, 3u)
      << "that it is gone may not be durable yet";
}

}  // namespace
}  // namespace carillon::queue
