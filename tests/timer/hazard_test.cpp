// Known hazards of timer services that show without a race, on virtual time where time matters. H4
// to H15 number the hazards; the name of each test says what its hazard is. Hazards that are races
// are in hazard_race_test.cpp and hazard_race_closing_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
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

class Hazard : public ::testing::Test {
 protected:
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
};

TEST_F(Hazard, H4_StaleNextWakeup_AnEarlierTimerWakesTheSleeperHoweverOftenItIsMoved) {
  TimerService timers({.clock = clock_});
  std::vector<std::int64_t> fired_at;
  const auto log_time = [&] { fired_at.push_back(clock_->now().time_since_epoch() / 1ms); };
  timers.schedule_after(1h, log_time);
  clock_->settle();
  timers.schedule_after(10s, log_time);
  clock_->settle();
  TimerHandle moved = timers.schedule_after(30min, log_time);
  clock_->settle();
  timers.schedule_after(1s, log_time);
  EXPECT_TRUE(moved.reschedule_after(500ms));
  clock_->advance(1h);
  EXPECT_EQ(fired_at, (std::vector<std::int64_t>{500, 1000, 10'000, 3'600'000}));
}

TEST_F(Hazard, H5_TheEarliestIsCancelled_TheAlarmRingsOnceForNothingAndTheRestIsOnTime) {
  TimerService timers({.clock = clock_});
  int fired = 0;
  timers.schedule_after(10s, [&] { ++fired; });
  clock_->settle();
  const std::uint64_t before = timers.stats().wakeups;
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(timers.schedule_after(1s, [&] { fired += 1000; }).cancel());
  clock_->advance(10s - 1ns);
  EXPECT_EQ(fired, 0);
  EXPECT_LE(timers.stats().wakeups, before + 8) << "not one for each cancelled timer";
  clock_->advance(1ns);
  EXPECT_EQ(fired, 1);
}

TEST_F(Hazard, H7_TheDestructorOfACapturedObjectMayUseTheService) {
  TimerService timers({.clock = clock_});
  TimerHandle other = timers.schedule_after(1h, [] {});
  int rescheduled = 0;
  struct Reenters {
    std::function<void()> on_destruction;
    explicit Reenters(std::function<void()> action) : on_destruction(std::move(action)) {}
    Reenters(Reenters&& from) noexcept
        : on_destruction(std::exchange(from.on_destruction, nullptr)) {}
    ~Reenters() {
      if (on_destruction) on_destruction();
    }
    void operator()() const {}
  };
  const auto reenter = [&] {
    timers.schedule_after(1s, [&] { ++rescheduled; });
    other.cancel();
    static_cast<void>(timers.stats());
  };
  EXPECT_TRUE(timers.schedule_after(5s, Reenters(reenter)).cancel());  // destroyed by cancel()
  timers.schedule_after(1s, Reenters(reenter));                        // destroyed after its run
  clock_->advance(10s);
  EXPECT_EQ(rescheduled, 2);
  EXPECT_EQ(other.state(), TimerState::kOver);
}

TEST_F(Hazard, H7_TheDestructorOfACapturedObjectMayStopTheService) {
  std::optional<TimerService> timers(std::in_place, TimerOptions{.clock = clock_});
  timers->schedule_after(1h, [] {});
  std::size_t returned = 0;
  auto stops = std::shared_ptr<int>(new int(0), [&](const int* number) {
    delete number;
    returned = timers->stop().size();
  });
  TimerHandle handle = timers->schedule_after(1s, [stops = std::move(stops)] {});
  EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(returned, 1U);
}

TEST_F(Hazard, H8_CancelAndWaitInsideItsOwnTaskReturnsAtOnce) {
  for (const TimerExecutor& executor : {TimerExecutor::timer_thread(), TimerExecutor::pool(2)}) {
    TimerService timers({.executor = executor});
    std::latch waited(2);
    std::latch known(1);
    TimerHandle once;
    TimerHandle periodic;
    once = timers.schedule_after(0s, [&] {
      known.wait();
      EXPECT_FALSE(once.cancel_and_wait());
      waited.count_down();
    });
    periodic = timers.schedule_every(1ms, [&] {
      known.wait();
      EXPECT_TRUE(periodic.cancel_and_wait());
      waited.count_down();
    });
    known.count_down();
    waited.wait();
  }
}

TEST_F(Hazard, H8_CancelDoesNotWaitForATaskThatWantsALockOfTheCaller) {
  for (const TimerExecutor& executor : {TimerExecutor::timer_thread(), TimerExecutor::pool(1)}) {
    TimerService timers({.executor = executor});
    std::mutex mutex;
    std::latch running(1);
    std::unique_lock lock(mutex);
    TimerHandle handle = timers.schedule_after(0s, [&] {
      running.count_down();
      const std::lock_guard wants(mutex);
    });
    running.wait();
    EXPECT_FALSE(handle.cancel()) << "returns, though the task waits for the lock";
    EXPECT_FALSE(handle.reschedule_after(1s));
    EXPECT_EQ(handle.state(), TimerState::kRunning);
    lock.unlock();
    EXPECT_FALSE(handle.cancel_and_wait());
    EXPECT_EQ(handle.state(), TimerState::kOver);
  }
}

TEST_F(Hazard, H8_CancelAndWaitReturnsWhenTheTaskHasEndedAndIsDestroyed) {
  TimerService timers({.executor = TimerExecutor::pool(1)});
  const auto captured = std::make_shared<std::atomic<bool>>(false);
  std::latch running(1);
  std::latch go_on(1);
  TimerHandle handle = timers.schedule_after(0s, [&, captured] {
    running.count_down();
    go_on.wait();
    *captured = true;
  });
  running.wait();
  std::thread releaser([&] { go_on.count_down(); });
  EXPECT_FALSE(handle.cancel_and_wait());
  EXPECT_TRUE(*captured);
  EXPECT_EQ(captured.use_count(), 1);
  releaser.join();
}

TEST_F(Hazard, H10_AWordThatHasUsedUpItsGenerationsIsRetired) {
  detail::TimerWord word(0xffff'ffff);
  const auto last = word.arm(false);
  EXPECT_EQ(last, 0xffff'ffffU);
  word.enter_by_oneself();
  EXPECT_EQ(word.cancel(last), detail::TimerWord::Cancel::kWonInWheel);
  EXPECT_EQ(word.finish(), detail::TimerWord::End::kRetire);
  EXPECT_EQ(word.cancel(last), detail::TimerWord::Cancel::kLost);
  EXPECT_EQ(word.phase(last), detail::Phase::kFree);

  detail::TimerWord next(0xffff'fffe);
  const auto before = next.arm(false);
  next.enter_by_oneself();
  EXPECT_EQ(next.cancel(before), detail::TimerWord::Cancel::kWonInWheel);
  EXPECT_EQ(next.finish(), detail::TimerWord::End::kReuse);
  EXPECT_EQ(next.arm(false), 0xffff'ffffU);
  EXPECT_EQ(next.cancel(before), detail::TimerWord::Cancel::kLost) << "an old handle";
}

TEST_F(Hazard, H13_ATaskMayCancelAnotherThatIsDueInTheSameTick) {
  TimerService timers({.clock = clock_});
  const auto captured = std::make_shared<int>(0);
  std::vector<TimerHandle> siblings;
  bool won = false;
  timers.schedule_after(1s, [&] {
    EXPECT_EQ(siblings[2].state(), TimerState::kDue);
    won = siblings[2].cancel();
    EXPECT_EQ(captured.use_count(), 4) << "destroyed within cancel()";
  });
  int fired = 0;
  for (int i = 0; i < 4; ++i)
    siblings.push_back(timers.schedule_after(1s, [&fired, captured] { ++fired; }));
  clock_->advance(1s);
  EXPECT_TRUE(won);
  EXPECT_EQ(fired, 3);
  EXPECT_EQ(timers.stats().cancelled, 1U);
  EXPECT_EQ(timers.pending(), 0U);
}

TEST_F(Hazard, H13_MovingTheClockInsideATaskIsAnErrorNotADeadlock) {
  std::string said;
  TimerService timers({.clock = clock_, .on_error = [&](std::exception_ptr error) {
                         try {
                           std::rethrow_exception(error);
                         } catch (const std::logic_error& wrong) {
                           said = wrong.what();
                         }
                       }});
  timers.schedule_after(1s, [&] { clock_->advance(1s); });
  clock_->advance(1s);
  EXPECT_EQ(
      said,
      "carillon: a ManualClock was moved from a timer thread, for which it would have to wait");
}

TEST_F(Hazard, H14_TheServiceIsDestroyedInsideATask) {
  for (const TimerExecutor& executor : {TimerExecutor::timer_thread(), TimerExecutor::pool(2)}) {
    const auto captured = std::make_shared<int>(0);
    auto timers = std::make_unique<TimerService>(TimerOptions{.executor = executor});
    std::latch destroyed(1);
    TimerHandle pending = timers->schedule_after(1h, [captured] {});
    for (int i = 0; i < 10; ++i) timers->schedule_after(1ms, [captured] {});
    TimerHandle self = timers->schedule_after(1ms, [&, captured] {
      timers.reset();
      destroyed.count_down();
    });
    destroyed.wait();
    while (self.state() != TimerState::kOver) std::this_thread::yield();
    EXPECT_EQ(pending.state(), TimerState::kOver);
    // A task may still be running on the pool.
    while (captured.use_count() != 1) std::this_thread::yield();
  }
}

TEST_F(Hazard, H14_TheServiceIsDestroyedInsideAPeriodicTask) {
  auto timers = std::make_unique<TimerService>();
  std::latch destroyed(1);
  TimerHandle self = timers->schedule_every(1ms, [&] {
    timers.reset();
    destroyed.count_down();
  });
  destroyed.wait();
  while (self.state() != TimerState::kOver) std::this_thread::yield();
}

class OwnExecutor : public Hazard {
 protected:
  std::vector<DueTask> handed_over_;
  std::unique_ptr<TimerService> timers_ = std::make_unique<TimerService>(TimerOptions{
      .executor =
          TimerExecutor::by([this](DueTask task) { handed_over_.push_back(std::move(task)); }),
      .clock = clock_});
};

TEST_F(OwnExecutor, H15_CancelAfterTheHandOverStillWins) {
  const auto captured = std::make_shared<int>(0);
  TimerHandle handle = timers_->schedule_after(1s, [captured] { FAIL() << "it was cancelled"; });
  clock_->advance(1s);
  ASSERT_EQ(handed_over_.size(), 1U);
  EXPECT_EQ(handle.state(), TimerState::kDue);
  EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_FALSE(handle.cancel());
  handed_over_[0]();
  handed_over_.clear();
  EXPECT_EQ(timers_->stats().cancelled, 1U);
  EXPECT_EQ(timers_->stats().fired, 0U);
}

TEST_F(OwnExecutor, H15_ATaskThatTheExecutorDropsCountsAsCancelled) {
  const auto captured = std::make_shared<int>(0);
  TimerHandle handle = timers_->schedule_after(1s, [captured] {});
  clock_->advance(1s);
  handed_over_.clear();
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_FALSE(handle.cancel());
  EXPECT_EQ(timers_->stats().cancelled, 1U);
  EXPECT_EQ(timers_->pending(), 0U);
}

TEST_F(OwnExecutor, H15_ATaskDoesNotBeginAfterTheServiceIsGone) {
  TimerHandle once = timers_->schedule_after(1s, [] { FAIL(); });
  TimerHandle periodic = timers_->schedule_every(1s, [] { FAIL(); });
  clock_->advance(1s);
  ASSERT_EQ(handed_over_.size(), 2U);
  timers_.reset();
  for (DueTask& task : handed_over_) task();
  EXPECT_EQ(once.state(), TimerState::kOver);
  EXPECT_EQ(periodic.state(), TimerState::kOver);
}

TEST_F(OwnExecutor, APeriodicTimerIsHandedOverAgainWhenItsRunHasEnded) {
  int ran = 0;
  timers_->schedule_every(1s, [&] { ++ran; });
  clock_->advance(3s);
  ASSERT_EQ(handed_over_.size(), 1U) << "never two at a time";
  handed_over_[0]();
  handed_over_.clear();
  EXPECT_EQ(ran, 1);
  clock_->advance(1s);
  EXPECT_EQ(handed_over_.size(), 1U);
}

TEST_F(Hazard, AnExecutorThatThrowsLosesTheRunAndTheErrorIsReported) {
  int errors = 0;
  TimerService timers({.executor = TimerExecutor::by(
                           [](DueTask) { throw std::runtime_error("the queue is full"); }),
                       .clock = clock_,
                       .on_error = [&](std::exception_ptr) { ++errors; }});
  TimerHandle handle = timers.schedule_after(1s, [] { FAIL(); });
  clock_->advance(1s);
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(handle.state(), TimerState::kOver);
  EXPECT_EQ(timers.stats().cancelled, 1U);
}

TEST_F(Hazard, ATaskThatThrowsDoesNotEndTheTimerThread) {
  std::vector<std::string> said;
  TimerService timers({.clock = clock_, .on_error = [&](std::exception_ptr error) {
                         try {
                           std::rethrow_exception(error);
                         } catch (const std::exception& exception) {
                           said.emplace_back(exception.what());
                         }
                         throw std::runtime_error("the handler throws as well");
                       }});
  bool fired = false;
  timers.schedule_after(1s, [] { throw std::runtime_error("first"); });
  timers.schedule_after(1s, [&] { fired = true; });
  clock_->advance(1s);
  EXPECT_TRUE(fired);
  EXPECT_EQ(said, (std::vector<std::string>{"first"}));
  EXPECT_EQ(timers.stats().failed, 1U);
}

TEST_F(Hazard, ASlowTaskIsCountedAndReported) {
  std::vector<std::chrono::nanoseconds> slow;
  TimerService timers({.clock = clock_, .slow_task = 10ms, .on_slow_task = [&](auto took) {
                         slow.push_back(took);
                       }});
  timers.schedule_after(1s, [&] { clock_->pass(25ms); });
  timers.schedule_after(2s, [&] { clock_->pass(10ms); });
  clock_->advance(3s);
  EXPECT_EQ(slow, (std::vector<std::chrono::nanoseconds>{25ms}));
  EXPECT_EQ(timers.stats().slow, 1U);
  EXPECT_EQ(timers.stats().longest_run, 25ms);
}

}  // namespace
}  // namespace carillon::testing
