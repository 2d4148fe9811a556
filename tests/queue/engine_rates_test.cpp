// The limits of tubes: how many jobs run at once, and how fast they go out.
// Row Q9 of the product's table.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "queue/engine_fixture.h"
#include "queue/seed.h"

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

TEST_F(EngineRates, AJobThatDiesOrIsCancelledLetsOthersRun) {
  engine.set_tube(queue.now(), "default",
                  {.retry = {.max_attempts = 1}, .limits = {.max_running = 1}});
  put(4);
  EXPECT_EQ(reserve(worker), 1U);
  queue.wait(other);
  EXPECT_EQ(engine.fail(worker, queue.now(), 1, {}).result, FailOutcome::Result::kDead);
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
  queue.wait(worker);
  queue.pass(60'001);
  EXPECT_EQ(queue.deliveries(), Words{"2:job"}) << "job 2 is dead by its ttr";
  queue.wait(other);
  engine.remove_all(worker, queue.now(), std::vector<JobId>{3});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
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

TEST_F(EngineRates, OtherTubesGoOnMeanwhile) {
  set({.max_running = 1});
  put(2);
  engine.use(producer, "b");
  queue.put(producer, "b");
  engine.watch(worker, "b");
  EXPECT_EQ(queue.reserve(worker), "job");
  EXPECT_EQ(queue.reserve(worker), "b");
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

TEST_F(EngineRates, ALimitThatIsLoweredHoldsFromThenOn) {
  set({.max_running = 3});
  put(5);
  for (JobId id = 1; id <= 3; ++id) EXPECT_EQ(reserve(worker), id);
  set({.max_running = 1});
  queue.wait(other);
  engine.remove(worker, queue.now(), 1);
  engine.remove(worker, queue.now(), 2);
  EXPECT_EQ(queue.deliveries(), Words{});
  engine.remove(worker, queue.now(), 3);
  EXPECT_EQ(queue.deliveries(), Words{"3:job"});
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

// Random clients on three tubes with limits, which change, with failing appends and restarts. Each
// start is checked against all before it: a token bucket lets one more job start exactly if that
// keeps the rate in every time. So no more jobs go out than may, and none waits that might.
class RatesHistory : public testing::TestWithParam<int> {
 protected:
  struct Of {
    Limits limits;
    std::uint64_t running = 0;
    std::vector<UtcMs> starts;       // since the rate was set
    std::optional<UtcMs> was_empty;  // when the bucket began empty

    bool has_token(UtcMs now) const {
      const auto fits = [this, now](std::uint64_t more, std::uint64_t at_first, UtcMs since) {
        return more * limits.period <= at_first + limits.rate * (now - since);
      };
      if (limits.rate == 0) return true;
      const std::uint64_t full = limits.burst * limits.period + limits.rate - 1;
      const auto since = [this](UtcMs when) {
        return static_cast<std::uint64_t>(starts.end() -
                                          std::lower_bound(starts.begin(), starts.end(), when));
      };
      if (was_empty && !fits(since(*was_empty) + 1, 0, *was_empty)) return false;
      for (std::size_t i = 0; i < starts.size(); ++i) {
        if (!fits(starts.size() - i + 1, full, starts[i])) return false;
      }
      return true;
    }
    bool may_start(UtcMs now) const {
      return (limits.max_running == 0 || running < limits.max_running) && has_token(now);
    }
  };

  std::uint64_t below(std::uint64_t bound) { return random() % bound; }
  Engine& engine() { return queue.engine(); }

  void connect() {
    const ClientId id = engine().connect();
    for (const auto& [name, of] : tubes) engine().watch(id, name);
    held[id];
  }
  void got(ClientId client, JobId id) {
    const std::string& tube = tube_of.at(id);
    Of& of = tubes[tube];
    EXPECT_TRUE(of.may_start(queue.utc())) << "job " << id << " of " << tube;
    ++of.running;
    of.starts.push_back(queue.utc());
    held[client].push_back(id);
  }
  // What the engine refuses while appends fail has no effect.
  template <class Act>
  bool done(Act act) try {
    return act();
  } catch (const StoreError&) {
    EXPECT_TRUE(queue.store().faults.appends);
    return false;
  }
  void set_limits(const std::string& name) {
    Of& of = tubes[name];
    Limits limits{.max_running = below(5)};
    if (below(3) > 0) {
      limits.rate = 1 + below(20);
      limits.period = 1 + below(1'000);
      limits.burst = 1 + below(10);
    }
    const RetryPolicy retry{.max_attempts = static_cast<std::uint32_t>(below(3)),
                            .lost_fails = below(2) > 0};
    for (const Limits& next : {Limits{.max_running = limits.max_running}, limits}) {
      const auto set = [&] {
        engine().set_tube(queue.now(), name, {.retry = retry, .limits = next});
        return true;
      };
      if (!done(set)) return;
      of.limits = next;
      of.starts.clear();
      of.was_empty.reset();
      take();
    }
  }
  // The jobs that clients have waited for.
  void take() {
    const std::vector<Delivery> deliveries = engine().take_deliveries();
    for (auto& [name, of] : tubes) {
      const auto stats = engine().tube_stats(queue.now(), name);
      of.running = stats ? stats->jobs.reserved : 0;
    }
    for (const Delivery& delivery : deliveries) {
      std::erase(waiting, delivery.client);
      if (delivery.kind == Delivery::Kind::kReserved) --tubes[tube_of.at(delivery.job.id)].running;
    }
    for (const Delivery& delivery : deliveries) {
      if (delivery.kind == Delivery::Kind::kReserved) got(delivery.client, delivery.job.id);
    }
  }
  void pass(Millis ms) {
    done([&] {
      queue.pass(ms);
      return true;
    });
    for (int i = 0; i < 100 && engine().next_wakeup() <= queue.now().mono_ns; ++i) {
      done([&] {
        engine().advance(queue.now());
        return true;
      });
    }
    take();
  }
  void put(const std::string& name) {
    engine().use(producer, name);
    done([&] {
      const auto outcome = engine().put(
          producer, queue.now(), {.priority = static_cast<Priority>(below(3)), .ttr = 2'000}, "x");
      tube_of[outcome.id] = name;
      return true;
    });
  }
  void end_one(ClientId id, std::vector<JobId>& jobs) {
    const JobId job = jobs.back();
    const bool ended = done([&] {
      switch (below(3)) {
        case 0:
          return engine().remove(id, queue.now(), job).done;
        case 1:
          return engine().bury(id, queue.now(), job, 0).done;
        default:
          return engine().release(id, queue.now(), job, 0, below(2) * 100).done;
      }
    });
    if (!ended && queue.store().faults.appends) return;
    jobs.pop_back();
  }
  void reserve(ClientId id) {
    if (const auto delivery = engine().reserve(id, queue.now(), {})) {
      if (delivery->kind == Delivery::Kind::kReserved) got(id, delivery->job.id);
    } else {
      waiting.push_back(id);
    }
  }
  void restart() {
    queue.store().faults = {};
    queue.restart(below(100));
    held.clear();
    waiting.clear();
    producer = engine().connect();
    for (auto& [name, of] : tubes) {
      of.was_empty = queue.utc();
    }
    for (int i = 0; i < 12; ++i) connect();
  }
  void check() {
    engine().check_invariants();
    for (const auto& [name, of] : tubes) {
      const auto stats = engine().tube_stats(queue.now(), name);
      const bool could = stats && stats->jobs.ready > 0 && of.may_start(queue.utc());
      ASSERT_FALSE(could && !waiting.empty()) << "a client waits, and might get a job of " << name;
    }
  }
  void step() {
    auto client = held.begin();
    std::advance(client, below(held.size()));
    const ClientId id = client->first;
    const bool waits = std::find(waiting.begin(), waiting.end(), id) != waiting.end();
    const std::string name = std::string(1, static_cast<char>('a' + below(3)));
    switch (below(14)) {
      case 0:
      case 1:
        return put(name);
      case 2:
        if (below(8) == 0) set_limits(name);
        return;
      case 3:
        if (below(20) == 0) queue.store().faults.appends = !queue.store().faults.appends;
        return;
      case 4:
        if (below(40) == 0) restart();
        return;
      case 5:
        if (below(8) > 0) return;
        engine().disconnect(id, queue.now());
        std::erase(waiting, id);
        held.erase(client);
        return connect();
      case 6:
      case 7:
      case 8:
        return waits ? void() : reserve(id);
      case 9:
      case 10:
      case 11:
        return waits || client->second.empty() ? void() : end_one(id, client->second);
      default:
        return pass(below(20));
    }
  }

  std::mt19937_64 random;
  VirtualQueue queue;
  std::map<std::string, Of> tubes{{"a", {}}, {"b", {}}, {"c", {}}};
  std::map<JobId, std::string> tube_of;
  std::map<ClientId, std::vector<JobId>> held;
  std::vector<ClientId> waiting;
  ClientId producer = queue.engine().connect();
};

TEST_P(RatesHistory, NeverMoreAndNeverLess) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  random.seed(seed);
  for (int i = 0; i < 12; ++i) connect();
  for (auto& [name, of] : tubes) set_limits(name);
  for (int i = 0; i < 3'000 && !HasFailure(); ++i) {
    step();
    pass(0);
    check();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RatesHistory, testing::Range(1, 9));

}  // namespace
}  // namespace carillon::queue
