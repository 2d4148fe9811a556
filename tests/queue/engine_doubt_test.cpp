// A wall clock that is set forward, or with which the machine boots, destroys nothing at once: not
// the window of a key, the answer to a batch, a job that expires, or a dead job that is kept.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

using Result = PutOutcome::Result;

class EngineDoubt : public testing::Test {
 protected:
  EngineDoubt() { check_put(); }
  void TearDown() override { engine().check_invariants(); }

  Engine& engine() { return queue.engine(); }
  void check_put() { client = engine().connect(); }
  // The wall clock is ahead for a second, and long enough for all that is due to be done.
  void ahead_for_a_second(Millis by) {
    queue.step_wall_clock(static_cast<std::int64_t>(by));
    for (int n = 0; n < 10; ++n) queue.pass(100);
    queue.step_wall_clock(-static_cast<std::int64_t>(by));
    queue.pass(1);
  }
  void restart() {
    queue.restart();
    check_put();
  }
  void boot(Millis down, std::int64_t error = 0) {
    queue.crash(down, error);
    check_put();
  }
  Result put_key(Millis window = kHour) {
    return engine().put(client, queue.now(), {.key = "k", .key_window = window}, "x").result;
  }
  void put_and_delete() {
    ASSERT_EQ(put_key(), Result::kInserted);
    ASSERT_EQ(queue.reserve(client), "x");
    ASSERT_TRUE(engine().remove(client, queue.now(), *engine().job_with_key(client, "k")).done);
  }
  bool batch_is_put(Millis window = 2 * kDay) {
    const std::vector<NewJob> jobs{{.order = {}, .body = "one"}};
    return engine().put_all(client, queue.now(), jobs, {.once = "t", .window = window}).result ==
           BatchOutcome::Result::kPut;
  }
  JobState state(JobId id) { return engine().job_stats(queue.now(), id)->state; }
  bool is_there(JobId id) { return engine().job_stats(queue.now(), id).has_value(); }

  VirtualQueue queue;
  ClientId client = 0;
};

