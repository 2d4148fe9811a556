// A service whose shard is used while another thread is inside its door, or finds no memory there.
// The seam is `at_next_slab` (allocations.h): it acts while the wheel on one clock takes memory for
// its first timer that is 256 ticks ahead or more. To have this moment again, a test schedules the
// first timer on the other clock.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "timer/allocations.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class TakenDoor : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_FALSE(std::exchange(at_next_slab, nullptr)) << "the test has disturbed nothing";
  }

  // On the wall clock.
  template <class F>
  TimerHandle schedule_on_wall(std::chrono::nanoseconds delay, F&& task) {
    return timers_.schedule_at(clock_->wall_now() + delay, std::forward<F>(task));
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  TimerService timers_{{.clock = clock_, .shards = 1}};
  std::vector<std::string> log_;
};

TEST_F(TakenDoor, H2_ATimerScheduledByNoteFiresInItsTurn) {
  at_next_slab = [&] {
    timers_.schedule_after(1s, [&] { log_.emplace_back("by note"); });
    timers_.schedule_after(500ms, [&] { log_.emplace_back("earlier, by note"); });
  };
  timers_.schedule_after(1s, [&] { log_.emplace_back("inside"); });
  EXPECT_EQ(timers_.pending(), 3U);
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"earlier, by note", "inside", "by note"}));
}

TEST_F(TakenDoor, H2_ATimerCancelledWhileItsNoteIsUnreadDoesNotFireAndItsTaskIsGoneAtOnce) {
  const auto captured = std::make_shared<int>(0);
  at_next_slab = [&] {
    TimerHandle handle = timers_.schedule_after(1s, [captured] { FAIL(); });
    EXPECT_EQ(captured.use_count(), 2);
    EXPECT_TRUE(handle.cancel());
    EXPECT_EQ(captured.use_count(), 1);
    EXPECT_FALSE(handle.cancel());
  };
  timers_.schedule_after(1s, [&] { log_.emplace_back("inside"); });
  EXPECT_EQ(timers_.pending(), 1U);
  EXPECT_EQ(timers_.stats().cancelled, 1U);
  clock_->advance(2s);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(TakenDoor, H2_ATimerInTheWheelIsCancelledByNote) {
  const auto captured = std::make_shared<int>(0);
  TimerHandle handle = timers_.schedule_after(1s, [captured] { FAIL(); });
  at_next_slab = [&] {
    EXPECT_TRUE(handle.cancel());
    EXPECT_EQ(captured.use_count(), 1);
  };
  schedule_on_wall(3s, [] {});
  EXPECT_EQ(timers_.pending(), 1U);
  clock_->advance(2s);
  EXPECT_EQ(timers_.stats().cancelled, 1U);
}

TEST_F(TakenDoor,
       H2_ATimerMovedByNoteFiresAtItsNewTimeEvenIfMovedAgainOrCancelledBeforeTheNoteIsRead) {
  TimerHandle earlier = timers_.schedule_after(10s, [&] { log_.emplace_back("earlier"); });
  TimerHandle twice = timers_.schedule_after(10s, [&] { log_.emplace_back("twice"); });
  TimerHandle cancelled = timers_.schedule_after(10s, [&] { log_.emplace_back("cancelled"); });
  at_next_slab = [&] {
    EXPECT_TRUE(earlier.reschedule_after(1s));
    EXPECT_TRUE(twice.reschedule_after(1s));
    EXPECT_TRUE(twice.reschedule_after(2s));
    EXPECT_TRUE(cancelled.reschedule_after(1s));
    EXPECT_TRUE(cancelled.cancel());
  };
  schedule_on_wall(1h, [] {});
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"earlier"}));
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"earlier", "twice"}));
  EXPECT_EQ(timers_.pending(), 1U);
}

// The wheel meets a timer while another thread is cancelling it: the wheel leaves the timer alone,
// and stop() does not wait for it for ever.
TEST_F(TakenDoor, H1_ATimerCancelledWhileTheWheelIsOnItsWayToItDoesNotFire) {
  TimerHandle moved = timers_.schedule_after(100ms, [&] { log_.emplace_back("moved"); });
  TimerHandle cancelled = timers_.schedule_after(101ms, [&] { log_.emplace_back("cancelled"); });
  TimerHandle brought = timers_.schedule_after(102ms, [&] { log_.emplace_back("brought"); });
  EXPECT_TRUE(moved.reschedule_after(2s));
  clock_->settle();
  // One collect() meets all three. It places the first anew, inside the door, and takes memory for
  // that; the other two are still to come.
  at_next_slab = [&] {
    EXPECT_TRUE(cancelled.cancel());
    EXPECT_TRUE(brought.reschedule_after(-1s));
  };
  clock_->pass(102ms);
  clock_->settle();
  EXPECT_EQ(log_, (std::vector<std::string>{"brought"}));
  EXPECT_EQ(timers_.stats().cancelled, 1U);
  EXPECT_EQ(timers_.stop().size(), 1U);
}

TEST_F(TakenDoor, StopReturnsATimerThatCameByNote) {
  at_next_slab = [&] { timers_.schedule_after(1s, [] {}); };
  timers_.schedule_after(1s, [] {});
  EXPECT_EQ(timers_.stop().size(), 2U);
}

TEST_F(TakenDoor, WithoutMemoryATimerIsRefusedAndNothingIsLeftBehind) {
  const auto captured = std::make_shared<int>(0);
  at_next_slab = [] { throw std::bad_alloc(); };
  EXPECT_THROW(timers_.schedule_after(1s, [captured] {}), std::bad_alloc);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(timers_.pending(), 0U);
  timers_.schedule_after(1s, [&] { log_.emplace_back("the next"); });
  clock_->advance(1s);
  EXPECT_EQ(log_.size(), 1U);
}

// The timer comes by note, so its scheduling succeeds; there is no memory when the note is read.
TEST_F(TakenDoor, WithoutMemoryForATimerThatWasAcceptedItIsTriedAgainAndNotLost) {
  at_next_slab = [&] {
    schedule_on_wall(2s, [&] { log_.emplace_back("accepted"); });
    at_next_slab = [] { throw std::bad_alloc(); };
  };
  timers_.schedule_after(1s, [&] { log_.emplace_back("inside"); });
  EXPECT_FALSE(at_next_slab) << "the note has been read";
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"inside"}));
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"inside", "accepted"}));
}

TEST_F(TakenDoor, ATimerThatWaitsForMemoryCanBeCancelled) {
  TimerHandle waiting;
  at_next_slab = [&] {
    waiting = schedule_on_wall(1s, [] { FAIL(); });
    at_next_slab = [] { throw std::bad_alloc(); };
  };
  timers_.schedule_after(1h, [] {});
  EXPECT_TRUE(waiting.cancel());
  clock_->advance(10ms);
  EXPECT_EQ(timers_.pending(), 1U);
}

TEST_F(TakenDoor, ATimerThatWaitsForMemoryIsReturnedByStop) {
  at_next_slab = [&] {
    schedule_on_wall(1s, [] {});
    at_next_slab = [] { throw std::bad_alloc(); };
  };
  timers_.schedule_after(1h, [] {});
  EXPECT_EQ(timers_.stop().size(), 2U);
}

}  // namespace
}  // namespace carillon::testing
