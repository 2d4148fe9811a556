// What users of Netty's HashedWheelTimer rely on, case by case as its own tests have it, on virtual
// time; and that its known defects are absent. The table of what is called how is in
// docs/timers.md.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "timer/allocations.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class NettyContract : public ::testing::Test {
 protected:
  // Ticks of 100 ms, as Netty has them if nothing else is said.
  TimerOptions like_netty() const { return {.tick = 100ms, .clock = clock_}; }
  // With all timers on one wheel.
  TimerOptions one_wheel() const { return {.tick = 100ms, .clock = clock_, .shards = 1}; }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(SteadyTime(1000s));
  int ran_ = 0;
  std::function<void()> count_ = [this] { ++ran_; };
};

// --- its published cases

TEST_F(NettyContract, ATimeoutDoesNotRunBeforeItsDelay) {
  TimerService timers(like_netty());
  const TimerHandle timeout = timers.schedule_after(10s, count_);
  clock_->advance(3s);
  EXPECT_EQ(ran_, 0);
  EXPECT_EQ(timeout.state(), TimerState::kPending);
  clock_->advance(7s - 1ns);
  EXPECT_EQ(ran_, 0);
}

TEST_F(NettyContract, ATimeoutRunsAfterItsDelayAndIsOver) {
  TimerService timers(like_netty());
  const TimerHandle timeout = timers.schedule_after(2s, count_);
  clock_->advance(3s);
  EXPECT_EQ(ran_, 1);
  EXPECT_EQ(timeout.state(), TimerState::kOver);
}

TEST_F(NettyContract, StopReturnsNothingOfWhatHasRunAndAllOfWhatHasNot) {
  TimerService processed(like_netty());
  for (int i = 0; i < 3; ++i) processed.schedule_after(1ms, count_);
  clock_->advance(100ms);
  EXPECT_EQ(ran_, 3);
  EXPECT_TRUE(processed.stop().empty());

  TimerService unprocessed(like_netty());
  for (int i = 0; i < 5; ++i) unprocessed.schedule_after(5s, count_);
  clock_->advance(1s);
  EXPECT_EQ(unprocessed.stop().size(), 5U);
  EXPECT_EQ(ran_, 3);
}

TEST_F(NettyContract, WhatStopReturnsIsOverForItsHandle) {
  TimerService timers(like_netty());
  for (int i = 0; i < 5; ++i) timers.schedule_after(5s, count_);
  clock_->advance(1s);
  for (Unprocessed& rest : timers.stop()) {
    EXPECT_EQ(rest.handle.state(), TimerState::kOver);
    EXPECT_FALSE(rest.handle.cancel()) << "its one end was to be returned";
  }
}

TEST_F(NettyContract, AfterStopANewTimeoutIsRefused) {
  TimerService timers(like_netty());
  for (int i = 0; i < 3; ++i) timers.schedule_after(1ms, count_);
  clock_->advance(100ms);
  static_cast<void>(timers.stop());
  EXPECT_THROW(timers.schedule_after(1ms, count_), TimersStopped);
}

TEST_F(NettyContract, ATaskMayScheduleItselfAgainAndAgainBeyondTheLengthOfNettysWheel) {
  TimerService timers(one_wheel());
  std::function<void()> again = [&] {
    ++ran_;
    timers.schedule_after(100ms, again);
  };
  timers.schedule_after(100ms, again);
  clock_->advance(10s);
  EXPECT_EQ(ran_, 100) << "three turns of a wheel of 32 slots";
  EXPECT_EQ(timers.stop().size(), 1U);
}

