// The limits of tubes: how many jobs run at once, and how fast they go out.
// Row Q9 of the product's table.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

class EngineRates : public EngineTest {
 protected:
  void set(const Limits& limits) { engine.set_tube(queue.now(), "default", {.limits = limits}); }
  void put(int jobs) {
    for (int i = 0; i < jobs; ++i) queue.put(producer, "job");
  }
  JobId reserve(ClientId client) {
    const auto got = engine.reserve(client, queue.now(), 0);
    return got->kind == Delivery::Kind::kReserved ? got->job.id : 0;
  }
};

TEST_F(EngineRates, NoMoreJobsRunThanMay) {
  set({.max_running = 2});
  put(5);
  EXPECT_EQ(reserve(worker), 1U);
  EXPECT_EQ(reserve(worker), 2U);
  EXPECT_EQ(reserve(worker), 0U);
  queue.wait(other);
  EXPECT_TRUE(engine.remove(worker, queue.now(), 1).done);
  EXPECT_EQ(queue.deliveries(), Words{"3:job"}) << "at once";
  EXPECT_TRUE(engine.bury(worker, queue.now(), 2, 0).done);
  EXPECT_EQ(reserve(worker), 4U);
  EXPECT_EQ(counts().reserved, 2U);
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(EngineRates, ALostWorkerAndATimeOutLetOthersRun) {
  set({.max_running = 1});
  put(1);
  EXPECT_EQ(reserve(worker), 1U);
  queue.wait(other);
  engine.disconnect(worker, queue.now());
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
  queue.wait(producer);
  queue.pass(60'001);
  EXPECT_EQ(queue.deliveries(), Words{"1:job"});
}

TEST_F(EngineRates, AReserveByIdCountsAndIsNotRefused) {
  set({.max_running = 1});
  put(3);
  EXPECT_EQ(reserve(worker), 1U);
  EXPECT_TRUE(engine.reserve_job(worker, queue.now(), 2));
  engine.remove(worker, queue.now(), 1);
  EXPECT_EQ(reserve(other), 0U);
  engine.remove(worker, queue.now(), 2);
  EXPECT_EQ(reserve(other), 3U);
}

TEST_F(EngineRates, AWaitingClientIsServedByTheRefill) {
  set({.rate = 1, .period = 1'000, .burst = 2});
  put(4);
  EXPECT_EQ(reserve(worker), 1U);
  EXPECT_EQ(reserve(worker), 2U);
  queue.wait(other);
  queue.pass(999);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
  EXPECT_EQ(reserve(worker), 0U);
  queue.pass(1'000);
  EXPECT_EQ(reserve(worker), 4U);
}

TEST_F(EngineRates, LimitsThatAreRaisedServeAtOnce) {
  set({.max_running = 1});
  put(3);
  EXPECT_EQ(reserve(worker), 1U);
  queue.wait(other);
  set({.max_running = 2});
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
  queue.wait(producer);
  set({});
  EXPECT_EQ(queue.deliveries(), Words{"1:job"});
}

TEST_F(EngineRates, ARestartBeginsWithAnEmptyBucketAndNothingRuns) {
  set({.max_running = 1, .rate = 1, .period = 1'000, .burst = 5});
  put(2);
  EXPECT_EQ(reserve(worker), 1U);
  queue.restart();
  const ClientId client = queue.engine().connect();
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  queue.pass(1'000);
  EXPECT_EQ(queue.reserve(client), "job");
}

TEST_F(EngineRates, WhatIsOutOfRangeIsRefused) {
  EXPECT_THROW(set({.rate = kMostTokens + 1, .period = 1, .burst = 1}), std::invalid_argument);
  EXPECT_THROW(set({.rate = 1, .period = 0, .burst = 1}), std::invalid_argument);
  EXPECT_THROW(set({.rate = 1, .period = kLongestPeriod + 1, .burst = 1}), std::invalid_argument);
  EXPECT_THROW(set({.rate = 1, .period = 1, .burst = 0}), std::invalid_argument);
  EXPECT_THROW(set({.burst = 1}), std::invalid_argument);
}

TEST_F(EngineRates, AJobThatIsGivenBackPutsItsTokenBack) {
  set({.rate = 1, .period = 1'000, .burst = 1});
  put(2);
  EXPECT_EQ(reserve(worker), 1U);
  EXPECT_EQ(reserve(worker), 0U);
  queue.wait(other);
  EXPECT_TRUE(engine.give_back(worker, queue.now(), 1));
  EXPECT_EQ(queue.deliveries(), Words{"3:job"}) << "at once";
  EXPECT_EQ(reserve(worker), 0U);
}

TEST_F(EngineRates, TheWallClockIsNothingToARate) {
  set({.rate = 1, .period = 10'000, .burst = 1});
  put(3);
  EXPECT_EQ(reserve(worker), 1U);
  queue.step_wall_clock(3'600'000);
  EXPECT_EQ(reserve(worker), 0U);
  queue.pass(9'999);
  EXPECT_EQ(reserve(worker), 0U);
  queue.step_wall_clock(-7'200'000);
  queue.pass(1);
  EXPECT_EQ(reserve(worker), 2U);
}

TEST_F(EngineRates, AClientThatWaitsAtALimitCostsNoTurns) {
  set({.max_running = 1, .rate = 1, .period = 10'000, .burst = 1});
  put(3);
  EXPECT_EQ(reserve(worker), 1U);
  queue.wait(other);
  const std::uint64_t end = queue.now().mono_ns + 50'000 * kMs;
  int turns = 0;
  for (; *engine.next_wakeup() < end; ++turns) {
    queue.add_ns(*engine.next_wakeup() - queue.now().mono_ns);
    engine.advance(queue.now());
  }
  EXPECT_LE(turns, 10) << "some for the wheels, one for the token, which is of no use yet";
  EXPECT_TRUE(engine.remove(worker, queue.now(), 1).done);
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
}

TEST_F(EngineRates, AJobRunsUntilItsLostAttemptIsStored) {
  engine.set_tube(queue.now(), "default",
                  {.retry = {.max_attempts = 5, .backoff = 60'000, .lost_fails = true},
                   .limits = {.max_running = 1}});
  put(2);
  EXPECT_EQ(reserve(worker), 1U);
  queue.wait(other);
  queue.store().faults.appends = true;
  engine.disconnect(worker, queue.now());
  EXPECT_THROW(queue.pass(1), StoreError);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.store().faults.appends = false;
  queue.pass(1'000);
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
  EXPECT_EQ(state(1), JobState::kDelayed);
}

TEST_F(EngineRates, AJobThatHasExpiredDoesNotRun) {
  set({.max_running = 1});
  for (int i = 0; i < 3; ++i) queue.put(producer, "brief", {.expires_in = 1'000});
  queue.put(producer, "job");
  queue.store().faults.appends = true;
  EXPECT_THROW(queue.pass(1'000), StoreError);
  EXPECT_EQ(counts().reserved, 3U) << "their ends are not stored yet";
  EXPECT_EQ(queue.reserve(worker), "job");
  EXPECT_EQ(reserve(other), 0U);
  queue.store().faults.appends = false;
  queue.pass(1'000);
  EXPECT_EQ(counts().reserved, 1U);
}

TEST_F(EngineRates, SettingsThatCannotBeStoredAreNot) {
  set({.max_running = 1});
  put(2);
  EXPECT_EQ(reserve(worker), 1U);
  queue.store().faults.appends = true;
  EXPECT_THROW(set({}), StoreError);
  EXPECT_THROW(engine.set_tube(queue.now(), "new", {.limits = {.max_running = 1}}), StoreError);
  EXPECT_EQ(engine.tube_stats(queue.now(), "new"), std::nullopt);
  EXPECT_EQ(reserve(other), 0U);
  queue.store().faults.appends = false;
}

}  // namespace
}  // namespace carillon::queue
