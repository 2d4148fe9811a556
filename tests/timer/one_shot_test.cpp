// One-shot timers on a manual clock: when they fire, in which order, and what their handles say.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class OneShot : public ::testing::Test {
 protected:
  SteadyTime now() const { return clock_->now(); }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(SteadyTime(1000s));
  TimerService timers_{{.clock = clock_}};
  std::vector<std::string> log_;
};

TEST_F(OneShot, FiresAtItsTimeAndNotBefore) {
  const TimerHandle handle = timers_.schedule_after(30s, [&] { log_.emplace_back("fired"); });
  clock_->advance(30s - 1ns);
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(handle.state(), TimerState::kPending);
  clock_->advance(1ns);
  EXPECT_EQ(log_.size(), 1U);
  EXPECT_EQ(handle.state(), TimerState::kOver);
  clock_->advance(1h);
  EXPECT_EQ(log_.size(), 1U) << "once";
}

TEST_F(OneShot, ATimeWithinATickFiresAtTheEndOfTheTickNeverEarlier) {
  SteadyTime fired_at;
  timers_.schedule_after(1500us, [&] { fired_at = now(); });
  clock_->advance(10ms);
  EXPECT_EQ(fired_at, SteadyTime(1000s) + 2ms);
}

TEST_F(OneShot, AFineTickIsExactToTheNanosecond) {
  TimerService fine({.tick = 1ns, .clock = clock_});
  std::vector<std::int64_t> fired_at;
  for (const auto delay : {7ns, 1ns, 1'000'001ns, 3ns}) {
    fine.schedule_after(delay, [&] { fired_at.push_back((now() - SteadyTime(1000s)).count()); });
  }
  clock_->advance(1s);
  EXPECT_EQ(fired_at, (std::vector<std::int64_t>{1, 3, 7, 1'000'001}));
}

TEST_F(OneShot, OneThreadsTimersFireByTimeAndWithinATickInTheOrderScheduled) {
  for (const int ms : {5, 3, 5, 4, 3}) {
    timers_.schedule_after(std::chrono::milliseconds(ms), [this, ms, number = log_.size()] {
      log_.push_back(std::to_string(ms));
    });
  }
  clock_->advance(10ms);
  EXPECT_EQ(log_, (std::vector<std::string>{"3", "3", "4", "5", "5"}));
}

TEST_F(OneShot, ATimerThatIsAlreadyDueFiresAtOnce) {
  timers_.schedule_after(0s, [&] { log_.emplace_back("zero"); });
  timers_.schedule_after(-5s, [&] { log_.emplace_back("negative"); });
  timers_.schedule_at(now() - 1h, [&] { log_.emplace_back("past"); });
  timers_.schedule_at(std::chrono::steady_clock::time_point::min(),
                      [&] { log_.emplace_back("long past"); });
  clock_->settle();
  EXPECT_EQ(log_.size(), 4U) << "although the clock has not moved";
}

TEST_F(OneShot, ATimeBeyondTheRangeBecomesTheEndOfTheRangeAndDoesNotFireAtOnce) {
  const TimerHandle handles[] = {
      timers_.schedule_after(std::chrono::nanoseconds::max(), [&] { log_.emplace_back("!"); }),
      timers_.schedule_after(std::chrono::hours::max(), [&] { log_.emplace_back("!"); }),
      timers_.schedule_after(std::chrono::duration<double>(1e300), [&] { log_.emplace_back("!"); }),
      timers_.schedule_at(std::chrono::steady_clock::time_point::max(),
                          [&] { log_.emplace_back("!"); }),
      timers_.schedule_at(std::chrono::sys_days(std::chrono::year(2200) / 1 / 1),
                          [&] { log_.emplace_back("!"); }),
  };
  clock_->advance(24h * 365 * 100);
  EXPECT_TRUE(log_.empty());
  for (TimerHandle handle : handles) EXPECT_TRUE(handle.cancel());
}

