// Many jobs of one tube become due at once. They are worked off in steps, in their order, and the
// jobs of other tubes are not late.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

constexpr int kStorm = 5'000;

class EngineStorm : public testing::Test {
 protected:
  void put(const char* tube, Millis due_in, Priority priority = 0) {
    engine.use(producer, tube);
    queue.put(producer, tube, {.priority = priority, .due_in = due_in});
  }

  ClientId worker(const char* tube) {
    const ClientId id = engine.connect();
    engine.watch(id, tube);
    engine.ignore(id, "default");
    return id;
  }

  // The last job has the lowest priority.
  void put_storm_of_groups(int groups) {
    engine.use(producer, "storm");
    for (int i = 0; i < kStorm; ++i) {
      const std::string group = std::to_string(i % groups);
      queue.put(producer, "storm",
                {.priority = static_cast<Priority>(kStorm - i), .due_in = 1'000, .group = group});
    }
  }

  // The storm begins. Calls `meanwhile` when its first jobs are ready.
  template <class Action>
  void expect_none_before_all_and_then_in_order(Action meanwhile) {
    const ClientId first = worker("storm");
    queue.wait(first);
    queue.pass(1'000);
    const ClientId second = worker("storm");
    EXPECT_EQ(queue.reserve(second), "TIMED_OUT");
    meanwhile();
    while (has_work()) {
      EXPECT_TRUE(engine.take_deliveries().empty());
      queue.pass(0);
    }
    const auto deliveries = engine.take_deliveries();
    ASSERT_EQ(deliveries.size(), 1u);
    EXPECT_EQ(deliveries[0].job.id, static_cast<JobId>(kStorm));
    for (JobId id = kStorm - 1; id > kStorm - 100; --id)
      ASSERT_EQ(engine.reserve(second, queue.now(), 0)->job.id, id);
    engine.check_invariants();
  }

  bool has_work() { return has_work(queue); }

  static bool has_work(VirtualQueue& of) {
    const std::optional<std::uint64_t> wake = of.engine().next_wakeup();
    return wake && *wake <= of.now().mono_ns;
  }

  VirtualQueue queue{{.step = 50}};
  Engine& engine = queue.engine();
  ClientId producer = engine.connect();
};

TEST_F(EngineStorm, AJobOfAnotherTubeWaitsForAStepNotForTheStorm) {
  for (int i = 0; i < kStorm; ++i) put("storm", 1'000);
  put("same", 1'000);
  put("next", 1'001);
  const ClientId same = worker("same");
  const ClientId next = worker("next");
  queue.wait(same);
  queue.wait(next);
  queue.pass(1'000);
  queue.pass(0);
  EXPECT_EQ(queue.deliveries(), std::vector<std::string>{std::to_string(same) + ":same"});
  queue.pass(1);
  queue.pass(0);
  EXPECT_EQ(queue.deliveries(), std::vector<std::string>{std::to_string(next) + ":next"});
  EXPECT_TRUE(has_work()) << "the storm goes on";
  engine.check_invariants();
}

// Each group has an order of due times of its own. Together they have one turn.
TEST_F(EngineStorm, AJobOfAnotherTubeIsNeverLateHoweverManyGroupsTheStormHas) {
  for (const int groups : {10, 1'000, kStorm}) {
    SCOPED_TRACE(groups);
    VirtualQueue storms({.step = 50});
    Engine& tested = storms.engine();
    const ClientId client = tested.connect();
    tested.use(client, "storm");
    for (int i = 0; i < kStorm; ++i)
      storms.put(client, "x", {.due_in = 1'000, .group = std::to_string(i % groups)});
    constexpr Millis kOthers = 20;
    tested.use(client, "default");
    for (Millis ms = 0; ms < kOthers; ++ms) storms.put(client, "x", {.due_in = 1'000 + ms});
    storms.wait(client);
    storms.pass(999);
    for (Millis ms = 0; ms < kOthers; ++ms) {
      storms.pass(1);
      storms.pass(0);
      const std::vector<Delivery> came = tested.take_deliveries();
      ASSERT_EQ(came.size(), 1U) << "more than two steps stand before the job after " << ms;
      ASSERT_TRUE(tested.remove(client, storms.now(), came.front().job.id).done);
      storms.wait(client);
    }
    EXPECT_TRUE(has_work(storms)) << "the storm goes on";
    tested.check_invariants();
    for (int steps = 0; has_work(storms) && steps < kStorm; ++steps) storms.pass(0);
    EXPECT_EQ(tested.tube_stats(storms.now(), "storm")->jobs.ready,
              static_cast<std::uint64_t>(kStorm));
    tested.check_invariants();
  }
}

TEST_F(EngineStorm, NoneOfAnyGroupGoesOutBeforeAllGroupsAreReady) {
  put_storm_of_groups(kStorm / 2);
  expect_none_before_all_and_then_in_order([] {});
}

TEST_F(EngineStorm, GroupsThatGoInTheMidstOfTheirStormAreForgotten) {
  put_storm_of_groups(kStorm);
  engine.use(producer, "default");
  queue.pass(1'000);
  for (JobId id = 1; id <= kStorm; ++id) ASSERT_TRUE(engine.remove(producer, queue.now(), id).done);
  EXPECT_EQ(engine.stats().tubes, 1u);
  queue.pass(1'000);
  engine.check_invariants();
}

// Those that are ready are delayed again, and none is early.
TEST_F(EngineStorm, AStormOfGroupsFollowsAClockThatIsSetBack) {
  engine.use(producer, "storm");
  for (int i = 0; i < kStorm; ++i)
    queue.put(producer, "x", {.due_at = queue.utc() + 1'000, .group = std::to_string(i % 300)});
  queue.pass(1'000);
  const ClientId other = worker("storm");
  queue.step_wall_clock(-10'000);
  EXPECT_EQ(queue.reserve(other), "TIMED_OUT");
  engine.check_invariants();
  queue.wait(other);
  queue.pass(9'999);
  while (has_work()) queue.pass(0);
  EXPECT_TRUE(engine.take_deliveries().empty());
  queue.pass(1);
  while (has_work()) queue.pass(0);
  EXPECT_EQ(engine.take_deliveries().size(), 1U);
  EXPECT_EQ(engine.stats().jobs.ready, static_cast<std::uint64_t>(kStorm) - 1);
  engine.check_invariants();
}

// The ends of 16 jobs are stored in each step: the storm's take 312 steps.
TEST_F(EngineStorm, TheEndOfAnotherTubesJobWaitsForNoEndsOfTheStorm) {
  const auto put_expiring = [this](const char* tube, Millis in) {
    engine.use(producer, tube);
    queue.put(producer, "x", {.expires_in = in, .at_expiry = AtExpiry::kDead});
  };
  for (int i = 0; i < kStorm; ++i) put_expiring("storm", 1'000);
  put_expiring("other", 1'001);
  queue.pass(1'000);
  for (int steps = kStorm / 50; steps > 0; --steps) queue.pass(0);
  EXPECT_EQ(engine.tube_stats(queue.now(), "storm")->jobs.ready, 0U);
  queue.pass(1);
  queue.pass(0);
  EXPECT_EQ(engine.tube_stats(queue.now(), "other")->jobs.buried, 1U);
  EXPECT_LT(engine.tube_stats(queue.now(), "storm")->jobs.buried, 3'000U);
  engine.check_invariants();
  while (has_work()) queue.pass(0);
  EXPECT_EQ(engine.tube_stats(queue.now(), "storm")->jobs.buried,
            static_cast<std::uint64_t>(kStorm));
}

TEST_F(EngineStorm, ACommandDoesASmallPartOfIt) {
  VirtualQueue large({.step = 100'000});
  const ClientId client = large.engine().connect();
  for (int i = 0; i < kStorm; ++i) large.put(client, "storm", {.due_in = 1'000});
  large.add_ns(1'000 * kMs);
  EXPECT_EQ(large.engine().tube_stats(large.now(), "default")->jobs.ready, 64u);
  large.pass(0);
  EXPECT_EQ(large.engine().stats().jobs.ready, static_cast<std::uint64_t>(kStorm));
}

TEST_F(EngineStorm, NoneGoesOutBeforeAllAreReadyAndThenTheyComeInOrder) {
  for (int i = 0; i < kStorm; ++i) put("storm", 1'000, static_cast<Priority>(kStorm - i));
  expect_none_before_all_and_then_in_order([this] { put("storm", 0, 3'000); });
}

TEST_F(EngineStorm, AStreamThatNeverEndsStopsNobodyForEver) {
  const ClientId waiting = worker("storm");
  for (int ms = 1; ms <= 500; ++ms) {
    for (int i = 0; i < 60; ++i) put("storm", static_cast<Millis>(ms));
  }
  int got = 0;
  bool waits = false;
  for (int ms = 0; ms < 500; ++ms) {  // 60 become due in each ms, and 50 can be made ready
    if (!waits) {
      const auto at_once = engine.reserve(waiting, queue.now(), {});
      got += at_once ? 1 : 0;
      waits = !at_once;
    }
    queue.pass(1);
    for (const Delivery& delivery : engine.take_deliveries()) {
      got += delivery.kind == Delivery::Kind::kReserved ? 1 : 0;
      waits = false;
    }
  }
  EXPECT_GT(got, 20);
}

}  // namespace
}  // namespace carillon::queue
