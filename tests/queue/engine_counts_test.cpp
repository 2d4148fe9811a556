// Statistics are true though a tube may not load all of its ready jobs.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

// Carries out everything that is due at this moment.
void settle(VirtualQueue& queue) {
  for (int turns = 0; turns < 10'000; ++turns) {
    try {
      queue.pass(0);
    } catch (const StoreError&) {
      // The engine tries again later.
    }
    const auto wake = queue.engine().next_wakeup();
    if (!wake || *wake > queue.now().mono_ns) return;
  }
  FAIL() << "the work of a moment does not end";
}

// The ready, urgent and delayed jobs by both statistics.
using Numbers = std::array<std::uint64_t, 3>;
Numbers numbers(VirtualQueue& queue) {
  queue.engine().check_invariants();
  const JobCounts tube = queue.engine().tube_stats(queue.now(), "default")->jobs;
  const JobCounts all = queue.engine().stats().jobs;
  const Numbers of_tube{tube.ready, tube.urgent, tube.delayed};
  EXPECT_EQ(of_tube, (Numbers{all.ready, all.urgent, all.delayed}));
  return of_tube;
}

// A job that comes to its second worker is not late again.
TEST(EngineLateness, CountsFromTheDueTimeToTheFirstWorker) {
  VirtualQueue queue(EngineOptions{});
  const ClientId client = queue.engine().connect();
  queue.put(client, "at once");
  const JobId delayed = queue.put(client, "delayed", {.due_in = 1'000, .ttr = 1'000});
  queue.reserve(client);
  queue.pass(1'007);
  EXPECT_EQ(queue.engine().stats().fired, 1u);
  EXPECT_EQ(queue.reserve(client), "delayed");
  const auto lateness = [&] { return queue.engine().stats().lateness; };
  EXPECT_EQ(lateness().jobs[0], 1u) << "at most 1 ms";
  EXPECT_EQ(lateness().jobs[3], 1u) << "5 to 10 ms";
  EXPECT_EQ(lateness().total, 7u);
  queue.pass(1'000);
  EXPECT_EQ(queue.engine().job_stats(queue.now(), delayed)->state, JobState::kReady);
  EXPECT_EQ(queue.reserve(client), "delayed");
  EXPECT_EQ(lateness().total, 7u);
}

TEST(EngineTotals, CountWhatHasHappenedToJobs) {
  VirtualQueue queue(EngineOptions{});
  Engine& engine = queue.engine();
  const ClientId client = engine.connect();
  engine.name_client(client, "host-7");
  EXPECT_EQ(engine.name_of(client), "host-7");
  const JobId first = queue.put(client, "a");
  const JobId second = queue.put(client, "b", {.due_in = kDay});
  engine.kick_job(queue.now(), second);
  for (int i = 0; i < 2; ++i) queue.reserve(client);
  engine.remove(client, queue.now(), first);
  engine.fail(client, queue.now(), second, {.error = "no"});
  const EngineTotals totals = engine.stats().totals;
  EXPECT_EQ(totals.kicked, 1u);
  EXPECT_EQ(totals.reserved, 2u);
  EXPECT_EQ(totals.deleted, 1u);
  EXPECT_EQ(totals.failed, 1u);
  EXPECT_EQ(totals.dead, 0u);
}

TEST(EngineCounts, ReadyJobsThatAreNotLoadedCountAsReady) {
  VirtualQueue queue({.max_loaded_per_tube = 10, .step = 7});
  const ClientId client = queue.engine().connect();
  for (int i = 0; i < 100; ++i) queue.put(client, "now", {.priority = i < 30 ? 2'000u : 0u});
  for (int i = 0; i < 50; ++i) queue.put(client, "in 1 s", {.priority = 0, .due_in = 1'000});
  for (int i = 0; i < 7; ++i) queue.put(client, "tomorrow", {.due_in = kDay});
  settle(queue);
  EXPECT_LE(queue.engine().stats().jobs.loaded, 10u);
  EXPECT_EQ(numbers(queue), (Numbers{100, 70, 57}));
  queue.pass(999);
  settle(queue);
  EXPECT_EQ(numbers(queue), (Numbers{100, 70, 57}));
  queue.pass(1);
  settle(queue);
  EXPECT_EQ(numbers(queue), (Numbers{150, 120, 7}));

  queue.restart();
  settle(queue);
  EXPECT_EQ(numbers(queue), (Numbers{150, 120, 7})) << "counted anew";
  EXPECT_EQ(queue.engine().job_stats(queue.now(), 150)->state, JobState::kReady);
  EXPECT_EQ(queue.engine().job_stats(queue.now(), 151)->state, JobState::kDelayed);
}

TEST(EngineCounts, ReadyJobsThatAreNotLoadedAreCountedWhateverBecomesOfThem) {
  VirtualQueue queue({.max_loaded_per_tube = 5, .step = 3});
  const ClientId client = queue.engine().connect();
  for (int i = 0; i < 40; ++i) queue.put(client, "now");
  settle(queue);
  ASSERT_EQ(numbers(queue), (Numbers{40, 40, 0}));
  Engine& engine = queue.engine();
  ASSERT_TRUE(engine.remove(client, queue.now(), 40).done);
  EXPECT_EQ(numbers(queue), (Numbers{39, 39, 0}));
  ASSERT_TRUE(engine.reserve_job(client, queue.now(), 39));
  EXPECT_EQ(numbers(queue), (Numbers{38, 38, 0})) << "one is reserved";
  ASSERT_TRUE(engine.release(client, queue.now(), 39, 5'000, 0).done);
  EXPECT_EQ(numbers(queue), (Numbers{39, 38, 0}));
  ASSERT_TRUE(engine.reserve_job(client, queue.now(), 38));
  ASSERT_TRUE(engine.release(client, queue.now(), 38, 0, 500).done);
  EXPECT_EQ(numbers(queue), (Numbers{38, 37, 1}));
  ASSERT_TRUE(engine.reserve_job(client, queue.now(), 37));
  ASSERT_TRUE(engine.bury(client, queue.now(), 37, 0).done);
  EXPECT_EQ(numbers(queue), (Numbers{37, 36, 1}));
  EXPECT_EQ(kick_all(engine, client, queue.now(), 10), 1u);
  EXPECT_EQ(numbers(queue), (Numbers{38, 37, 1}));
  EXPECT_EQ(kick_all(engine, client, queue.now(), 10), 1u) << "the only delayed one";
  EXPECT_EQ(numbers(queue), (Numbers{39, 38, 0}));
  for (int left = 38; left >= 0; --left) {
    auto got = engine.reserve(client, queue.now(), 0);
    for (int turns = 0; got->kind != Delivery::Kind::kReserved && turns < 200; ++turns) {
      queue.pass(1);
      got = engine.reserve(client, queue.now(), 0);
    }
    ASSERT_EQ(got->kind, Delivery::Kind::kReserved);
    ASSERT_TRUE(engine.remove(client, queue.now(), got->job.id).done);
    EXPECT_EQ(numbers(queue)[0], static_cast<std::uint64_t>(left));
  }
}

TEST(EngineCounts, ReadyJobsThatAreNotLoadedAreCountedAnewWhenTheWallClockIsSet) {
  VirtualQueue queue({.load_ahead = 1'000, .max_loaded_per_tube = 5, .step = 3});
  const ClientId client = queue.engine().connect();
  for (int i = 0; i < 20; ++i) queue.put(client, "now");
  for (int i = 0; i < 30; ++i) queue.put(client, "at a moment", {.due_at = queue.utc() + kDay});
  for (int i = 0; i < 40; ++i) queue.put(client, "after a delay", {.due_in = kDay});
  settle(queue);
  ASSERT_EQ(numbers(queue), (Numbers{20, 20, 70}));
  queue.step_wall_clock(static_cast<std::int64_t>(kDay));
  settle(queue);
  EXPECT_EQ(numbers(queue), (Numbers{50, 50, 40})) << "setting the clock makes no delay shorter";
  queue.step_wall_clock(-static_cast<std::int64_t>(kDay));
  settle(queue);
  EXPECT_EQ(numbers(queue), (Numbers{20, 20, 70}));
}

TEST(EngineCounts, ACountThatTheStoreStopsGoesOnLater) {
  VirtualQueue queue({.max_loaded_per_tube = 5, .step = 3});
  const ClientId client = queue.engine().connect();
  for (int i = 0; i < 5; ++i) queue.put(client, "now");
  for (int i = 0; i < 30; ++i) queue.put(client, "in 1 s", {.due_in = 1'000});
  settle(queue);
  queue.store().faults = {.records = true};
  EXPECT_THROW(queue.pass(1'000), StoreError);
  queue.store().faults = {};
  EXPECT_EQ(numbers(queue), (Numbers{5, 5, 30}));
  queue.pass(1'000);
  settle(queue);
  EXPECT_EQ(numbers(queue), (Numbers{35, 35, 0}));
}

}  // namespace
}  // namespace carillon::queue
