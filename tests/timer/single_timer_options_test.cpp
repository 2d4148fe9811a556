// What a single timer can be given: an executor of its own, a first delay, slack, and a next time
// that its own run decides.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class SingleTimers : public ::testing::Test {
 protected:
  std::int64_t now_ms() const { return clock_->now().time_since_epoch() / 1ms; }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::vector<DueTask> queue_;
  std::vector<std::string> log_;
  std::vector<std::int64_t> ran_;
  TimerExecutor into_queue_ =
      TimerExecutor::by([this](DueTask task) { queue_.push_back(std::move(task)); });
};

// --- executors

TEST_F(SingleTimers, OneTimerMayHaveAnExecutorOfItsOwn) {
  TimerService timers({.clock = clock_});
  const ExecutorId queue = timers.add_executor(into_queue_);
  timers.schedule_after(1s, [&] { log_.emplace_back("timer thread"); });
  timers.schedule_after(1s, on_executor(queue, [&] { log_.emplace_back("queue"); }));
  TimerHandle cancelled = timers.schedule_after(1s, on_executor(queue, [] { FAIL(); }));
  clock_->advance(1s);
  EXPECT_EQ(log_, std::vector<std::string>{"timer thread"});
  ASSERT_EQ(queue_.size(), 2U);
  EXPECT_TRUE(cancelled.cancel()) << "until its run has begun";
  for (DueTask& task : queue_) task();
  EXPECT_EQ(log_, (std::vector<std::string>{"timer thread", "queue"}));
}

TEST_F(SingleTimers, OneTimerOfAPoolMayRunOnTheTimerThread) {
  TimerService timers({.executor = TimerExecutor::pool(2)});
  const ExecutorId thread = timers.add_executor(TimerExecutor::timer_thread());
  std::promise<std::thread::id> first;
  std::promise<std::thread::id> second;
  std::promise<std::thread::id> pooled;
  timers.schedule_after(0ns,
                        on_executor(thread, [&] { first.set_value(std::this_thread::get_id()); }));
  timers.schedule_after(1ms,
                        on_executor(thread, [&] { second.set_value(std::this_thread::get_id()); }));
  timers.schedule_after(1ms, [&] { pooled.set_value(std::this_thread::get_id()); });
  const auto timer_thread = first.get_future().get();
  EXPECT_EQ(second.get_future().get(), timer_thread);
  EXPECT_NE(pooled.get_future().get(), timer_thread);
}

TEST_F(SingleTimers, PeriodicTimersAndCalendarsMayHaveOneToo) {
  TimerService timers({.clock = clock_});
  const ExecutorId queue = timers.add_executor(into_queue_);
  timers.schedule_every(1s, on_executor(queue, [&] { log_.emplace_back("every"); }));
  timers.schedule_by([](WallTime after) { return std::optional(after + 1s); },
                     on_executor(queue, [&] { log_.emplace_back("calendar"); }));
  clock_->advance(1s);
  ASSERT_EQ(queue_.size(), 2U);
  for (DueTask& task : std::exchange(queue_, {})) task();
  EXPECT_EQ(log_.size(), 2U);
  clock_->advance(1s);
  EXPECT_EQ(queue_.size(), 2U);
}

TEST_F(SingleTimers, StopTakesBackWhatIsWithAnExecutorOfOneTimer) {
  std::optional<TimerService> timers(std::in_place, TimerOptions{.clock = clock_});
  const ExecutorId queue = timers->add_executor(into_queue_);
  timers->schedule_after(1s, on_executor(queue, [] { FAIL(); }));
  clock_->advance(1s);
  EXPECT_EQ(timers->stop().size(), 1U);
  timers.reset();
  ASSERT_EQ(queue_.size(), 1U);
  queue_[0]();
}

TEST_F(SingleTimers, AnExecutorThatTheServiceDoesNotHaveIsRefused) {
  TimerService timers({.clock = clock_});
  EXPECT_THROW(timers.schedule_after(1s, on_executor(ExecutorId{1}, [] {})), std::invalid_argument);
  EXPECT_THROW(timers.add_executor(TimerExecutor::pool(1)), std::invalid_argument);
  EXPECT_EQ(timers.pending(), 0U);
}

TEST_F(SingleTimers, ADueTaskFitsPoolsThatTakeAStdFunctionAndPoolsThatMove) {
  std::deque<std::function<void()>> copies;
  std::deque<std::packaged_task<void()>> moves;
  TimerService timers({.executor = TimerExecutor::by(
                           [&](DueTask task) { copies.emplace_back(std::move(task).shared()); }),
                       .clock = clock_});
  const ExecutorId moving = timers.add_executor(
      TimerExecutor::by([&](DueTask task) { moves.emplace_back(std::move(task)); }));
  timers.schedule_after(1s, [&] { log_.emplace_back("copied"); });
  timers.schedule_after(1s, on_executor(moving, [&] { log_.emplace_back("moved"); }));
  const auto captured = std::make_shared<int>(0);
  timers.schedule_after(1s, [captured] { FAIL(); });
  clock_->advance(1s);
  ASSERT_EQ(copies.size(), 2U);
  const std::function<void()> copy = copies[0];
  copy();
  copies[0]();
  moves.front()();
  EXPECT_EQ(log_, (std::vector<std::string>{"copied", "moved"})) << "the copies are one task";
  EXPECT_EQ(captured.use_count(), 2);
  copies.clear();
  EXPECT_EQ(captured.use_count(), 1) << "the last copy of a task that was not called cancels it";
}

