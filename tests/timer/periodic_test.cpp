// Periodic timers: they do not drift, and missed periods are skipped, caught up or delayed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::vector<std::int64_t>;

class Periodic : public ::testing::Test {
 protected:
  std::int64_t now_ms() const { return clock_->now().time_since_epoch() / 1ms; }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  TimerService timers_{{.clock = clock_}};
  Milliseconds ran_;
};

TEST_F(Periodic, RunsAtEachPeriodWithoutDrift) {
  timers_.schedule_every(10ms, [&] { ran_.push_back(now_ms()); });
  clock_->advance(55ms);
  EXPECT_EQ(ran_, (Milliseconds{10, 20, 30, 40, 50}));
}

TEST_F(Periodic, APeriodThatIsNotAMultipleOfTheTickDoesNotDriftEither) {
  timers_.schedule_every(1500us, [&] { ran_.push_back(now_ms()); });
  clock_->advance(15ms);
  EXPECT_EQ(ran_, (Milliseconds{2, 3, 5, 6, 8, 9, 11, 12, 14, 15}))
      << "1.5, 3, 4.5, 6 … rounded up to ticks";
}

// In these three tests the second run, at 20 ms, takes 25 ms, and misses the times 30 and 40 ms.
TEST_F(Periodic, MissedSkipLeavesMissedTimesOut) {
  timers_.schedule_every(
      10ms,
      [&] {
        ran_.push_back(now_ms());
        if (ran_.size() == 2) clock_->pass(25ms);
      },
      MissedRuns::kSkip);
  clock_->advance(60ms);
  EXPECT_EQ(ran_, (Milliseconds{10, 20, 50, 60}));
}

TEST_F(Periodic, MissedBurstCatchesUp) {
  timers_.schedule_every(
      10ms,
      [&] {
        ran_.push_back(now_ms());
        if (ran_.size() == 2) clock_->pass(25ms);
      },
      MissedRuns::kBurst);
  clock_->advance(60ms);
  EXPECT_EQ(ran_, (Milliseconds{10, 20, 45, 45, 50, 60}));
}

TEST_F(Periodic, MissedDelayStartsAnew) {
  timers_.schedule_every(
      10ms,
      [&] {
        ran_.push_back(now_ms());
        if (ran_.size() == 2) clock_->pass(25ms);
      },
      MissedRuns::kDelay);
  clock_->advance(65ms);
  EXPECT_EQ(ran_, (Milliseconds{10, 20, 55, 65}));
}

TEST_F(Periodic, FixedDelayCountsFromTheEndOfEachRun) {
  timers_.schedule_with_fixed_delay(10ms, [&] {
    ran_.push_back(now_ms());
    clock_->pass(5ms);
  });
  clock_->advance(45ms);
  EXPECT_EQ(ran_, (Milliseconds{10, 25, 40}));
}

TEST_F(Periodic, CancelledBetweenRunsIsOver) {
  TimerHandle handle = timers_.schedule_every(10ms, [&] { ran_.push_back(now_ms()); });
  clock_->advance(25ms);
  EXPECT_TRUE(handle.cancel());
  clock_->advance(100ms);
  EXPECT_EQ(ran_, (Milliseconds{10, 20}));
  EXPECT_EQ(timers_.pending(), 0U);
}

TEST_F(Periodic, CancelledFromInsideItsRunEndsWithIt) {
  const auto captured = std::make_shared<int>(0);
  TimerHandle handle;
  handle = timers_.schedule_every(10ms, [&, captured] {
    ran_.push_back(now_ms());
    if (ran_.size() < 3) return;
    EXPECT_TRUE(handle.cancel());
    EXPECT_FALSE(handle.cancel()) << "it was cancelled already";
    EXPECT_EQ(captured.use_count(), 2) << "the task lives as long as it runs";
  });
  clock_->advance(100ms);
  EXPECT_EQ(ran_.size(), 3U);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(timers_.stats().cancelled, 1U);
}

TEST_F(Periodic, RescheduleMovesTheNextRunAndThePeriodsGoOnFromThere) {
  TimerHandle handle = timers_.schedule_every(10ms, [&] { ran_.push_back(now_ms()); });
  clock_->advance(10ms);
  EXPECT_TRUE(handle.reschedule_after(3ms));
  clock_->advance(25ms);
  EXPECT_EQ(ran_, (Milliseconds{10, 13, 23, 33}));
}

TEST_F(Periodic, ATaskThatThrowsRunsAgain) {
  int errors = 0;
  TimerService timers({.clock = clock_, .on_error = [&](std::exception_ptr) { ++errors; }});
  int runs = 0;
  timers.schedule_every(10ms, [&] {
    ++runs;
    throw std::runtime_error("again");
  });
  clock_->advance(30ms);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(errors, 3);
  EXPECT_EQ(timers.stats().failed, 3U);
}

TEST_F(Periodic, ThePeriodMustBePositive) {
  EXPECT_THROW(timers_.schedule_every(0ms, [] {}), std::invalid_argument);
  EXPECT_THROW(timers_.schedule_every(-1ms, [] {}), std::invalid_argument);
  EXPECT_THROW(timers_.schedule_with_fixed_delay(0ms, [] {}), std::invalid_argument);
  EXPECT_EQ(timers_.pending(), 0U);
}

TEST_F(Periodic, AHugePeriodDoesNotOverflow) {
  timers_.schedule_every(std::chrono::hours::max(), [&] { ran_.push_back(now_ms()); });
  clock_->advance(24h * 365);
  EXPECT_TRUE(ran_.empty());
}

}  // namespace
}  // namespace carillon::testing
