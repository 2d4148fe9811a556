// How long the dead jobs of a tube are kept.

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "carillon/queue/job_bulk.h"
#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

class EngineRetention : public EngineTest {
 protected:
  void keep(Millis retention, std::string_view tube = "default") {
    queue.engine().set_tube(queue.now(), tube, {.retention = retention});
  }
  // Puts a job that has failed for good.
  JobId dead(PutOrder order = {}) {
    order.retry.max_attempts = 1;
    const JobId id = queue.put(producer, "job", order);
    engine.reserve_job(worker, queue.now(), id);
    EXPECT_EQ(engine.fail(worker, queue.now(), id, {}).result, FailOutcome::Result::kDead);
    return id;
  }
  bool is_there(JobId id) { return queue.engine().peek(queue.now(), id).has_value(); }
  // Does all that is due.
  void settle() {
    for (int i = 0; i < 10'000 && queue.engine().next_wakeup() <= queue.now().mono_ns; ++i)
      queue.engine().advance(queue.now());
  }
  void pass(Millis ms) {
    queue.pass(ms);
    settle();
  }
  TubeStats stats(std::string_view tube = "default") {
    return *queue.engine().tube_stats(queue.now(), tube);
  }
};

TEST_F(EngineRetention, ADeadJobGoesAtItsMillisecondAndNotBefore) {
  keep(kHour);
  const JobId first = dead();
  pass(10);
  const JobId second = dead();
  pass(kHour - 11);
  EXPECT_TRUE(is_there(first));
  pass(1);
  EXPECT_FALSE(is_there(first));
  EXPECT_TRUE(is_there(second));
  pass(9);
  EXPECT_TRUE(is_there(second));
  pass(1);
  EXPECT_FALSE(is_there(second));
  EXPECT_EQ(stats().dead_deleted, 2U);
  EXPECT_EQ(stats().deletes, 2U);
  EXPECT_EQ(stats().deaths, 2U);
  EXPECT_EQ(engine.stats(queue.now()).totals.dead_deleted, 2U);
  EXPECT_EQ(engine.next_wakeup(), std::nullopt) << "nothing is awaited any more";
}

TEST_F(EngineRetention, WhatAWorkerHasBuriedStays) {
  keep(1'000);
  for (int i = 0; i < 40; ++i) {
    queue.put(producer, "job");
    engine.bury_job(queue.now(), static_cast<JobId>(i) + 1);
  }
  const JobId id = dead();
  pass(1'000);
  EXPECT_FALSE(is_there(id));
  EXPECT_EQ(counts().buried, 40U);
  EXPECT_EQ(engine.next_wakeup(), std::nullopt);
}

TEST_F(EngineRetention, AJobThatIsKickedIsNotDeadAnyMore) {
  keep(kHour);
  const JobId id = dead();
  pass(kHour - 1);
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 1), 1U);
  pass(1);
  EXPECT_EQ(state(id), JobState::kReady);
  engine.reserve_job(worker, queue.now(), id);
  engine.fail(worker, queue.now(), id, {});
  pass(kHour - 1);
  EXPECT_TRUE(is_there(id)) << "it has died anew";
  pass(1);
  EXPECT_FALSE(is_there(id));
}

TEST_F(EngineRetention, WithoutItTheDeadStayAndANewOneAppliesToThoseThatAreThere) {
  const JobId id = dead();
  pass(10 * kHour);
  EXPECT_TRUE(is_there(id));
  keep(20 * kHour);
  settle();
  pass(10 * kHour - 1);
  EXPECT_TRUE(is_there(id));
  keep(0);
  pass(kHour);
  EXPECT_TRUE(is_there(id));
  keep(kHour);
  settle();
  EXPECT_FALSE(is_there(id));
}

TEST_F(EngineRetention, AWallClockThatIsSetForwardMakesNoJobGoEarly) {
  keep(kHour);
  const JobId id = dead();
  queue.step_wall_clock(static_cast<std::int64_t>(10 * kHour));
  queue.pass(0);
  settle();
  pass(kHour - 10);
  EXPECT_TRUE(is_there(id));
  pass(20);
  EXPECT_FALSE(is_there(id));
}

TEST_F(EngineRetention, AJobThatDiedWhileTheWallClockWasAheadGoesByTheRightClock) {
  keep(kHour);
  queue.step_wall_clock(static_cast<std::int64_t>(1'000 * kHour));
  const JobId id = dead();
  queue.step_wall_clock(-static_cast<std::int64_t>(1'000 * kHour));
  const JobId next = dead();
  pass(kHour - 10);
  EXPECT_TRUE(is_there(id));
  EXPECT_TRUE(is_there(next));
  pass(20);
  EXPECT_FALSE(is_there(id));
  EXPECT_FALSE(is_there(next));
}

TEST_F(EngineRetention, GroupsKeepTheirDeadAsLongAsTheirTube) {
  const JobId before = dead({.group = "a"});
  keep(kHour);
  const JobId in_a = dead({.group = "a"});
  const JobId in_b = dead({.group = "b"});
  settle();
  pass(kHour - 1);
  EXPECT_TRUE(is_there(in_a) && is_there(in_b) && is_there(before));
  queue.restart();
  settle();
  EXPECT_TRUE(is_there(in_a) && is_there(in_b) && is_there(before));
  pass(1);
  EXPECT_FALSE(is_there(in_a) || is_there(in_b) || is_there(before));
  EXPECT_EQ(stats().dead_deleted, 3U);
  EXPECT_EQ(stats().groups, 0U) << "they are forgotten";
}

TEST_F(EngineRetention, ADeadJobThatMovesIsKeptAsItsNewTubeSays) {
  const JobId old = dead();
  keep(kHour, "grave");
  engine.use(producer, "grave");
  dead();
  pass(1);
  JobBulk move{.action = JobBulk::Action::kMove, .list = {.tube = "default"}, .to = "grave"};
  while (!move.ended()) engine.change_jobs(queue.now(), move);
  EXPECT_EQ(counts("grave").buried, 2U);
  pass(kHour - 2);
  EXPECT_TRUE(is_there(old));
  pass(1);
  EXPECT_FALSE(is_there(old));
  EXPECT_EQ(counts("grave").buried, 0U);
}

TEST_F(EngineRetention, TheKeyIsFreeAsTheJobWasNotDone) {
  keep(kHour);
  const JobId id = dead({.key = "k", .key_window = kHour});
  EXPECT_EQ(engine.put(producer, queue.now(), {.key = "k"}, "x").owner, KeyOwner::kDead);
  pass(kHour);
  EXPECT_FALSE(is_there(id));
  EXPECT_TRUE(engine.put(producer, queue.now(), {.key = "k"}, "x").done());
}

TEST_F(EngineRetention, AStoreThatFailsIsTriedAgain) {
  keep(kHour);
  const JobId id = dead();
  pass(kHour - 1);
  queue.store().faults.appends = true;
  EXPECT_THROW(queue.pass(1), StoreError);
  EXPECT_TRUE(is_there(id));
  queue.store().faults.appends = false;
  pass(1'000);
  EXPECT_FALSE(is_there(id));
}

TEST_F(EngineRetention, ManyGoInSteps) {
  keep(kHour);
  for (int i = 0; i < 1'000; ++i) dead();
  pass(kHour - 1);
  queue.pass(1);
  const std::size_t before = queue.store().changed;
  engine.touch(worker, queue.now(), 1);  // a command does a small part
  EXPECT_LE(queue.store().changed - before, 80U);
  settle();
  EXPECT_EQ(counts().buried, 0U);
  EXPECT_EQ(stats().dead_deleted, 1'000U);
}

TEST_F(EngineRetention, WhatIsTooLongIsRefused) {
  EXPECT_THROW(keep(kLongestRetention + 1), std::invalid_argument);
  keep(kLongestRetention);
  const JobId id = dead();
  pass(1'000 * kHour);
  EXPECT_TRUE(is_there(id));
}

}  // namespace
}  // namespace carillon::queue
