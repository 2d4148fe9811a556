// What the engine does if the store fails: a command has no effect, a read error that may pass
// changes no job, and a damaged job is buried.

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

// --- Bodies.

TEST_F(EngineFailures, AReadThatFailsFailsTheCommandAndChangesNoJob) {
  const JobId ready = queue.put(producer, "ready");
  const JobId delayed = queue.put(producer, "delayed", {.due_in = 1'000});
  const JobId buried = queue.put(producer, "buried", {.priority = 9});
  ASSERT_TRUE(engine.reserve_job(worker, queue.now(), buried));
  ASSERT_TRUE(engine.bury(worker, queue.now(), buried, 0).done);

  faults.bodies = 1;
  for (int i = 0; i < 1'000; ++i) ASSERT_THROW(queue.reserve(worker), StoreError);
  EXPECT_THROW(engine.reserve(worker, queue.now(), 1'000), StoreError);
  EXPECT_THROW(engine.reserve(worker, queue.now(), {}), StoreError);
  for (const JobId id : {ready, delayed, buried}) {
    EXPECT_THROW(engine.reserve_job(worker, queue.now(), id), StoreError);
    EXPECT_THROW(engine.peek(queue.now(), id), StoreError);
  }
  EXPECT_THROW(engine.peek_ready(worker, queue.now()), StoreError);
  EXPECT_THROW(engine.peek_delayed(worker, queue.now()), StoreError);
  EXPECT_THROW(engine.peek_buried(worker, queue.now()), StoreError);

  EXPECT_EQ(state(ready), JobState::kReady);
  EXPECT_EQ(state(delayed), JobState::kDelayed);
  EXPECT_EQ(state(buried), JobState::kBuried);
  EXPECT_GT(engine.next_wakeup(), queue.now().mono_ns) << "nothing is tried again by itself";
  faults.bodies = 0;
  EXPECT_EQ(queue.reserve(worker), "ready");
}

TEST_F(EngineFailures, TheErrorNamesTheJob) {
  queue.put(producer, "job");
  faults.bodies = 1;
  try {
    queue.reserve(worker);
    ADD_FAILURE() << "it was read";
  } catch (const StoreError& error) {
    EXPECT_EQ(std::string(error.what()), "job 1 cannot be handed out: input/output error");
  }
}

// Each of them would otherwise have to read, on a disk whose failing reads may take seconds.
TEST_F(EngineFailures, WaitingClientsWaitOnWhileABodyCannotBeRead) {
  queue.put(producer, "first", {.due_in = 1'000});
  queue.put(producer, "second", {.due_in = 1'001});
  queue.wait(worker);
  queue.wait(other);
  faults.bodies = 1;
  EXPECT_THROW(queue.pass(1'001), StoreError) << "the owner is told";
  EXPECT_EQ(queue.deliveries(), Words{});
  EXPECT_NO_THROW(engine.advance(queue.now())) << "once";
  EXPECT_GT(engine.next_wakeup(), queue.now().mono_ns) << "it is not tried again at once";
  EXPECT_THROW(queue.pass(100), StoreError);
  EXPECT_THROW(queue.pass(100), StoreError);
  EXPECT_EQ(counts().ready, 2u);

  faults.bodies = 0;
  queue.pass(99);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), (Words{"2:first", "3:second"}));
}

TEST_F(EngineFailures, AWaitEndsInTimeWhileABodyCannotBeRead) {
  queue.wait(worker, 150);
  faults.bodies = 1;
  queue.put(producer, "job");
  EXPECT_THROW(queue.pass(149), StoreError);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"2:TIMED_OUT"});
  EXPECT_EQ(counts().ready, 1u);
}

TEST_F(EngineFailures, AnotherTubeIsServedMeanwhile) {
  engine.watch(worker, "other");
  engine.use(other, "other");
  queue.wait(worker);
  faults.bodies = 1;
  queue.put(producer, "unreadable");
  faults.bodies = 0;
  queue.put(other, "of the other tube");
  EXPECT_EQ(queue.deliveries(), Words{"2:of the other tube"});
  EXPECT_THROW(engine.advance(queue.now()), StoreError);
  EXPECT_EQ(queue.reserve(worker), "unreadable");
}

TEST_F(EngineFailures, AJobWithADamagedBodyIsBuriedAndStallsNobody) {
  queue.wait(worker);
  queue.store().damaged = {1, 2};
  queue.put(producer, "damaged");
  const auto deliveries = engine.take_deliveries();
  ASSERT_EQ(deliveries.size(), 1u);
  EXPECT_EQ(deliveries[0].kind, Delivery::Kind::kFailed);
  EXPECT_EQ(deliveries[0].error, "job 1 is buried, as its body is damaged: checksum mismatch");
  EXPECT_EQ(state(1), JobState::kBuried);

  queue.put(producer, "damaged, too");
  queue.put(producer, "healthy");
  faults.appends = true;
  EXPECT_THROW(queue.reserve(worker), StoreError);
  EXPECT_EQ(state(2), JobState::kReady) << "it cannot be buried, so it stays";
  faults.appends = false;
  EXPECT_EQ(queue.reserve(worker), "FAILED");
  EXPECT_EQ(state(2), JobState::kBuried);
  EXPECT_EQ(queue.reserve(worker), "healthy");
  EXPECT_THROW(engine.reserve_job(worker, queue.now(), 1), StoreDamage);
  EXPECT_EQ(state(1), JobState::kBuried);
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