TEST_F(SingleTimers, ADueTaskThatIsAssignedToLetsGoOfItsOwnTimer) {
  TimerService timers({.executor = into_queue_, .clock = clock_});
  timers.schedule_after(1s, [&] { log_.emplace_back("first"); });
  timers.schedule_after(1s, [&] { log_.emplace_back("second"); });
  clock_->advance(1s);
  ASSERT_EQ(queue_.size(), 2U);
  queue_[0] = std::move(queue_[1]);
  queue_[0]();
  EXPECT_EQ(log_, std::vector<std::string>{"second"});
  EXPECT_EQ(timers.stats().cancelled, 1U);
}

// --- periodic timers

TEST_F(SingleTimers, AnEveryMayHaveAFirstDelay) {
  TimerService timers({.clock = clock_});
  timers.schedule_every({.period = 10ms, .first = 0ms}, [&] { ran_.push_back(now_ms()); });
  timers.schedule_every({.period = 10ms, .first = 3ms}, [&] { ran_.push_back(now_ms()); });
  clock_->advance(25ms);
  EXPECT_EQ(ran_, (std::vector<std::int64_t>{0, 3, 10, 13, 20, 23}));
  EXPECT_THROW(timers.schedule_every({.period = 0ms, .first = 1ms}, [] {}), std::invalid_argument);
}

// Bug: the nanoseconds wrapped, and the task ran at once, or the period was refused as negative.
TEST_F(SingleTimers, ADurationBeyondTheRangeIsTheEndOfTime) {
  using std::chrono::hours;
  using WallHours = std::chrono::sys_time<hours>;
  using SteadyHours = std::chrono::time_point<std::chrono::steady_clock, hours>;
  TimerService timers({.clock = clock_, .slow_task = hours::max()});
  const auto run = [&] { ran_.push_back(now_ms()); };
  timers.schedule_after(hours::max(), run);
  timers.schedule_after(1h, run, hours::max());
  timers.schedule_at(WallHours::max(), run);
  timers.schedule_at(SteadyHours::max(), run, hours::max());
  timers.schedule_every(hours::max(), run);
  timers.schedule_every({.period = hours::max()}, run);
  timers.schedule_every({.period = hours::max(), .first = hours::max()}, run);
  timers.schedule_every({.period = 1ms, .first = hours::max(), .slack = hours::max()}, run);
  timers.schedule_with_fixed_delay(hours::max(), run);
  TimerHandle moved = timers.schedule_after(1h, run);
  EXPECT_TRUE(moved.reschedule_after(hours::max()));
  EXPECT_TRUE(moved.reschedule_at(SteadyHours::max()));
  clock_->advance(1000h);
  EXPECT_EQ(ran_, std::vector<std::int64_t>{});
  timers.schedule_every({.period = hours::max(), .first = 0s}, run);
  clock_->advance(1000h);
  EXPECT_EQ(ran_.size(), 1U) << "at once, and not again";
  EXPECT_EQ(timers.drain_for(hours::min()).size(), 11U);
}

TEST_F(SingleTimers, AManualClockStopsAtTheEndOfTime) {
  TimerService timers({.clock = clock_});
  timers.schedule_after(1h, [&] { ran_.push_back(now_ms()); });
  clock_->set_wall(std::chrono::sys_time<std::chrono::hours>::max());
  EXPECT_EQ(clock_->wall_now(), WallTime::max());
  clock_->advance(2h);
  EXPECT_EQ(ran_.size(), 1U);
  clock_->pass(std::chrono::hours::max());
  EXPECT_EQ(clock_->now(), SteadyTime::max());
  EXPECT_EQ(clock_->wall_now(), WallTime::max());
}

TEST_F(SingleTimers, AnEveryWithSlackSharesWakeUpsAndDoesNotDrift) {
  TimerService timers({.clock = clock_});
  for (int i = 0; i < 10; ++i) {
    timers.schedule_every(
        {.period = 1s, .first = std::chrono::milliseconds(100 + i), .slack = 20ms},
        [&] { ran_.push_back(now_ms()); });
  }
  clock_->advance(10s);
  ASSERT_EQ(ran_.size(), 100U);
  for (std::size_t i = 0; i < ran_.size(); ++i) {
    EXPECT_GE(ran_[i] % 1000, 100);
    EXPECT_LE(ran_[i] % 1000, 129);
  }
  EXPECT_LE(timers.stats().wakeups, 30U) << "10 timers, 10 times";
}

