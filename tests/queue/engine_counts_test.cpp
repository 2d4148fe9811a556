// Statistics are true though a tube may not load all of its ready jobs.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "queue/seed.h"
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

// Random commands in two tubes that may load few jobs. What stats-tube tells is what the states of
// all jobs add up to.
class CountsHistory {
 public:
  CountsHistory(std::uint64_t seed, bool steps_clock)
      : random_(seed),
        steps_clock_(steps_clock),
        queue_({.load_ahead = seed % 2 == 0 ? 0 : 1 + seed * 37 % 500,
                .max_loaded_per_tube = 1 + seed % 7,
                .max_loaded = seed % 3 == 0 ? 1 + seed % 11 : 1'000,
                .step = 1 + seed % 5}) {
    client_ = queue_.engine().connect();
    watch();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      settle(queue_);
      queue_.engine().check_invariants();
      if (below(10) == 0) compare();
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  Engine& engine() { return queue_.engine(); }
  Now now() const { return queue_.now(); }
  JobId a_job() { return 1 + below(last_ + 1); }
  std::string a_tube() { return below(2) == 0 ? "default" : "a"; }
  Priority a_priority() { return static_cast<Priority>(below(2) * 2'000); }
  Millis a_delay() { return std::array<Millis, 3>{0, 1 + below(30), 1 + below(3'000)}[below(3)]; }

  void watch() {
    engine().watch(client_, "a");
    engine().use(client_, a_tube());
  }

  void step() {
    if (below(100) == 0) {
      queue_.restart(below(100));
      client_ = engine().connect();
      return watch();
    }
    if (steps_clock_ && below(40) == 0) {
      const auto ms = static_cast<std::int64_t>(below(5'000));
      return queue_.step_wall_clock(below(2) == 0 ? ms : -ms);
    }
    if (below(3) == 0) return queue_.pass(below(8) == 0 ? below(1'000) : below(10));
    if (below(60) == 0) {
      engine().disconnect(client_, now());
      client_ = engine().connect();
      return watch();
    }
    command();
  }

  void command() {
    switch (below(12)) {
      case 0:
        return engine().use(client_, a_tube());
      case 1:
      case 2:
      case 3:
      case 4: {
        PutOrder order{.priority = a_priority(), .due_in = a_delay(), .ttr = 1'000};
        if (below(5) == 0) order.due_at = queue_.utc() + a_delay() - 20;
        last_ = queue_.put(client_, "job", order);
        return;
      }
      case 5:
        engine().reserve(client_, now(), 0);
        return;
      case 6:
        engine().reserve_job(client_, now(), a_job());
        return;
      case 7:
      case 8:
        engine().release(client_, now(), a_job(), a_priority(), a_delay());
        return;
      case 9:
        engine().bury(client_, now(), a_job(), a_priority());
        return;
      case 10:
        if (below(2) == 0) kick_all(engine(), client_, now(), below(10));
        engine().kick_job(now(), a_job());
        return;
      default:
        for (int i = 0; i < 3; ++i) engine().remove(client_, now(), a_job());
    }
  }

  void compare() {
    JobCounts sums;
    for (const std::string& name : engine().tubes()) {
      JobCounts found;
      std::uint64_t doubtful = 0;
      for (JobId id = 1; id <= last_; ++id) {
        const auto job = engine().job_stats(now(), id);
        if (!job || job->tube != name) continue;
        found.ready += job->state == JobState::kReady ? 1U : 0U;
        found.urgent +=
            job->state == JobState::kReady && job->record.priority < kUrgentBelow ? 1U : 0U;
        found.delayed += job->state == JobState::kDelayed ? 1U : 0U;
        found.reserved += job->state == JobState::kReserved ? 1U : 0U;
        found.buried += job->state == JobState::kBuried ? 1U : 0U;
        // These may count as ready after a step of the wall clock.
        const bool near = job->record.due <= queue_.utc() + 100;
        doubtful += steps_clock_ && job->state == JobState::kDelayed && near ? 1U : 0U;
      }
      const JobCounts told = engine().tube_stats(now(), name)->jobs;
      EXPECT_GE(told.ready, found.ready) << name;
      EXPECT_LE(told.ready, found.ready + doubtful) << name;
      EXPECT_GE(told.urgent, found.urgent) << name;
      EXPECT_LE(told.urgent, found.urgent + doubtful) << name;
      EXPECT_EQ(told.ready + told.delayed, found.ready + found.delayed) << name;
      EXPECT_EQ(told.reserved, found.reserved) << name;
      EXPECT_EQ(told.buried, found.buried) << name;
      sums.ready += told.ready;
      sums.urgent += told.urgent;
      sums.delayed += told.delayed;
    }
    const JobCounts all = engine().stats().jobs;
    EXPECT_EQ(all.ready, sums.ready);
    EXPECT_EQ(all.urgent, sums.urgent);
    EXPECT_EQ(all.delayed, sums.delayed);
  }

  std::mt19937_64 random_;
  bool steps_clock_;
  VirtualQueue queue_;
  ClientId client_ = 0;
  JobId last_ = 0;
};

class EngineCountsModel : public testing::TestWithParam<int> {};

TEST_P(EngineCountsModel, StatisticsAreWhatTheStatesOfAllJobsAddUpTo) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  CountsHistory(seed, false).run(1'000);
}

TEST_P(EngineCountsModel, TheyAreSoWhenTheWallClockIsSetButForJobsThatWillSoonBeDue) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  CountsHistory(seed, true).run(1'000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineCountsModel, testing::Range(1, 13));

}  // namespace
}  // namespace carillon::queue
