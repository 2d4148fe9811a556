// A wall clock that is set: what that costs, when the engine notices it, and what fails meanwhile.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

TEST(EngineClock, AClockAheadForAMomentLeavesNoFarJobsInMemory) {
  VirtualQueue queue;
  const ClientId client = queue.engine().connect();
  for (int n = 0; n < 100; ++n) queue.put(client, "x", {.due_at = queue.utc() + Step::kDay});
  queue.step_wall_clock(Step::kTenYears);
  queue.pass(0);
  EXPECT_EQ(queue.engine().stats().jobs.loaded, 100u);
  queue.step_wall_clock(-Step::kTenYears);
  queue.pass(0);
  EXPECT_EQ(queue.engine().stats().jobs.loaded, 0u);
  queue.engine().check_invariants();
}

// Once they were loaded by their due times, their records say when they are due.
TEST(EngineClock, FarDelaysThatASlowClockCountedTakeNoMemoryWhenItIsPutRight) {
  VirtualQueue queue({.max_loaded_per_tube = 30, .step = 10});
  const ClientId client = queue.engine().connect();
  queue.step_wall_clock(-Step::kDay);
  for (int n = 0; n < 100; ++n) queue.put(client, "x", {.due_in = Step::kHour});
  queue.step_wall_clock(Step::kDay);
  for (int n = 0; n < 100; ++n) queue.pass(0);
  EXPECT_EQ(queue.engine().stats().jobs.loaded, 0u);
  EXPECT_EQ(queue.engine().job_stats(queue.now(), 7)->record.due, queue.utc() + Step::kHour + 2);
  queue.engine().check_invariants();
  queue.restart();
  EXPECT_EQ(queue.engine().stats().jobs.loaded, 0u);
}

