// Clients that hold many jobs or watch many tubes: what they leave behind is cleared up in steps.

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "queue/engine_fixture.h"

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

}  // namespace
}  // namespace carillon::queue
