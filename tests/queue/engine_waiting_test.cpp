// What the passing of time does to the engine: waiting clients, time-outs, ttrs and pauses.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

class EngineWaiting : public EngineTest {};

TEST_F(EngineWaiting, WaitingWorkersAreServedInTurn) {
  queue.wait(other);
  queue.wait(worker);
  EXPECT_EQ(engine.stats().waiting, 2u);
  queue.put(producer, "first");
  queue.put(producer, "second");
  EXPECT_EQ(queue.deliveries(), (Words{"3:first", "2:second"}));
}

TEST_F(EngineWaiting, IfTwoTubesAreDueTogetherTheLowerPriorityIsServedFirst) {
  for (const auto& [tube, priority] : {std::pair{"a", 2u}, {"b", 1u}, {"c", 3u}}) {
    engine.use(producer, tube);
    queue.put(producer, tube, {.priority = priority, .due_in = 10});
    engine.watch(worker, tube);
  }
  queue.wait(worker);
  queue.pass(10);
  EXPECT_EQ(queue.deliveries(), Words{"2:b"});
}

TEST_F(EngineWaiting, AReserveTimesOutAtItsMillisecond) {
  queue.wait(worker, 250);
  queue.pass(249);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"2:TIMED_OUT"});
  queue.put(producer, "late");
  EXPECT_EQ(queue.deliveries(), Words{}) << "a client that has given up gets nothing";
}

TEST_F(EngineWaiting, AJobThatComesTogetherWithTheTimeOutWins) {
  queue.put(producer, "just in time", {.due_in = 250});
  queue.wait(worker, 250);
  queue.pass(250);
  EXPECT_EQ(queue.deliveries(), Words{"2:just in time"});
}

TEST_F(EngineWaiting, StopWaitingAnswersTimedOut) {
  queue.wait(worker);
  engine.stop_waiting(worker);
  EXPECT_EQ(queue.deliveries(), Words{"2:TIMED_OUT"});
  engine.stop_waiting(worker);
  EXPECT_EQ(queue.deliveries(), Words{});
}

