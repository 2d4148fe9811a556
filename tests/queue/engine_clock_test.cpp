// Wall clocks that are wrong, are put right, and are set back or forward: what an engine does then,
// case by case. engine_clock_steps_test.cpp has what a step costs; the simulator's worlds step the
// clock in random histories, but never boot the machine.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

// How often the wall clock is wrong, in ms: ahead or behind.
class EngineClocks : public testing::TestWithParam<std::int64_t> {
 protected:
  // How late a delay may be, in ms, if the clock that counted it is not the one that shows its end.
  static constexpr Millis kRounding = 2;

  void step(std::int64_t ms) {
    queue.step_wall_clock(ms);
    queue.pass(0);
    queue.engine().check_invariants();
  }
  JobState state(JobId id) { return queue.engine().job_stats(queue.now(), id)->state; }
  // The job comes in exactly `ms`, or up to kRounding later.
  void expect_in(Millis ms, const std::string& body) {
    if (ms > 0) {
      queue.pass(ms - 1);
      EXPECT_EQ(queue.reserve(client), "TIMED_OUT") << "early";
      queue.pass(1);
    }
    queue.pass(kRounding);
    const Delivery got = *queue.engine().reserve(client, queue.now(), 0);
    ASSERT_EQ(queue.word(got), body);
    EXPECT_TRUE(queue.engine().remove(client, queue.now(), got.job.id).done);
    queue.engine().check_invariants();
  }
  void put_delay_and_moment() {
    queue.put(client, "delay", {.due_in = 30'000});
    queue.put(client, "moment", {.due_at = queue.utc() + 25'000});
  }
  // The machine was down for a second, which may not count for the delay.
  void expect_both_in_time() {
    expect_in(24'000, "moment");
    queue.pass(5'000 - kRounding - 1);
    EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
    queue.pass(1'001 + kRounding);
    EXPECT_EQ(queue.reserve(client), "delay");
  }
  // Any append does.
  void store_the_time() {
    const ClientId other = queue.engine().connect();
    queue.engine().use(other, "other");
    queue.put(other, "x");
  }
  void restart() {
    queue.restart();
    client = queue.engine().connect();
    queue.pass(0);
  }

  VirtualQueue queue;
  ClientId client = queue.engine().connect();
};

INSTANTIATE_TEST_SUITE_P(Ahead, EngineClocks,
                         testing::Values(Step::kSecond, 20 * Step::kSecond, Step::kHour,
                                         Step::kTenYears));
INSTANTIATE_TEST_SUITE_P(Behind, EngineClocks,
                         testing::Values(-Step::kSecond, -20 * Step::kSecond, -Step::kHour,
                                         -Step::kTenYears));

// --- A wrong clock for a moment harms nothing that was put before.

TEST_P(EngineClocks, AShortErrorHarmsNeitherDelaysNorMoments) {
  for (const Millis in : {Millis{30'000}, static_cast<Millis>(3 * Step::kHour)}) {
    for (const bool is_delay : {true, false}) {
      SCOPED_TRACE(std::to_string(in) + (is_delay ? " ms, a delay" : " ms, a moment"));
      PutOrder order;
      if (is_delay) {
        order.due_in = in;
      } else {
        order.due_at = queue.utc() + static_cast<UtcMs>(in);
      }
      queue.put(client, "job", order);
      step(GetParam());
      step(-GetParam());
      expect_in(in, "job");
    }
  }
}

TEST_P(EngineClocks, AMomentAndARestartHarmNothing) {
  put_delay_and_moment();
  step(GetParam());
  store_the_time();
  step(-GetParam());
  restart();
  expect_in(25'000, "moment");
  expect_in(5'000 - kRounding, "delay");
}

TEST_P(EngineClocks, AMomentBetweenTwoRestartsHarmsNothing) {
  queue.put(client, "delay", {.due_in = 30'000});
  queue.put(client, "far", {.due_in = 3 * Step::kHour});
  queue.put(client, "moment", {.due_at = queue.utc() + 25'000});
  queue.step_wall_clock(GetParam());
  restart();
  queue.step_wall_clock(-GetParam());
  restart();
  expect_in(25'000, "moment");
  expect_in(5'000 - kRounding, "delay");
  expect_in(3 * Step::kHour - 30'000 - kRounding, "far");
}

// --- A delay lasts as long as was asked for, whatever the wall clock does.

TEST_P(EngineClocks, ADelayLastsThroughAStep) {
  queue.put(client, "job", {.due_in = 30'000});
  queue.pass(1'000);
  step(GetParam());
  expect_in(29'000, "job");
}

TEST_P(EngineClocks, ADelayThatAWrongClockCountedLastsWhenItIsPutRight) {
  for (const Millis delay : {Millis{30'000}, static_cast<Millis>(3 * Step::kHour)}) {
    step(GetParam());
    queue.put(client, "job", {.due_in = delay});
    queue.pass(1'000);
    step(-GetParam());
    expect_in(delay - 1'000, "job");
  }
}

TEST_P(EngineClocks, ADelayOfAReleaseLasts) {
  step(GetParam());
  const JobId id = queue.put(client, "job");
  ASSERT_EQ(queue.reserve(client), "job");
  ASSERT_TRUE(queue.engine().release(client, queue.now(), id, 0, 30'000).done);
  step(-GetParam());
  expect_in(30'000, "job");
}

TEST_P(EngineClocks, AReadyJobStaysReadyWhenTheClockIsPutRight) {
  step(GetParam());
  queue.put(client, "put");
  const JobId kicked = queue.put(client, "kicked", {.priority = 1, .due_in = 30'000});
  ASSERT_TRUE(queue.engine().kick_job(queue.now(), kicked).done);
  step(-GetParam());
  queue.pass(kRounding);
  EXPECT_EQ(queue.engine().tube_stats(queue.now(), "default")->jobs.ready, 2u);
  restart();
  queue.pass(kRounding);
  EXPECT_EQ(queue.reserve(client), "put");
  EXPECT_EQ(queue.reserve(client), "kicked");
}

// The clock was wrong when the delay was counted, and put right while no process ran.
TEST_P(EngineClocks, AFarDelayLastsWhenTheClockIsPutRightOverARestart) {
  step(GetParam());
  queue.put(client, "job", {.due_in = 3 * Step::kHour});
  queue.step_wall_clock(-GetParam());
  restart();
  expect_in(3 * Step::kHour, "job");
}

// --- A moment is due when the wall clock shows it.

TEST_P(EngineClocks, AMomentIsDueByTheWallClock) {
  queue.put(client, "job", {.due_at = queue.utc() + 11 * static_cast<UtcMs>(Step::kTenYears)});
  step(GetParam());
  expect_in(static_cast<Millis>(11 * Step::kTenYears - GetParam()), "job");
}

TEST_P(EngineClocks, AMomentThatIsPutMeanwhileIsDueByTheRightClock) {
  const UtcMs due = queue.utc() + 30'000;
  step(GetParam());
  const JobId id = queue.put(client, "job", {.due_at = due});
  EXPECT_EQ(state(id), GetParam() > 30'000 ? JobState::kReady : JobState::kDelayed);
  step(-GetParam());
  EXPECT_EQ(state(id), JobState::kDelayed);
  expect_in(30'000, "job");
}

// --- Jobs that were handed out while the clock was wrong.

TEST_P(EngineClocks, AJobThatCameEarlyGoesBackUntilItsOwnTime) {
  if (GetParam() < 40'000) return;
  const UtcMs due = queue.utc() + 40'000;
  queue.put(client, "lost", {.due_at = due, .ttr = 5'000});
  queue.put(client, "released", {.due_at = due + 1'000});
  queue.put(client, "held", {.due_at = due + 2'000});
  const ClientId worker = queue.engine().connect();
  const ClientId other = queue.engine().connect();
  step(GetParam());
  ASSERT_EQ(queue.reserve(worker), "lost");
  ASSERT_EQ(queue.reserve(worker), "released");
  ASSERT_EQ(queue.reserve(other), "held");
  ASSERT_TRUE(queue.engine().release(worker, queue.now(), 2, 0, 0).done);
  step(-GetParam());
  queue.pass(5'000);  // its ttr is over
  queue.engine().disconnect(other, queue.now());
  expect_in(35'000, "lost");
  expect_in(1'000 - kRounding, "released");
  expect_in(1'000 - kRounding, "held");
}

TEST_P(EngineClocks, PausesTimeOutsAndTtrsDoNotSeeTheWallClock) {
  queue.put(client, "held", {.ttr = 10'000});
  ASSERT_EQ(queue.reserve(client), "held");
  const ClientId waiting = queue.engine().connect();
  queue.wait(waiting, 5'000);
  ASSERT_TRUE(queue.engine().pause(queue.now(), "default", 20'000));
  step(GetParam());
  queue.pass(4'999);
  EXPECT_TRUE(queue.deliveries().empty());
  queue.pass(1);
  EXPECT_EQ(queue.deliveries().size(), 1u);
  queue.pass(4'999);
  EXPECT_EQ(state(1), JobState::kReserved);
  queue.pass(1);
  EXPECT_EQ(state(1), JobState::kReady);
  queue.pass(9'999);
  EXPECT_EQ(queue.reserve(waiting), "TIMED_OUT");
  queue.pass(1);
  EXPECT_EQ(queue.reserve(waiting), "held");
}

// --- The machine boots: the monotonic clock starts anew.

TEST_P(EngineClocks, AWrongClockAfterABootHarmsNothingOnceItIsPutRight) {
  put_delay_and_moment();
  queue.crash(1'000, GetParam());
  client = queue.engine().connect();
  step(-GetParam());
  expect_both_in_time();
}

TEST_P(EngineClocks, AWrongClockBeforeABootHarmsNothingThatWasPutBeforeIt) {
  put_delay_and_moment();
  step(GetParam());
  store_the_time();
  queue.crash(1'000, -GetParam());
  client = queue.engine().connect();
  expect_both_in_time();
}

// As of a machine whose battery is empty, or whose hardware clock is taken for another zone's.
TEST_P(EngineClocks, WhatIsPutWhileTheClockIsWrongAfterABootComesInTimeOnceItIsPutRight) {
  store_the_time();
  queue.crash(1'000, GetParam());
  client = queue.engine().connect();
  queue.put(client, "near", {.due_in = 30'000});
  queue.put(client, "far", {.due_in = 3 * Step::kHour});
  restart();
  step(-GetParam());
  // A delay that was counted anew twice may be this late.
  constexpr Millis kTwice = 3;
  queue.pass(30'000 - 1);
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  queue.pass(kTwice);
  expect_in(0, "near");
  queue.pass(3 * Step::kHour - 30'000 - kTwice);
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  queue.pass(kTwice);
  expect_in(0, "far");
}

TEST_P(EngineClocks, AClockThatIsWrongBeforeABootAndOtherwiseAfterItHarmsNoMoment) {
  const UtcMs due = queue.utc() + 25'000;
  queue.put(client, "before", {.due_at = due});
  step(GetParam());
  queue.put(client, "meanwhile", {.due_at = due + 1});
  queue.crash(1'000, GetParam());
  client = queue.engine().connect();
  queue.pass(0);
  step(-2 * GetParam());
  expect_in(24'000, "before");
  queue.pass(1);
  EXPECT_EQ(queue.reserve(client), "meanwhile");
}

TEST_P(EngineClocks, ClockMovedTellsHowFarTheWallClockWasSet) {
  EXPECT_EQ(queue.engine().clock_moved(), 0);
  step(GetParam());
  EXPECT_EQ(queue.engine().clock_moved(), GetParam());
  store_the_time();
  restart();
  EXPECT_EQ(queue.engine().clock_moved(), 0);
  queue.step_wall_clock(-GetParam());
  restart();
  EXPECT_EQ(queue.engine().clock_moved(), -GetParam());
}

}  // namespace
}  // namespace carillon::queue
