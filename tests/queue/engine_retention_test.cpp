// How long the dead jobs of a tube are kept.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/job_bulk.h"
#include "queue/engine_fixture.h"
#include "queue/seed.h"

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

TEST_F(EngineRetention, JobsThatHaveExpiredToTheDeadGoToo) {
  keep(kHour);
  const JobId id = queue.put(producer, "job", {.expires_in = 1'000, .at_expiry = AtExpiry::kDead});
  pass(1'000);
  EXPECT_EQ(state(id), JobState::kBuried);
  pass(kHour - 1);
  EXPECT_TRUE(is_there(id));
  pass(1);
  EXPECT_FALSE(is_there(id));
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

TEST_F(EngineRetention, ARestartGoesOn) {
  keep(kHour);
  const JobId id = dead();
  pass(kHour / 2);
  queue.restart(kHour / 2 - 1);
  settle();
  EXPECT_TRUE(is_there(id));
  pass(1);
  EXPECT_FALSE(is_there(id));
  const ClientId client = queue.engine().connect();
  EXPECT_EQ(queue.put(client, "next") > id, true);
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

// Random histories against a list of when each job has died. While the wall clock is right, a job
// goes at its millisecond; a step may make it late by what the clock was set, and never early.
class RetentionHistory : public EngineRetention, public testing::WithParamInterface<int> {
 protected:
  struct Dead {
    Millis died;  // by the monotonic clock
    std::string tube;
  };
  std::uint64_t below(std::uint64_t bound) { return random() % bound; }
  Millis mono() const { return queue.now().mono_ns / kMs; }
  std::string some_tube() { return std::string(1, static_cast<char>('a' + below(3))); }

  void kill_one() {
    const std::string tube = some_tube();
    const std::string group = below(3) == 0 ? "g" + std::to_string(below(3)) : "";
    Engine& now = queue.engine();
    now.use(client, tube);
    PutOrder order{.group = group, .retry = {.max_attempts = 1}};
    if (below(3) == 0) {
      order.expires_in = 1;
      order.at_expiry = AtExpiry::kDead;
      const JobId id = queue.put(client, "x", order);
      pass(1);
      settle();
      if (now.job_stats(queue.now(), id)->state == JobState::kBuried)
        dead_jobs[id] = {mono(), tube};
      return;
    }
    const JobId id = queue.put(client, "x", order);
    now.reserve_job(client, queue.now(), id);
    if (below(4) == 0) {
      now.bury(client, queue.now(), id, 0);
      buried.push_back(id);
      return;
    }
    now.fail(client, queue.now(), id, {});
    dead_jobs[id] = {mono(), tube};
  }
  void step_clock() {
    // Expiries go by the wall clock, so the deaths of some jobs are not known then.
    const std::int64_t by = static_cast<std::int64_t>(below(4'000)) - 2'000;
    queue.step_wall_clock(by);
    slack += static_cast<Millis>(std::abs(by)) + 5;
    settle();
  }
  void revive_one() {
    if (dead_jobs.empty()) return;
    auto one = dead_jobs.begin();
    std::advance(one, below(dead_jobs.size()));
    if (queue.engine().kick_job(queue.now(), one->first).done) {
      queue.engine().cancel(queue.now(), one->first);
      dead_jobs.erase(one);
    }
  }
  void check() {
    for (auto one = dead_jobs.begin(); one != dead_jobs.end();) {
      const Millis kept = kept_in[one->second.tube];
      const Millis age = mono() - one->second.died;
      if (is_there(one->first)) {
        ASSERT_FALSE(kept > 0 && age >= kept + slack) << "job " << one->first << " is late";
        ++one;
      } else {
        ASSERT_TRUE(kept > 0 && age >= kept) << "job " << one->first << " is early";
        one = dead_jobs.erase(one);
      }
    }
    for (const JobId id : buried) ASSERT_TRUE(is_there(id));
  }
  void step() {
    switch (below(14)) {
      case 0: {
        const std::string tube = some_tube();
        kept_in[tube] = below(3) == 0 ? 0 : 1 + below(3'000);
        keep(kept_in[tube], tube);
        return settle();
      }
      case 1:
        if (below(6) > 0) return;
        queue.restart(below(500));
        client = queue.engine().connect();
        return settle();
      case 2:
        return below(5) == 0 ? step_clock() : void();
      case 3:
        return revive_one();
      case 4:
      case 5:
      case 6:
      case 7:
        return pass(below(400));
      default:
        return kill_one();
    }
  }

  std::mt19937_64 random;
  ClientId client = queue.engine().connect();
  std::map<std::string, Millis> kept_in;
  std::map<JobId, Dead> dead_jobs;
  std::vector<JobId> buried;
  Millis slack = 1;
};

TEST_P(RetentionHistory, NeverEarlyAndNotLate) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  random.seed(seed);
  for (int i = 0; i < 1'500 && !HasFailure(); ++i) {
    step();
    settle();
    check();
    if (i % 16 == 0) queue.engine().check_invariants();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RetentionHistory, testing::Range(1, 9));

}  // namespace
}  // namespace carillon::queue