TEST_F(NettyContract, ADelayOfOneTurnOrMoreFiresInItsOwnTurn) {
  TimerService timers(one_wheel());
  std::vector<std::int64_t> fired_at;
  for (const auto delay : {3200ms, 3100ms, 3300ms, 6400ms, 32000ms, 100ms}) {
    timers.schedule_after(delay,
                          [&] { fired_at.push_back((clock_->now() - SteadyTime(1000s)) / 1ms); });
  }
  clock_->advance(1min);
  EXPECT_EQ(fired_at, (std::vector<std::int64_t>{100, 3100, 3200, 3300, 6400, 32'000}));
}

TEST_F(NettyContract, AHundredThousandTimeoutsAreOnTime) {
  constexpr auto kTick = 200ms;
  constexpr auto kDelay = 125ms;
  TimerService timers({.tick = kTick, .clock = clock_});
  int wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (i % 1000 == 0) clock_->advance(3ms);
    const SteadyTime due = clock_->now() + kDelay;
    timers.schedule_after(kDelay, [&, due] {
      ++ran_;
      wrong += clock_->now() >= due && clock_->now() < due + kTick ? 0 : 1;
    });
  }
  clock_->advance(1s);
  EXPECT_EQ(ran_, 100'000);
  EXPECT_EQ(wrong, 0) << "not early, and late by less than a tick (Netty's own test allows 525 ms)";
}

TEST_F(NettyContract, TasksRunOnTheExecutorOfTheUser) {
  int handed_over = 0;
  TimerOptions options = one_wheel();
  options.executor = TimerExecutor::by([&](DueTask task) {
    ++handed_over;
    task();
  });
  TimerService timers(std::move(options));
  timers.schedule_after(10ms, count_);
  clock_->advance(100ms);
  EXPECT_EQ(handed_over, 1);
  EXPECT_EQ(ran_, 1);
}

TEST_F(NettyContract, OneTimeoutTooManyIsRefused) {
  TimerOptions options = one_wheel();
  options.max_pending = 2;
  TimerService timers(std::move(options));
  timers.schedule_after(5s, count_);
  timers.schedule_after(5s, count_);
  EXPECT_THROW(timers.schedule_after(1ms, count_), TooManyTimers);
}

TEST_F(NettyContract, ATimeoutThatIsCancelledMakesRoomAtOnceNotTicksLater) {
  TimerOptions options = one_wheel();
  options.max_pending = 2;
  TimerService timers(std::move(options));
  timers.schedule_after(5s, count_);
  TimerHandle cancelled = timers.schedule_after(5s, count_);
  EXPECT_TRUE(cancelled.cancel());
  EXPECT_NO_THROW(timers.schedule_after(90ms, count_));
  clock_->advance(100ms);
  EXPECT_EQ(ran_, 1);
}

TEST_F(NettyContract, ATimeoutThatHasRunMakesRoom) {
  TimerService timers({.tick = 25ms, .max_pending = 2, .clock = clock_, .shards = 1});
  timers.schedule_after(5s, count_);
  timers.schedule_after(90ms, count_);
  clock_->advance(100ms);
  EXPECT_NO_THROW(timers.schedule_after(90ms, count_));
  clock_->advance(100ms);
  EXPECT_EQ(ran_, 2);
}

TEST_F(NettyContract, PendingTimeoutsAreReported) {
  TimerService timers(like_netty());
  TimerHandle first = timers.schedule_after(100min, count_);
  TimerHandle second = timers.schedule_after(100min, count_);
  timers.schedule_after(90ms, count_);
  EXPECT_EQ(timers.pending(), 3U);
  first.cancel();
  second.cancel();
  EXPECT_EQ(timers.pending(), 1U) << "at once";
  clock_->advance(100ms);
  EXPECT_EQ(timers.pending(), 0U);
}

TEST_F(NettyContract, TheLongestDelayThereIsDoesNotOverflow) {
  TimerService timers(like_netty());
  TimerHandle timeout = timers.schedule_after(milliseconds::max(), count_);
  clock_->advance(24h * 365 * 200);
  EXPECT_EQ(ran_, 0);
  EXPECT_TRUE(timeout.cancel());
}

// Netty calls TimerTask.cancelled(), on the thread that cancels. Here that is the task's
// destructor, or what follows cancel() if it is true.
TEST_F(NettyContract, CancellingCleansUpOnTheThreadThatCancels) {
  struct CleansUp {
    std::thread::id* on;
    explicit CleansUp(std::thread::id& thread) : on(&thread) {}
    CleansUp(CleansUp&& from) noexcept : on(std::exchange(from.on, nullptr)) {}
    ~CleansUp() {
      if (on != nullptr) *on = std::this_thread::get_id();
    }
    void operator()() { FAIL() << "it was cancelled"; }
  };
  std::thread::id cleaned_up_on;
  TimerService timers(like_netty());
  TimerHandle timeout = timers.schedule_after(90ms, CleansUp(cleaned_up_on));
  EXPECT_EQ(timers.pending(), 1U);
  EXPECT_EQ(cleaned_up_on, std::thread::id());
  EXPECT_TRUE(timeout.cancel());
  EXPECT_EQ(cleaned_up_on, std::this_thread::get_id());
}

// Eleven of one tick: while the first runs, the ten others are cancelled, though they are due.
TEST_F(NettyContract, PendingIsRightWhenTimeoutsAreCancelledWithinTheirTick) {
  TimerService timers(like_netty());
  std::vector<TimerHandle> others;
  int cancelled = 0;
  timers.schedule_after(200ms, [&] {
    for (TimerHandle& other : others) cancelled += other.cancel() ? 1 : 0;
  });
  for (int i = 0; i < 10; ++i) others.push_back(timers.schedule_after(200ms, count_));
  clock_->advance(3s);
  EXPECT_EQ(cancelled, 10);
  EXPECT_EQ(ran_, 0);
  EXPECT_EQ(timers.pending(), 0U);
  EXPECT_EQ(timers.stats().cancelled, 10U);
}

// --- its defects

// A HashedWheelTimer wakes at each tick, 36 000 times an hour, whether there is anything or not.
TEST_F(NettyContract, Absent_IdleWakeups) {
  TimerService timers(like_netty());
  timers.schedule_after(100ms, count_);
  clock_->advance(100ms);
  const std::uint64_t before = timers.stats().wakeups;
  clock_->advance(1h);
  EXPECT_EQ(timers.stats().wakeups, before) << "with nothing pending";
  timers.schedule_after(24h, count_);
  clock_->settle();
  const std::uint64_t with_one = timers.stats().wakeups;
  clock_->advance(1h);
  EXPECT_LE(timers.stats().wakeups, with_one + 1) << "with one timer in a day";
}

// newTimeout() looks whether the timer runs, and puts the timeout into a queue; a stop() between
// the two neither runs nor returns it. Here somebody stops the service while a timer is on its way
// into the wheel: while the wheel on the steady clock takes memory for its first timer.
TEST_F(NettyContract, Absent_TheRaceWithStop_ATimerUnderWayIsReturned) {
  TimerService timers({.clock = clock_, .shards = 1});
  timers.schedule_at(clock_->wall_now() + 1h, count_);
  clock_->settle();
  std::vector<Unprocessed> rest;
  std::thread stopper;
  at_next_slab = [&] {
    stopper = std::thread([&] { rest = timers.stop(); });
    while (timers.stats().rejected == 0) {  // until stop() has begun, which now waits for the shard
      try {
        timers.schedule_after(1h, count_).cancel();
      } catch (const TimersStopped&) {
      }
    }
  };
  const TimerHandle under_way = timers.schedule_after(1s, count_);
  ASSERT_FALSE(std::exchange(at_next_slab, nullptr)) << "nothing was disturbed";
  stopper.join();
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[0].handle, under_way);
  EXPECT_EQ(ran_, 0);
}

// A HashedWheelTimer goes through all timeouts of a slot each time that the hand comes to it, to
// count their rounds down.
TEST_F(NettyContract, Absent_WalkingThroughAllRounds) {
  constexpr int kTimers = 10'000;
  TimerService timers(one_wheel());
  // All in one slot, a thousand rounds of 3.2 s away.
  for (int i = 0; i < kTimers; ++i) timers.schedule_after(3200s, count_);
  clock_->settle();
  const std::uint64_t before = timers.stats().wakeups;
  clock_->advance(3200s - 1ns);
  EXPECT_LE(timers.stats().wakeups, before + 2)
      << "the hand need not come by, so there is nothing to walk through";
  clock_->advance(1ns);
  EXPECT_EQ(ran_, kTimers);
}

// netty#14959, in Dubbo's older copy: a timeout that is cancelled and removed at the same time was
// counted down twice.
TEST_F(NettyContract, Absent_CountingATimerDownTwice) {
  constexpr std::size_t kMost = 10;
  TimerService timers({.tick = 100ms, .max_pending = kMost, .clock = clock_});
  for (int round = 0; round < 100; ++round) {
    std::vector<TimerHandle> handles;
    for (std::size_t i = 0; i < kMost; ++i) {
      handles.push_back(timers.schedule_after(100ms, [&] {
        // Those that are due, this one, and all of them twice.
        for (TimerHandle& handle : handles) handle.cancel();
        for (TimerHandle& handle : handles) handle.cancel();
      }));
    }
    ASSERT_THROW(timers.schedule_after(1s, count_), TooManyTimers)
        << "no more and no less than " << kMost;
    ASSERT_EQ(timers.pending(), kMost);
    clock_->advance(100ms);
    ASSERT_EQ(timers.pending(), 0U);
  }
}

// Netty and Dubbo warn, in the log, of more than 64 timers in a process.
TEST_F(NettyContract, Absent_WarningsOfTooManyInstances) {
  ::testing::internal::CaptureStderr();
  {
    std::vector<std::unique_ptr<TimerService>> many;
    for (int i = 0; i < 128; ++i) many.push_back(std::make_unique<TimerService>(like_netty()));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace carillon::testing
