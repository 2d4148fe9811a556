// A kick goes on in steps while other clients change the same tube.

#include <gtest/gtest.h>

#include <vector>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

class EngineKick : public EngineTest {
 protected:
  std::vector<JobId> put(int jobs, PutOrder order = {.due_in = kDay}) {
    std::vector<JobId> ids;
    for (int i = 0; i < jobs; ++i) ids.push_back(queue.put(producer, "job", order));
    return ids;
  }
  void bury(int jobs, const PutOrder& order = {}) {
    for (const JobId id : put(jobs, order)) {
      ASSERT_TRUE(engine.reserve_job(worker, queue.now(), id));
      ASSERT_TRUE(engine.bury(worker, queue.now(), id, 0).done);
    }
  }
  void finish() {
    while (!kick.done) engine.kick(producer, queue.now(), kick);
  }

  Kick kick{.bound = 1'000'000};
};

TEST_F(EngineKick, AStepKicks16Jobs) {
  put(40);
  for (const std::uint64_t kicked : {16u, 32u, 40u}) {
    EXPECT_FALSE(kick.done);
    engine.kick(producer, queue.now(), kick);
    EXPECT_EQ(kick.kicked, kicked);
    EXPECT_EQ(counts().ready, kicked);
  }
  EXPECT_TRUE(kick.done);
}

TEST_F(EngineKick, JobsDeletedMeanwhileAreNotCounted) {
  const std::vector<JobId> ids = put(40);
  engine.kick(producer, queue.now(), kick);
  for (std::size_t i = 20; i < 30; ++i) engine.remove(worker, queue.now(), ids[i]);
  finish();
  EXPECT_EQ(kick.kicked, 30u);
  EXPECT_EQ(counts().ready, 30u);
}

TEST_F(EngineKick, AJobThatIsReleasedWithADelayMeanwhileIsNotKickedForEver) {
  put(40, {.due_in = 1'000});
  for (int steps = 0; !kick.done; ++steps) {
    ASSERT_LT(steps, 10);
    engine.kick(producer, queue.now(), kick);
    for (auto got = engine.reserve(worker, queue.now(), 0); got->kind == Delivery::Kind::kReserved;
         got = engine.reserve(worker, queue.now(), 0))
      ASSERT_TRUE(engine.release(worker, queue.now(), got->job.id, 0, 2'000).done);
  }
  EXPECT_EQ(kick.kicked, 40u);
  EXPECT_EQ(counts().delayed, 40u);
}

// The kick once met those of the first group again, and left out the second one.
TEST_F(EngineKick, AJobThatExpiresAsItIsKickedIsKickedOnce) {
  bury(16, {.group = "x", .expires_in = 100, .at_expiry = AtExpiry::kDead});
  bury(4, {.group = "y"});
  queue.pass(100);
  for (; !kick.done; queue.pass(1)) engine.kick(producer, queue.now(), kick);
  EXPECT_EQ(kick.kicked, 20u);
  for (JobId id = 1; id <= 20; ++id)
    EXPECT_EQ(state(id), id <= 16 ? JobState::kBuried : JobState::kReady) << id;
}

TEST_F(EngineKick, AJobThatIsBuriedMeanwhileIsNotKickedForOneThatIsGone) {
  bury(20);
  engine.kick(producer, queue.now(), kick);
  const auto got = engine.reserve(worker, queue.now(), 0);
  ASSERT_TRUE(engine.bury(worker, queue.now(), got->job.id, 0).done);
  engine.remove(worker, queue.now(), 20);
  finish();
  EXPECT_EQ(kick.kicked, 19u);
  EXPECT_EQ(counts().buried, 1u);
}

// Each step once read all of them, to find the last job.
TEST_F(EngineKick, JobsReservedBeforeTheirTimeArePassedOverInSteps) {
  const std::vector<JobId> ids = put(101);
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_TRUE(engine.reserve_job(worker, queue.now(), ids[i]));
  int steps = 1;
  for (; !kick.done; ++steps) engine.kick(producer, queue.now(), kick);
  EXPECT_EQ(steps, 8);  // 16 records each
  EXPECT_EQ(kick.kicked, 1u);
  EXPECT_EQ(counts().ready, 1u);
}

TEST_F(EngineKick, APeekAtDelayedJobsPassesOverReservedOnesInSteps) {
  const std::vector<JobId> ids = put(101);
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_TRUE(engine.reserve_job(worker, queue.now(), ids[i]));
  DelayedPeek peek;
  for (int steps = 1; steps < 7; ++steps) {
    engine.peek_delayed(producer, queue.now(), peek);
    ASSERT_FALSE(peek.done);
  }
  engine.peek_delayed(producer, queue.now(), peek);
  EXPECT_TRUE(peek.done);
  EXPECT_EQ(peek.found.value().id, ids[100]);
}

TEST_F(EngineKick, JobsThatBecomeReadyMeanwhileAreNotCounted) {
  put(40, {.due_in = 1'000});
  engine.kick(producer, queue.now(), kick);
  queue.pass(2'000);
  finish();
  EXPECT_EQ(kick.kicked, 16u);
  EXPECT_EQ(counts().ready, 40u);
}

TEST_F(EngineKick, ATubeThatIsEmptiedMeanwhileEndsIt) {
  for (const Millis delay : {kDay, Millis{1'000}}) {
    const std::vector<JobId> ids = put(40, {.due_in = delay});
    kick = {.bound = 1'000'000};
    engine.kick(producer, queue.now(), kick);
    for (const JobId id : ids) ASSERT_TRUE(engine.remove(worker, queue.now(), id).done);
    engine.kick(producer, queue.now(), kick);
    EXPECT_TRUE(kick.done);
    EXPECT_EQ(kick.kicked, 16u);
    EXPECT_EQ(engine.stats().jobs.ready, 0u);
  }
}

TEST_F(EngineKick, AFailureOfTheFirstStepIsThrownAndChangesNothing) {
  bury(20);
  queue.store().faults.records = true;
  EXPECT_THROW(engine.kick(producer, queue.now(), kick), StoreError);
  queue.store().faults = {};
  EXPECT_TRUE(kick.done);
  EXPECT_EQ(counts().buried, 20u);
}

TEST_F(EngineKick, AFailureHalfWayEndsItAndItCountsWhatWasKicked) {
  put(40);
  engine.kick(producer, queue.now(), kick);
  queue.store().faults.records = true;
  engine.kick(producer, queue.now(), kick);
  queue.store().faults = {};
  EXPECT_TRUE(kick.done);
  EXPECT_EQ(kick.kicked, 16u);
  EXPECT_FALSE(kick.error.empty());
  EXPECT_EQ(counts().ready, 16u);
}

}  // namespace
}  // namespace carillon::queue