// Ticks before 0 counted as 0, so that all timers waited for it.
TEST_F(OneShot, AClockMayBeginBeforeItsEpoch) {
  const auto clock = std::make_shared<ManualClock>(SteadyTime(-1h), WallTime(-48h));
  TimerService timers({.clock = clock});
  std::vector<std::string> fired;
  timers.schedule_after(30min, [&] { fired.emplace_back("steady"); });
  timers.schedule_at(std::chrono::system_clock::time_point(-47h),
                     [&] { fired.emplace_back("wall"); });
  timers.schedule_after(
      59min, [&] { fired.emplace_back("with slack"); }, 10min);
  clock->advance(30min - 1ns);
  EXPECT_TRUE(fired.empty());
  clock->advance(1ns);
  EXPECT_EQ(fired, std::vector<std::string>{"steady"});
  clock->advance(30min);
  EXPECT_EQ(fired, (std::vector<std::string>{"steady", "with slack", "wall"}));
}

TEST_F(OneShot, CancelReturnsTrueOnceAndDestroysTheTaskWithinTheCall) {
  const auto captured = std::make_shared<int>(1);
  TimerHandle handle = timers_.schedule_after(1s, [captured] { FAIL() << "it was cancelled"; });
  EXPECT_EQ(captured.use_count(), 2);
  EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_FALSE(handle.cancel());
  EXPECT_EQ(handle.state(), TimerState::kOver);
  EXPECT_EQ(timers_.pending(), 0U);
  clock_->advance(2s);
}

TEST_F(OneShot, CancelReturnsFalseAfterItFired) {
  TimerHandle handle = timers_.schedule_after(1s, [] {});
  clock_->advance(1s);
  EXPECT_FALSE(handle.cancel());
  EXPECT_FALSE(handle.cancel_and_wait());
  EXPECT_FALSE(handle.reschedule_after(1s));
}

