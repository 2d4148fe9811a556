// Clients that hold many jobs or watch many tubes: what they leave behind is cleared up in steps.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "queue/engine_fixture.h"
#include "queue/seed.h"

namespace carillon::queue {
namespace {

class EngineLeaving : public EngineTest {
 protected:
  void put_and_hold(ClientId client, int jobs, PutOrder order = {}) {
    for (int i = 0; i < jobs; ++i) {
      queue.put(producer, std::to_string(i), order);
      ASSERT_EQ(queue.reserve(client), std::to_string(i));
    }
  }
  void watch(ClientId client, int tubes) {
    for (int i = 0; i < tubes; ++i) engine.watch(client, "tube" + std::to_string(i));
  }
  void put(const std::string& tube, const std::string& body) {
    engine.use(producer, tube);
    queue.put(producer, body);
  }
  std::uint64_t waiting(const std::string& tube) {
    return engine.tube_stats(queue.now(), tube)->waiting;
  }
  bool more_to_do() const {
    const auto wakeup = engine.next_wakeup();
    return wakeup && *wakeup <= queue.now().mono_ns;
  }
};

TEST_F(EngineLeaving, ADisconnectMakes64JobsReadyAndTheNextCallsTheOthers) {
  put_and_hold(worker, 500);
  engine.disconnect(worker, queue.now());
  EXPECT_EQ(engine.stats().jobs.ready, 64u);
  EXPECT_EQ(engine.stats().jobs.reserved, 436u);
  engine.check_invariants();
  int calls = 0;
  for (; more_to_do(); ++calls) engine.advance(queue.now());
  EXPECT_EQ(calls, 3);  // 200 each
  EXPECT_EQ(counts().ready, 500u);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(queue.reserve(other), std::to_string(i));
}

TEST_F(EngineLeaving, AClientThatHasDisconnectedIsGoneThoughItsJobsAreLeft) {
  put_and_hold(worker, 100);
  engine.disconnect(worker, queue.now());
  EXPECT_THROW(engine.holds_jobs(worker), std::out_of_range);
  EXPECT_THROW(engine.disconnect(worker, queue.now()), std::out_of_range);
}

TEST_F(EngineLeaving, AClientWithFewJobsDoesNotWaitForOneWithMany) {
  put_and_hold(worker, 10'000);
  engine.use(producer, "small");
  engine.watch(other, "small");
  put_and_hold(other, 100);
  engine.disconnect(worker, queue.now());
  engine.disconnect(other, queue.now());
  EXPECT_EQ(counts("small").ready, 64u);
  engine.advance(queue.now());
  EXPECT_EQ(counts("small").ready, 100u);
}

TEST_F(EngineLeaving, AJobThatIsStillHeldRunsOutOfItsTtr) {
  put_and_hold(worker, 1'000, {.ttr = 1'000});
  engine.disconnect(worker, queue.now());
  queue.pass(2'000);
  engine.check_invariants();
  while (more_to_do()) engine.advance(queue.now());
  EXPECT_EQ(counts().ready, 1'000u);
}

TEST_F(EngineLeaving, AWaitingClientGetsTheJobsOfADisconnectedOne) {
  put_and_hold(worker, 100);
  queue.wait(other);
  engine.disconnect(worker, queue.now());
  EXPECT_EQ(queue.deliveries(), Words{"3:0"});
}

TEST_F(EngineLeaving, AnEngineEndsInTheMiddle) {
  put_and_hold(worker, 1'000);
  watch(other, 1'000);
  queue.wait(other);
  put("tube1", "x");
  engine.disconnect(worker, queue.now());
  queue.crash();
  EXPECT_EQ(queue.engine().stats().jobs.ready, 1'001u);
}

TEST_F(EngineLeaving, AClientWatchesAtMost10000Tubes) {
  watch(worker, 9'999);
  EXPECT_THROW(engine.watch(worker, "one more"), OverLimit);
  EXPECT_EQ(engine.stats().tubes, 10'000u) << "with `default`; a tube that was refused is not made";
  EXPECT_EQ(engine.watch(worker, "tube7"), 10'000u) << "it is watched already";
  EXPECT_EQ(engine.ignore(worker, "tube7"), 9'999u);
  EXPECT_EQ(engine.watch(worker, "one more"), 10'000u);
  EXPECT_EQ(engine.watched(worker)[8], "tube9998") << "the last one has taken its position";
  engine.disconnect(worker, queue.now());
  EXPECT_EQ(engine.stats().tubes, 10'000u - 64u);
  while (more_to_do()) engine.advance(queue.now());
  EXPECT_EQ(engine.stats().tubes, 1u);
}

TEST_F(EngineLeaving, AWaitInManyTubesEndsInSteps) {
  watch(worker, 500);
  queue.wait(worker);
  EXPECT_EQ(waiting("tube0"), 1u);
  put("tube3", "x");
  EXPECT_EQ(queue.deliveries(), Words{"2:x"});
  EXPECT_EQ(engine.stats().waiting, 0u);
  engine.check_invariants();
  EXPECT_TRUE(more_to_do());
  for (int calls = 0; more_to_do(); ++calls) {
    ASSERT_LT(calls, 4);
    engine.advance(queue.now());
  }
  EXPECT_EQ(waiting("tube0"), 0u);
}

TEST_F(EngineLeaving, AClientThatWaitsNoMoreGetsNothingThoughItStandsInTheLine) {
  watch(worker, 500);
  engine.watch(other, "tube0");
  queue.wait(worker);
  queue.wait(other);
  put("tube499", "x");
  ASSERT_EQ(queue.deliveries(), Words{"2:x"});
  put("tube0", "y");
  EXPECT_EQ(queue.deliveries(), Words{"3:y"});
}

TEST_F(EngineLeaving, AClientThatWaitsAgainStandsAtTheEndOfTheLine) {
  watch(worker, 500);
  engine.watch(other, "tube0");
  queue.wait(worker);
  queue.wait(other);
  put("tube499", "x");
  ASSERT_EQ(queue.deliveries(), Words{"2:x"});
  queue.wait(worker);
  put("tube0", "y");
  EXPECT_EQ(queue.deliveries(), Words{"3:y"});
  put("tube0", "z");
  EXPECT_EQ(queue.deliveries(), Words{"2:z"});
}

// Clients with some hundred watches wait, stop, watch other tubes and disconnect. Each job goes to
// a client that waits and watches its tube, once.
TEST_F(EngineLeaving, RandomHistories) {
  constexpr int kTubes = 400;
  const std::uint64_t seed = seed_or(1);
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  const auto any_tube = [&below] { return "tube" + std::to_string(below(kTubes)); };
  struct Someone {
    ClientId id;
    std::set<std::string> watched{"default"};
    bool waits = false;
  };
  std::vector<Someone> all;
  for (int i = 0; i < 4; ++i) all.push_back({.id = engine.connect()});
  for (int step = 0; step < 4'000; ++step) {
    Someone& one = all[below(all.size())];
    const std::string tube = any_tube();
    switch (one.waits ? 5 + below(2) : below(7)) {
      case 0:
        for (int i = 0; i < 50; ++i) {
          const std::string next = any_tube();
          one.watched.insert(next);
          ASSERT_EQ(engine.watch(one.id, next), one.watched.size());
        }
        break;
      case 1:
        if (one.watched.size() > 1) one.watched.erase(tube);
        ASSERT_EQ(engine.ignore(one.id, tube), one.watched.size());
        break;
      case 2:
      case 3:
        one.waits = !engine.reserve(one.id, queue.now(), {});
        break;
      case 4:
        if (below(20) > 0) break;
        engine.disconnect(one.id, queue.now());
        one = {.id = engine.connect()};
        break;
      case 5:
        put(tube, tube);
        break;
      default:
        if (below(4) == 0) engine.stop_waiting(one.id);
    }
    for (const Delivery& delivery : engine.take_deliveries()) {
      for (Someone& to : all) {
        if (to.id != delivery.client) continue;
        ASSERT_TRUE(std::exchange(to.waits, false));
        if (delivery.kind != Delivery::Kind::kReserved) continue;
        ASSERT_TRUE(to.watched.contains(queue.store().body(delivery.job.body_id)));
      }
    }
    if (step % 8 == 0) engine.check_invariants();
    if (below(3) == 0) engine.advance(queue.now());
  }
}

}  // namespace
}  // namespace carillon::queue