// A job in memory follows the clock at once. Its record follows in steps.
TEST(EngineClock, ACommandAfterAStepBackStoresFewJobs) {
  VirtualQueue queue;
  Engine& engine = queue.engine();
  const ClientId client = engine.connect();
  queue.step_wall_clock(Step::kHour);
  for (int n = 0; n < 1'000; ++n) queue.put(client, "x", {.due_in = 40'000});
  const std::size_t before = queue.store().changed;
  queue.step_wall_clock(-Step::kHour);
  ASSERT_TRUE(engine.tube_stats(queue.now(), "default"));
  EXPECT_LE(queue.store().changed - before, 64u);
  EXPECT_EQ(engine.stats().jobs.loaded, 1'000u);
  EXPECT_EQ(engine.job_stats(queue.now(), 1'000)->time_left, 40'001u);
  engine.check_invariants();
  for (int n = 0; n < 10; ++n) queue.pass(0);
  EXPECT_EQ(queue.store().changed - before, 1'000u);
  EXPECT_EQ(engine.job_stats(queue.now(), 1'000)->record.due, queue.utc() + 40'002);
  EXPECT_EQ(engine.stats().jobs.loaded, 1'000u);
}

TEST(EngineClock, JobsInMemoryFollowTheClockThoughTheStoreFails) {
  VirtualQueue queue;
  const ClientId client = queue.engine().connect();
  queue.step_wall_clock(Step::kHour);
  queue.put(client, "held", {.priority = 1});
  queue.put(client, "job", {.priority = 2, .due_in = 30'000});
  ASSERT_EQ(queue.reserve(client), "held");
  queue.store().faults.appends = true;
  queue.step_wall_clock(-Step::kHour);
  EXPECT_THROW(queue.pass(0), StoreError);
  queue.add_ns(30'001 * kMs);
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  queue.add_ns(kMs);
  EXPECT_EQ(queue.reserve(client), "job");
  ASSERT_TRUE(queue.engine().give_back(client, queue.now(), 1));
  EXPECT_EQ(queue.reserve(client), "held") << "it was ready, and is ready again";
  queue.store().faults = {};
  queue.engine().check_invariants();
}

TEST(EngineClock, ACrashWhileRecordsFollowAStepBackMakesNothingEarlyOrLate) {
  VirtualQueue queue({.step = 10});
  const ClientId client = queue.engine().connect();
  queue.step_wall_clock(Step::kHour);
  for (int n = 0; n < 100; ++n) queue.put(client, "x", {.due_in = 30'000});
  queue.step_wall_clock(-Step::kHour);
  queue.pass(0);
  queue.restart();
  queue.pass(29'999);
  for (int n = 0; n < 30; ++n) queue.pass(0);
  EXPECT_EQ(queue.engine().stats().jobs.ready, 0u);
  queue.pass(3);
  for (int n = 0; n < 30; ++n) queue.pass(0);
  EXPECT_EQ(queue.engine().stats().jobs.ready, 100u);
  queue.engine().check_invariants();
}

TEST(EngineClock, AFailingStoreDelaysFarJobsAndIsReported) {
  VirtualQueue queue({.load_ahead = 10});
  const ClientId client = queue.engine().connect();
  queue.step_wall_clock(Step::kHour);
  queue.put(client, "job", {.due_in = 1'000});
  queue.add_ns(1'002 * kMs);
  queue.store().faults.appends = true;
  queue.step_wall_clock(-Step::kHour);
  EXPECT_THROW(queue.pass(0), StoreError);
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  queue.store().faults = {};
  queue.pass(999);
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  queue.pass(1);
  EXPECT_EQ(queue.reserve(client), "job");
  queue.engine().check_invariants();
}

// The machine may have slept.
TEST(EngineClock, TimeInWhichNothingRanCounts) {
  VirtualQueue queue;
  const ClientId client = queue.engine().connect();
  queue.put(client, "delay", {.due_in = 30'000});
  queue.put(client, "moment", {.due_at = queue.utc() + 30'000});
  queue.add_ns(Step::kHour * kMs);
  queue.pass(0);
  EXPECT_EQ(queue.reserve(client), "delay");
  EXPECT_EQ(queue.reserve(client), "moment");
}

// NTP daemons, and two clocks that are not read at the same moment.
TEST(EngineClock, LessThanAMillisecondIsNoStepAndMakesNothingEarly) {
  VirtualQueue queue;
  const ClientId client = queue.engine().connect();
  queue.put(client, "job", {.due_in = 10});
  Now now = queue.now();
  now.mono_ns += 10 * kMs;
  now.utc_ns += 10 * kMs - 900'000;
  queue.engine().advance(now);
  EXPECT_FALSE(queue.engine().reserve(client, now, {}));
  EXPECT_GT(*queue.engine().next_wakeup(), now.mono_ns);
  now.mono_ns += 900'000;
  now.utc_ns += 900'000;
  queue.engine().advance(now);
  EXPECT_EQ(queue.engine().take_deliveries().size(), 1u);
  EXPECT_EQ(queue.engine().clock_moved(), 0);
}

TEST(EngineClock, AJobWhoseDelayEndsWithTheStepGoesToAWaitingClient) {
  VirtualQueue queue;
  const ClientId client = queue.engine().connect();
  const ClientId waiting = queue.engine().connect();
  queue.step_wall_clock(Step::kHour);
  queue.put(client, "job", {.due_in = 30'000});
  queue.wait(waiting);
  queue.add_ns(30'010 * kMs);
  queue.step_wall_clock(-Step::kHour);
  queue.pass(0);
  EXPECT_EQ(queue.deliveries(), (std::vector<std::string>{"2:job"}));
  queue.engine().check_invariants();
}

// ... and its nanoseconds fit into no 64 bits.
TEST(EngineClock, TheLastMomentIsFarAway) {
  VirtualQueue queue({.load_ahead = kLastDue});
  queue.put(queue.engine().connect(), "job", {.due_at = kLastDue});
  queue.pass(0);
  EXPECT_GT(*queue.engine().next_wakeup(), queue.now().mono_ns + Step::kDay * kMs);
}

TEST(EngineClock, AStepIsNoticedByADisconnect) {
  VirtualQueue queue;
  const ClientId worker = queue.engine().connect();
  const ClientId waiting = queue.engine().connect();
  queue.put(worker, "held", {.due_at = queue.utc() + 40'000});
  ASSERT_TRUE(queue.engine().reserve_job(worker, queue.now(), 1));
  queue.wait(waiting);
  queue.step_wall_clock(Step::kHour);
  queue.engine().disconnect(worker, queue.now());
  queue.engine().check_invariants();
  EXPECT_EQ(queue.deliveries(), (std::vector<std::string>{"2:held"}));
}

TEST(EngineClock, TimeLeftIsBelowWhatWasAskedFor) {
  VirtualQueue queue;
  const ClientId client = queue.engine().connect();
  queue.add_ns(300'000);
  const JobId id = queue.put(client, "job", {.due_in = 10'000, .ttr = 10'000});
  EXPECT_EQ(queue.engine().job_stats(queue.now(), id)->time_left, 9'999u);
  queue.add_ns(1'000);
  EXPECT_EQ(queue.engine().job_stats(queue.now(), id)->time_left, 9'999u);
  ASSERT_TRUE(queue.engine().reserve_job(client, queue.now(), id));
  EXPECT_EQ(queue.engine().job_stats(queue.now(), id)->time_left, 9'999u);
  ASSERT_TRUE(queue.engine().pause(queue.now(), "default", 10'000));
  EXPECT_EQ(queue.engine().tube_stats(queue.now(), "default")->pause_left, 9'999u);
  queue.pass(9'000);
  EXPECT_EQ(queue.engine().job_stats(queue.now(), id)->time_left, 999u);
}

}  // namespace
}  // namespace carillon::queue