TEST_F(EngineWaiting, AJobWhoseTtrIsOverIsReadyAgain) {
  const JobId id = queue.put(producer, "slow", {.ttr = 2'000});
  ASSERT_EQ(queue.reserve(worker), "slow");
  queue.wait(other);
  queue.pass(1'999);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"3:slow"});
  EXPECT_EQ(engine.job_stats(queue.now(), id)->record.history.timeouts, 1u);
  EXPECT_EQ(engine.stats().timeouts, 1u);
  EXPECT_FALSE(engine.remove(worker, queue.now(), id).done)
      << "it is not the first worker's any more";
  EXPECT_TRUE(engine.remove(other, queue.now(), id).done);
}

TEST_F(EngineWaiting, ATtrOfLessThanASecondBecomesASecond) {
  queue.put(producer, "job", {.ttr = 0});
  ASSERT_EQ(queue.reserve(worker), "job");
  queue.pass(999);
  EXPECT_EQ(counts().reserved, 1u);
  queue.pass(1);
  EXPECT_EQ(counts().ready, 1u);
}

TEST_F(EngineWaiting, TouchSetsTheEndOfTheTtrForOnce) {
  const JobId id = queue.put(producer, "long", {.ttr = 2'000});
  ASSERT_EQ(queue.reserve(worker), "long");
  EXPECT_TRUE(engine.touch(worker, queue.now(), id, 5'000).done);
  queue.pass(4'999);
  EXPECT_EQ(state(id), JobState::kReserved);
  EXPECT_TRUE(engine.touch(worker, queue.now(), id).done);
  EXPECT_EQ(engine.job_stats(queue.now(), id)->time_left, 1'999u) << "the job's own ttr";
  EXPECT_TRUE(engine.touch(worker, queue.now(), id, 0).done);
  EXPECT_EQ(engine.job_stats(queue.now(), id)->time_left, 999u) << "kMinTtr";
}

TEST_F(EngineWaiting, TouchBeginsTheTtrAnew) {
  const JobId id = queue.put(producer, "long", {.ttr = 2'000});
  ASSERT_EQ(queue.reserve(worker), "long");
  queue.pass(1'500);
  EXPECT_TRUE(engine.touch(worker, queue.now(), id).done);
  EXPECT_FALSE(engine.touch(other, queue.now(), id).done);
  EXPECT_EQ(engine.job_stats(queue.now(), id)->time_left, 1'999u);
  queue.pass(1'999);
  EXPECT_EQ(state(id), JobState::kReserved);
  queue.pass(1);
  EXPECT_EQ(state(id), JobState::kReady);
}

TEST_F(EngineWaiting, DeadlineSoonInTheLastSecondUnlessAJobIsReady) {
  queue.put(producer, "held", {.priority = 9, .ttr = 5'000});
  ASSERT_EQ(queue.reserve(worker), "held");
  queue.wait(worker);
  queue.pass(3'999);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"2:DEADLINE_SOON"}) << "a waiting reserve is woken with it";
  EXPECT_EQ(queue.reserve(worker), "DEADLINE_SOON") << "and a new one is answered with it";
  queue.put(producer, "ready");
  EXPECT_EQ(queue.reserve(worker), "ready");
}

TEST_F(EngineWaiting, DeadlineSoonIsHeardForTheNextJobWhenTheFirstWasLostInALongStep) {
  const JobId id = queue.put(producer, "short", {.ttr = 2'000});
  queue.put(producer, "long", {.ttr = 10'000});
  ASSERT_EQ(queue.reserve(worker), "short");
  ASSERT_EQ(queue.reserve(worker), "long");
  queue.wait(other);
  queue.wait(worker);
  queue.pass(3'000);
  EXPECT_EQ(queue.deliveries(), Words{"3:short"});
  EXPECT_TRUE(engine.remove(other, queue.now(), id).done);
  queue.pass(5'999);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"2:DEADLINE_SOON"});
}

TEST_F(EngineWaiting, AWaitingWorkerGetsTheFirstJobThatIsKicked) {
  std::vector<JobId> ids;
  for (const Priority priority : {5u, 1u}) {
    ids.push_back(queue.put(producer, std::to_string(priority), {.priority = priority}));
    ASSERT_TRUE(engine.reserve_job(worker, queue.now(), ids.back()));
    ASSERT_TRUE(engine.bury(worker, queue.now(), ids.back(), priority).done);
  }
  queue.wait(worker);
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 2), 2u);
  EXPECT_EQ(queue.deliveries(), Words{"2:5"}) << "as beanstalkd does";
}

TEST_F(EngineWaiting, PauseHoldsBackReservesForItsTime) {
  queue.put(producer, "job");
  EXPECT_FALSE(engine.pause(queue.now(), "nowhere", 1'000));
  EXPECT_TRUE(engine.pause(queue.now(), "default", 1'000));
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  queue.wait(worker);
  queue.pass(400);
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->pause_left, 599u);
  queue.pass(599);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"2:job"});
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->pause, 0u);
}

TEST_F(EngineWaiting, APauseOfNothingEndsAPause) {
  queue.put(producer, "job");
  EXPECT_TRUE(engine.pause(queue.now(), "default", 1'000'000));
  queue.wait(worker);
  EXPECT_TRUE(engine.pause(queue.now(), "default", 0));
  EXPECT_EQ(queue.deliveries(), Words{"2:job"});
}

TEST_F(EngineWaiting, NextWakeupIsTheNextThingThatHappens) {
  EXPECT_EQ(engine.next_wakeup(), std::nullopt);
  queue.put(producer, "job", {.due_in = 40});
  const auto wake = engine.next_wakeup();
  ASSERT_TRUE(wake);
  EXPECT_GT(*wake, queue.now().mono_ns);
  EXPECT_LE(*wake, queue.now().mono_ns + 40 * kMs);
  queue.pass(40);
  EXPECT_EQ(engine.next_wakeup(), std::nullopt);
}

}  // namespace
}  // namespace carillon::queue