TEST_F(SingleTimers, ARunMayChangeItsOwnNextTime) {
  TimerService timers({.clock = clock_});
  TimerHandle handle = timers.schedule_every(10ms, [&] {
    ran_.push_back(now_ms());
    EXPECT_EQ(this_timer(), handle);
    if (ran_.size() == 2) {
      EXPECT_TRUE(this_timer().reschedule_after(3ms));
    }
    if (ran_.size() == 3) {
      EXPECT_TRUE(handle.reschedule_at(clock_->now() + 30ms));
    }
    if (ran_.size() == 4) {
      EXPECT_FALSE(handle.reschedule_at(clock_->wall_now())) << "wrong clock";
    }
  });
  clock_->advance(75ms);
  EXPECT_EQ(ran_, (std::vector<std::int64_t>{10, 20, 23, 53, 63, 73}));
  EXPECT_EQ(this_timer(), TimerHandle()) << "outside of a run";
}

// The handle that schedule_every() returns may not be stored yet when the task first runs.
TEST_F(SingleTimers, ATaskMayTakeItsOwnHandle) {
  TimerService timers({.clock = clock_});
  const ExecutorId queue = timers.add_executor(into_queue_);
  std::vector<TimerHandle> seen;
  const auto twice = [&](TimerHandle self) {
    seen.push_back(self);
    if (seen.size() % 2 == 0) {
      EXPECT_TRUE(self.cancel());
    }
  };
  const TimerHandle every = timers.schedule_every(10ms, twice);
  clock_->advance(100ms);
  const TimerHandle by =
      timers.schedule_by([](WallTime after) { return std::optional(after + 10ms); }, twice);
  clock_->advance(100ms);
  EXPECT_EQ(seen, (std::vector<TimerHandle>{every, every, by, by}));
  EXPECT_EQ(timers.pending(), 0U);
  const TimerHandle once =
      timers.schedule_after(1ms, on_executor(queue, [&](TimerHandle self) { seen = {self}; }));
  clock_->advance(1ms);
  queue_.at(0)();
  EXPECT_EQ(seen, std::vector<TimerHandle>{once});
  // A task that stop() returns belongs to its caller, and its timer is over.
  timers.schedule_after(1h, [&](TimerHandle self) { seen = {self}; });
  timers.stop().at(0).task();
  EXPECT_EQ(seen, std::vector<TimerHandle>{TimerHandle()});
}

TEST_F(SingleTimers, AConstHandleCancelsAndMoves) {
  TimerService timers({.clock = clock_});
  const TimerHandle timer = timers.schedule_after(1s, [] { FAIL(); });
  EXPECT_TRUE(timer.reschedule_after(2s));
  timers.schedule_after(1s, [timer] { timer.cancel(); });
  clock_->advance(3s);
  EXPECT_EQ(timer.state(), TimerState::kOver);
  EXPECT_FALSE(timer.cancel_and_wait());
}

TEST_F(SingleTimers, ADelayAfterTheRunAndACalendarMayHaveSlack) {
  TimerService timers({.clock = clock_});
  timers.schedule_with_fixed_delay(
      100ms, [&] { ran_.push_back(now_ms()); }, 50ms);
  timers.schedule_by([](WallTime after) { return std::optional(after + 110ms); },
                     [&] { ran_.push_back(now_ms()); }, MissedRuns::kSkip, 40ms);
  clock_->advance(150ms);
  EXPECT_EQ(ran_, (std::vector<std::int64_t>{128, 128})) << "the roundest tick of both";
}

TEST_F(SingleTimers, ARunOfACalendarMayChangeItsNextTimeToo) {
  TimerService timers({.clock = clock_});
  timers.schedule_by([](WallTime after) { return std::optional(after + 10ms); },
                     [&] {
                       ran_.push_back(now_ms());
                       if (ran_.size() == 1) {
                         EXPECT_TRUE(this_timer().reschedule_after(1ms));
                       }
                     });
  clock_->advance(25ms);
  EXPECT_EQ(ran_, (std::vector<std::int64_t>{10, 11, 21}));
}

TEST_F(SingleTimers, ARunThatHasEndedItsTimerOrRunsOnceHasNoNextTime) {
  TimerService timers({.clock = clock_});
  timers.schedule_every(10ms, [&] {
    ran_.push_back(now_ms());
    EXPECT_TRUE(this_timer().cancel());
    EXPECT_FALSE(this_timer().reschedule_after(1ms));
  });
  timers.schedule_after(10ms, [&] { EXPECT_FALSE(this_timer().reschedule_after(1ms)); });
  clock_->advance(100ms);
  EXPECT_EQ(ran_.size(), 1U);
  EXPECT_EQ(timers.pending(), 0U);
}

}  // namespace
}  // namespace carillon::testing