TEST_F(EngineDoubt, AKeysWindowOutlivesAClockThatIsAheadForASecond) {
  put_and_delete();
  ahead_for_a_second(2 * kHour);
  EXPECT_EQ(put_key(), Result::kExists);
  restart();
  EXPECT_EQ(put_key(), Result::kExists);
  queue.pass(kHour - 1'100);
  EXPECT_EQ(put_key(), Result::kExists);
  queue.pass(200);
  EXPECT_EQ(put_key(), Result::kInserted);
}

TEST_F(EngineDoubt, AKeysWindowLastsByElapsedTimeHoweverLongTheClockIsAhead) {
  put_and_delete();
  queue.step_wall_clock(2 * kHour);
  queue.pass(kHour - 10);
  EXPECT_EQ(put_key(), Result::kExists);
  queue.pass(10);
  EXPECT_EQ(put_key(), Result::kInserted);
}

TEST_F(EngineDoubt, AWindowThatBeganWhileTheClockWasAheadIsNoLonger) {
  queue.step_wall_clock(30 * kDay);
  put_and_delete();
  queue.pass(1'000);
  queue.step_wall_clock(-static_cast<std::int64_t>(30 * kDay));
  queue.pass(kHour - 1'001);
  EXPECT_EQ(put_key(), Result::kExists);
  queue.pass(1);
  EXPECT_EQ(put_key(), Result::kInserted);
}

TEST_F(EngineDoubt, AWindowThatIsOverIsForgottenThoughTheClockWasSet) {
  put_and_delete();
  queue.step_wall_clock(-static_cast<std::int64_t>(2 * kHour));
  queue.pass(kHour);
  queue.pass(2'000);
  EXPECT_TRUE(queue.store().scan_ended_keys(0, 10).empty());
}

TEST_F(EngineDoubt, ABatchIsNotPutAgainAfterAClockThatIsAheadForASecond) {
  ASSERT_TRUE(batch_is_put());
  ahead_for_a_second(3 * kDay);
  EXPECT_FALSE(batch_is_put());
  EXPECT_TRUE(engine().knows_token("t"));
  restart();
  EXPECT_FALSE(batch_is_put());
  queue.pass(2 * kDay);
  EXPECT_FALSE(engine().knows_token("t"));
  EXPECT_TRUE(batch_is_put());
}

TEST_F(EngineDoubt, AClockThatIsAheadAfterABootEndsNoWindow) {
  put_and_delete();
  ASSERT_TRUE(batch_is_put());
  boot(5'000, 3 * kDay);
  queue.pass(30'000);
  queue.step_wall_clock(-static_cast<std::int64_t>(3 * kDay));
  queue.pass(2 * kMinute);
  EXPECT_EQ(put_key(), Result::kExists);
  EXPECT_FALSE(batch_is_put());
  restart();
  EXPECT_EQ(put_key(), Result::kExists);
}

TEST_F(EngineDoubt, TheTimeInWhichTheMachineWasOffCountsAMinuteAfterTheBoot) {
  put_and_delete();
  boot(2 * kHour);
  EXPECT_EQ(put_key(), Result::kExists);
  queue.pass(kMinute);
  EXPECT_EQ(put_key(), Result::kInserted);
}

TEST_F(EngineDoubt, AJobWhoseExpiryAClockAheadHasPassedIsNeitherHandedOutNorLost) {
  for (const AtExpiry then : {AtExpiry::kDrop, AtExpiry::kDead}) {
    const JobId id = queue.put(client, "m", {.expires_at = queue.utc() + kHour, .at_expiry = then});
    const JobId other =
        queue.put(client, "far",
                  {.due_in = 10 * kMinute, .expires_at = queue.utc() + kHour, .at_expiry = then});
    queue.step_wall_clock(2 * kHour);
    queue.pass(1'000);
    EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
    EXPECT_EQ(state(id), JobState::kReserved);
    queue.step_wall_clock(-static_cast<std::int64_t>(2 * kHour));
    queue.pass(1);
    EXPECT_EQ(state(id), JobState::kReady);
    EXPECT_EQ(state(other), JobState::kDelayed);
    EXPECT_EQ(queue.reserve(client), "m");
    EXPECT_TRUE(engine().remove(client, queue.now(), id).done);
  }
}

TEST_F(EngineDoubt, AMomentOfExpiryCountsAMinuteAfterTheClockWasSet) {
  const JobId id = queue.put(client, "m", {.expires_at = queue.utc() + kHour});
  queue.step_wall_clock(2 * kHour);
  queue.pass(0);
  queue.pass(1'000);
  restart();
  queue.pass(kMinute - 1'001);
  EXPECT_TRUE(is_there(id));
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  queue.pass(2);
  queue.pass(0);
  EXPECT_FALSE(is_there(id));
}

TEST_F(EngineDoubt, ADoubtedJobThatIsCancelledIsGoneWhenTheDoubtIsOver) {
  const JobId id = queue.put(client, "m", {.expires_at = queue.utc() + kHour});
  queue.step_wall_clock(2 * kHour);
  queue.pass(0);
  queue.pass(1'000);
  EXPECT_EQ(engine().cancel(queue.now(), id, true).result, ChangeOutcome::Result::kAsked);
  queue.step_wall_clock(-static_cast<std::int64_t>(2 * kHour));
  queue.pass(1);
  queue.pass(0);
  EXPECT_FALSE(is_there(id));
}

TEST_F(EngineDoubt, ExpiresInIsCountedByElapsedTime) {
  const JobId before = queue.put(client, "x", {.expires_in = kHour});
  queue.step_wall_clock(2 * kHour);
  const JobId meanwhile = queue.put(client, "y", {.expires_in = kHour});
  queue.pass(10 * kMinute);
  EXPECT_EQ(state(before), JobState::kReady);
  EXPECT_EQ(engine().job_stats(queue.now(), before)->record.extras->expires,
            queue.utc() + 50 * kMinute + 2);
  queue.step_wall_clock(-static_cast<std::int64_t>(2 * kHour));
  queue.pass(50 * kMinute - 1);
  EXPECT_EQ(state(before), JobState::kReady);
  EXPECT_EQ(state(meanwhile), JobState::kReady);
  queue.pass(4);
  queue.pass(0);
  EXPECT_FALSE(is_there(before));
  EXPECT_FALSE(is_there(meanwhile));
}

TEST_F(EngineDoubt, WhatExpiredWhileTheMachineWasOffIsNotHandedOut) {
  const JobId id = queue.put(client, "x", {.expires_in = kHour});
  boot(2 * kHour);
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  EXPECT_TRUE(is_there(id));
  queue.pass(kMinute);
  queue.pass(0);
  EXPECT_FALSE(is_there(id));
}

TEST_F(EngineDoubt, ManyDoubtedJobsAreDecidedInSteps) {
  for (int n = 0; n < 5'000; ++n) queue.put(client, "x", {.expires_at = queue.utc() + kHour});
  queue.step_wall_clock(2 * kHour);
  for (int n = 0; n < 100; ++n) queue.pass(1);
  EXPECT_EQ(engine().stats().jobs.ready, 0u);
  queue.step_wall_clock(-static_cast<std::int64_t>(2 * kHour));
  EXPECT_TRUE(engine().tube_stats(queue.now(), "default"));
  EXPECT_LE(engine().stats().jobs.ready, 64u);
  for (int n = 0; n < 100; ++n) queue.pass(0);
  EXPECT_EQ(engine().stats().jobs.ready, 5'000u);
}

// Memory holds 100 000 jobs in doubt.
TEST_F(EngineDoubt, AFloodOfDoubtedJobsHoldsUpNoOtherTube) {
  const UtcMs then = queue.utc() + kHour;
  engine().use(client, "flood");
  for (int n = 0; n < 101'000; ++n)
    queue.put(client, "x", {.due_at = then, .expires_at = then + 1});
  queue.put(client, "behind them", {.due_at = then + 1});
  engine().use(client, "other");
  queue.put(client, "other", {.due_at = then + kHour + 30'000});
  engine().watch(client, "flood");
  engine().watch(client, "other");
  const auto work_off = [this] {
    for (int n = 0; n < 5'000; ++n) queue.pass(0);
  };
  queue.step_wall_clock(2 * kHour);
  work_off();
  queue.pass(30'000);
  work_off();
  EXPECT_EQ(queue.reserve(client), "other");
  EXPECT_EQ(queue.reserve(client), "TIMED_OUT");
  queue.pass(30'000);
  work_off();
  EXPECT_EQ(queue.reserve(client), "behind them");
}

TEST_F(EngineDoubt, ADeadJobIsKeptThoughTheMachineBootsWithAClockAhead) {
  engine().set_tube(queue.now(), "default", {.retention = kDay});
  const JobId id = queue.put(client, "x", {.expires_in = 1, .at_expiry = AtExpiry::kDead});
  queue.pass(10);
  queue.pass(0);
  ASSERT_EQ(state(id), JobState::kBuried);
  queue.pass(2'000);
  queue.put(client, "so that the time is stored");
  boot(1'000, 3 * kDay);
  queue.pass(30'000);
  EXPECT_TRUE(is_there(id));
  queue.step_wall_clock(-static_cast<std::int64_t>(3 * kDay));
  queue.pass(kHour);
  EXPECT_TRUE(is_there(id));
  queue.pass(kDay);
  queue.pass(0);
  EXPECT_FALSE(is_there(id));
}

TEST_F(EngineDoubt, AClockThatGoesAheadAgainAndAgainIsBelievedInTheEnd) {
  const JobId id = queue.put(client, "x", {.expires_at = queue.utc() + kHour});
  for (int n = 0; n < 100; ++n) {
    queue.step_wall_clock(2'000);
    queue.pass(1);
    queue.pass(50'000);
  }
  EXPECT_FALSE(is_there(id));
}

}  // namespace
}  // namespace carillon::queue