TEST_F(OneShot, CancelReturnsFalseInsideItsOwnTask) {
  TimerHandle handle;
  handle = timers_.schedule_after(1s, [&] {
    EXPECT_EQ(handle.state(), TimerState::kRunning);
    EXPECT_FALSE(handle.cancel());
    EXPECT_FALSE(handle.reschedule_after(1s));
    log_.emplace_back("ran");
  });
  clock_->advance(5s);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(OneShot, AnEmptyHandleNamesNoTimer) {
  TimerHandle handle;
  EXPECT_FALSE(handle);
  EXPECT_FALSE(handle.cancel());
  EXPECT_FALSE(handle.cancel_and_wait());
  EXPECT_FALSE(handle.reschedule_after(1s));
  EXPECT_EQ(handle.state(), TimerState::kOver);
}

TEST_F(OneShot, AnOldHandleNeverRefersToAnotherTimer) {
  TimerHandle old = timers_.schedule_after(1s, [] {});
  EXPECT_TRUE(old.cancel());
  std::vector<TimerHandle> handles;
  for (int i = 0; i < 1000; ++i) handles.push_back(timers_.schedule_after(1s, [] {}));
  EXPECT_FALSE(old.cancel());
  EXPECT_FALSE(old.reschedule_after(1h));
  for (TimerHandle& handle : handles) {
    EXPECT_NE(handle, old);
    EXPECT_TRUE(handle.cancel());
  }
}

TEST_F(OneShot, AHandleOutlivesItsService) {
  TimerHandle fired;
  TimerHandle pending;
  {
    TimerService gone({.clock = clock_});
    fired = gone.schedule_after(1s, [] {});
    pending = gone.schedule_after(10s, [] {});
    clock_->advance(1s);
  }
  for (TimerHandle handle : {fired, pending}) {
    EXPECT_EQ(handle.state(), TimerState::kOver);
    EXPECT_FALSE(handle.cancel());
    EXPECT_FALSE(handle.cancel_and_wait());
    EXPECT_FALSE(handle.reschedule_after(1s));
  }
}

TEST_F(OneShot, RescheduleLater) {
  TimerHandle handle = timers_.schedule_after(1s, [&] { log_.emplace_back("fired"); });
  EXPECT_TRUE(handle.reschedule_after(10s));
  clock_->advance(10s - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(OneShot, RescheduleEarlierThanTheTimerThreadSleeps) {
  TimerHandle handle = timers_.schedule_after(10s, [&] { log_.emplace_back("fired"); });
  clock_->settle();
  EXPECT_TRUE(handle.reschedule_at(now() + 1s));
  clock_->advance(1s);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(OneShot, RescheduleBackAndForthEndsAtTheLastTime) {
  TimerHandle handle = timers_.schedule_after(10s, [&] { log_.emplace_back("fired"); });
  for (const auto delay : {20s, 5s, 30s, 3s, 7s}) EXPECT_TRUE(handle.reschedule_after(delay));
  clock_->advance(7s - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(OneShot, RescheduleOnTheOtherClockIsRefusedAndChangesNothing) {
  TimerHandle handle = timers_.schedule_after(5s, [&] { log_.emplace_back("fired"); });
  EXPECT_FALSE(handle.reschedule_at(WallTime(1s)));
  clock_->advance(4s);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1s);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(OneShot, SlackMayDelayButNotBeyondItsBound) {
  SteadyTime fired_at;
  timers_.schedule_after(
      10ms, [&] { fired_at = now(); }, 50ms);
  clock_->advance(1s);
  EXPECT_GE(fired_at, SteadyTime(1000s) + 10ms);
  EXPECT_LE(fired_at, SteadyTime(1000s) + 60ms);
}

TEST_F(OneShot, SlackSharesWakeups) {
  const auto wakeups = [&](std::chrono::nanoseconds slack) {
    TimerService timers({.clock = clock_});
    for (int ms = 1; ms <= 100; ++ms)
      timers.schedule_after(
          std::chrono::milliseconds(1000 + ms), [] {}, slack);
    clock_->advance(10s);
    EXPECT_EQ(timers.stats().fired, 100U);
    return timers.stats().wakeups;
  };
  EXPECT_GE(wakeups(0ms), 100U);
  EXPECT_LE(wakeups(200ms), 20U);
}

TEST_F(OneShot, LargeTasksAndTasksThatCannotBeCopiedAreFine) {
  std::array<char, 1000> large{};
  large[999] = 'x';
  auto unique = std::make_unique<std::string>("moved");
  timers_.schedule_after(1s, [this, large] { log_.emplace_back(1, large[999]); });
  timers_.schedule_after(2s, [this, unique = std::move(unique)] { log_.push_back(*unique); });
  clock_->advance(2s);
  EXPECT_EQ(log_, (std::vector<std::string>{"x", "moved"}));
}

TEST_F(OneShot, ATaskThatThrowsWhenMovedLeavesNothingBehind) {
  struct Thrower {
    Thrower() = default;
    Thrower(const Thrower&) { throw std::runtime_error("no copy"); }
    void operator()() {}
  };
  const Thrower thrower;
  EXPECT_THROW(timers_.schedule_after(1s, thrower), std::runtime_error);
  EXPECT_EQ(timers_.pending(), 0U);
}

TEST_F(OneShot, ATaskMaySchedule) {
  timers_.schedule_after(1s, [&] {
    log_.emplace_back("first");
    timers_.schedule_after(1s, [&] { log_.emplace_back("second"); });
    timers_.schedule_after(0s, [&] { log_.emplace_back("at once"); });
  });
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"first", "at once"}));
  clock_->advance(1s);
  EXPECT_EQ(log_.back(), "second");
}

TEST_F(OneShot, TimersOfYearsWorkAndCostAFewWakeups) {
  timers_.schedule_after(24h * 365 * 100, [&] { log_.emplace_back("a century"); });
  clock_->advance(24h * 365 * 100 - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(log_.size(), 1U);
  EXPECT_LE(timers_.stats().wakeups, 10U);
}

TEST_F(OneShot, TheTickMustBePositive) {
  EXPECT_THROW(TimerService({.tick = 0ns}), std::invalid_argument);
  EXPECT_THROW(TimerService({.tick = -1ms}), std::invalid_argument);
}

}  // namespace
}  // namespace carillon::testing
