// What the engine does if the store fails: a command has no effect, and a job whose body cannot be
// read is given back.

#include <gtest/gtest.h>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

class EngineFailures : public EngineTest {
 protected:
  void TearDown() override {
    queue.store().faults = {};
    EngineTest::TearDown();
  }

  FailingStore::Faults& faults = queue.store().faults;
};

TEST_F(EngineFailures, ACommandWhoseAppendFailsHasNoEffect) {
  const JobId held = queue.put(worker, "held");
  const JobId delayed = queue.put(worker, "delayed", {.due_in = 1'000});
  ASSERT_EQ(queue.reserve(worker), "held");
  const JobId ready = queue.put(worker, "ready");

  const Now now = queue.now();
  faults.appends = true;
  EXPECT_THROW(engine.put(worker, now, {}, "lost"), StoreError);
  EXPECT_THROW(engine.put(worker, now, {.due_in = 5}, "lost"), StoreError);
  EXPECT_THROW(engine.release(worker, now, held, 0, 10), StoreError);
  EXPECT_THROW(engine.bury(worker, now, held, 0), StoreError);
  EXPECT_THROW(engine.remove(worker, now, held), StoreError);
  EXPECT_THROW(engine.remove(worker, now, ready), StoreError);
  EXPECT_THROW(kick_all(engine, worker, now, 10), StoreError);
  EXPECT_THROW(engine.kick_job(now, delayed), StoreError);
  engine.check_invariants();
  EXPECT_EQ(state(held), JobState::kReserved);
  EXPECT_EQ(state(ready), JobState::kReady);
  EXPECT_EQ(state(delayed), JobState::kDelayed);
  EXPECT_EQ(engine.stats().jobs.total, 3u);

  faults.appends = false;
  EXPECT_TRUE(engine.release(worker, now, held, 0, 10).done);
  EXPECT_TRUE(engine.remove(worker, now, ready).done);
  EXPECT_EQ(kick_all(engine, worker, now, 10), 2u);
}

TEST_F(EngineFailures, ABuriedJobThatIsCountedAndNotThereIsDamageOfTheStore) {
  const JobId id = queue.put(worker, "job");
  ASSERT_EQ(queue.reserve(worker), "job");
  ASSERT_TRUE(engine.bury(worker, queue.now(), id, 0).done);
  faults.no_buried = true;
  EXPECT_THROW(engine.peek_buried(worker, queue.now()), StoreDamage);
  EXPECT_EQ(kick_all(engine, worker, queue.now(), 10), 0u);
}

// --- Jobs whose bodies cannot be read.

TEST_F(EngineFailures, AJobThatIsGivenBackIsAsBeforeItsReserve) {
  const JobId first = queue.put(producer, "first", {.priority = 1});
  queue.put(producer, "second", {.priority = 2});
  const JobRecord before = engine.job_stats(queue.now(), first)->record;
  ASSERT_EQ(queue.reserve(worker), "first");
  const Sequence last = engine.last_sequence();
  EXPECT_FALSE(engine.give_back(other, queue.now(), first)) << "another one holds it";
  EXPECT_TRUE(engine.give_back(worker, queue.now(), first));
  EXPECT_FALSE(engine.give_back(worker, queue.now(), first)) << "once";
  EXPECT_EQ(state(first), JobState::kReady);
  EXPECT_EQ(engine.job_stats(queue.now(), first)->record, before);
  EXPECT_EQ(engine.last_sequence(), last) << "nothing is appended";
  engine.check_invariants();
  EXPECT_EQ(queue.reserve(other), "first");
}

TEST_F(EngineFailures, AJobThatIsGivenBackGoesToTheNextWaitingClient) {
  const JobId job = queue.put(producer, "job");
  ASSERT_EQ(queue.reserve(worker), "job");
  queue.wait(other);
  EXPECT_TRUE(engine.give_back(worker, queue.now(), job));
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
}

TEST_F(EngineFailures, ADelayedJobThatIsGivenBackIsDelayed) {
  const JobId near = queue.put(producer, "near", {.due_in = 1'000});
  const JobId far = queue.put(producer, "far", {.due_in = 90'000});
  for (const JobId job : {near, far}) {
    ASSERT_TRUE(engine.reserve_job(worker, queue.now(), job));
    EXPECT_TRUE(engine.give_back(worker, queue.now(), job));
    EXPECT_EQ(state(job), JobState::kDelayed);
  }
  EXPECT_EQ(counts().loaded, 1u);
  queue.wait(other);
  queue.pass(999);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"3:near"});
}

// --- Records of far jobs.

class EngineLoadingFailures : public testing::Test {
 protected:
  void SetUp() override {
    queue.put(client, "far", {.due_in = 10'000});
    queue.store().faults.records = true;
  }

  VirtualQueue queue{{.load_ahead = 1'000}};
  Engine& engine = queue.engine();
  ClientId client = engine.connect();
};

TEST_F(EngineLoadingFailures, ALoadThatFailsDoesNotFailACommand) {
  queue.add_ns(9'500 * kMs);
  EXPECT_NO_THROW(queue.put(client, "innocent"));
  EXPECT_THROW(engine.advance(queue.now()), StoreError) << "but the owner is told";
  EXPECT_NO_THROW(engine.advance(queue.now())) << "once";
}

TEST_F(EngineLoadingFailures, AKickThatFailsHalfWayAnswersHowManyJobsWereKicked) {
  queue.put(client, "near", {.due_in = 500});
  EXPECT_EQ(kick_all(engine, client, queue.now(), 10), 1u);
  EXPECT_EQ(queue.reserve(client), "near");
  EXPECT_THROW(kick_all(engine, client, queue.now(), 10), StoreError);
  queue.store().faults = {};
  EXPECT_EQ(kick_all(engine, client, queue.now(), 10), 1u);
}

TEST_F(EngineLoadingFailures, ALoadThatFailsIsTriedAgain) {
  EXPECT_THROW(queue.pass(9'500), StoreError);
  queue.store().faults = {};
  queue.pass(1'000);
  EXPECT_EQ(engine.stats().jobs.loaded, 1u);
  engine.check_invariants();
}

}  // namespace
}  // namespace carillon::queue
