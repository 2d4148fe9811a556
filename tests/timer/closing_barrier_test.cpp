// stop() and the destructor as a barrier: after them no task begins, on whatever executor, and what
// tasks use may be destroyed.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class ClosingWithOwnExecutor : public ::testing::Test {
 protected:
  void make_due() { clock_->advance(1s); }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::vector<DueTask> handed_over_;
  std::optional<TimerService> timers_{
      std::in_place, TimerOptions{.executor = TimerExecutor::by([this](DueTask task) {
                                    handed_over_.push_back(std::move(task));
                                  }),
                                  .clock = clock_}};
};

TEST_F(ClosingWithOwnExecutor, StopReturnsWhatWasHandedOverAndHasNotBegun) {
  const auto captured = std::make_shared<int>(0);
  TimerHandle once = timers_->schedule_after(1s, [captured] { ++*captured; });
  TimerHandle periodic = timers_->schedule_every(1s, [captured] { ++*captured; });
  TimerHandle cancelled = timers_->schedule_after(1s, [] { FAIL(); });
  make_due();
  ASSERT_EQ(handed_over_.size(), 3U);
  EXPECT_TRUE(cancelled.cancel());
  std::vector<Unprocessed> rest = timers_->stop();
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[0].handle, once);
  EXPECT_EQ(rest[1].handle, periodic);
  for (DueTask& task : handed_over_) task();
  handed_over_.clear();
  EXPECT_EQ(*captured, 0);
  rest[0].task();
  EXPECT_EQ(*captured, 1);
  const TimerStats stats = timers_->stats();
  EXPECT_EQ(stats.returned, 2U);
  EXPECT_EQ(stats.cancelled, 1U);
  EXPECT_EQ(stats.fired, 0U);
  EXPECT_EQ(stats.pending, 0U);
}

TEST_F(ClosingWithOwnExecutor, TheDestructorDestroysTasksThatHaveNotBegun) {
  auto used_by_task = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = used_by_task;
  TimerHandle handle = timers_->schedule_after(1s, [used = std::move(used_by_task)] { ++*used; });
  make_due();
  timers_.reset();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(handle.state(), TimerState::kOver);
  handed_over_.at(0)();
}

TEST_F(ClosingWithOwnExecutor, StopWaitsForTheTaskThatRuns) {
  std::latch running(1);
  std::latch go_on(1);
  std::atomic<bool> ended{false};
  timers_->schedule_after(1s, [&] {
    running.count_down();
    go_on.wait();
    ended = true;
  });
  make_due();
  std::thread runner([this] { handed_over_.at(0)(); });
  running.wait();
  std::thread releaser([&] { go_on.count_down(); });
  EXPECT_TRUE(timers_->stop().empty());
  EXPECT_TRUE(ended);
  runner.join();
  releaser.join();
}

TEST_F(ClosingWithOwnExecutor, ATaskMayStopOrDestroyItsService) {
  timers_->schedule_after(1s, [this] {
    handed_over_.at(1)();  // another task, inside this one
    timers_.reset();
  });
  timers_->schedule_after(1s, [this] { EXPECT_TRUE(timers_->stop().empty()); });
  make_due();
  ASSERT_EQ(handed_over_.size(), 2U);
  handed_over_.at(0)();
  EXPECT_FALSE(timers_);
}

TEST_F(ClosingWithOwnExecutor, TheDestructorOfADroppedTaskMayStopTheService) {
  struct Stopper {
    TimerService* timers;
    explicit Stopper(TimerService* service) : timers(service) {}
    Stopper(Stopper&& other) noexcept : timers(std::exchange(other.timers, nullptr)) {}
    ~Stopper() {
      if (timers == nullptr) return;
      EXPECT_TRUE(timers->stop().empty());
    }
    void operator()() const {}
  };
  timers_->schedule_after(1s, Stopper(&*timers_));
  make_due();
  handed_over_.clear();
  EXPECT_EQ(timers_->stats().cancelled, 1U);
}

TEST(ClosingBarrier, ATaskIsNotHandedOverWhenStopHasBegun) {
  std::latch handing_over(1);
  std::latch go_on(1);
  std::mutex mutex;
  std::vector<DueTask> handed_over;
  TimerService timers({.executor = TimerExecutor::by([&](DueTask task) {
                         const std::lock_guard lock(mutex);
                         handed_over.push_back(std::move(task));
                         if (handed_over.size() > 1) return;
                         handing_over.count_down();
                         go_on.wait();
                       })});
  for (int i = 0; i < 3; ++i) timers.schedule_after(0s, [] { FAIL() << "it was returned"; });
  handing_over.wait();
  std::vector<Unprocessed> rest;
  std::thread stopper([&] { rest = timers.stop(); });
  for (bool refused = false; !refused;) {
    try {
      timers.schedule_after(1h, [] {}).cancel();
    } catch (const TimersStopped&) {
      refused = true;
    }
  }
  std::this_thread::sleep_for(1ms);
  go_on.count_down();
  stopper.join();
  for (DueTask& task : handed_over) task();
  EXPECT_EQ(rest.size(), 3U);
}

// The task goes on after its own stop(), which cannot wait for it.
TEST(ClosingBarrier, TheDestructorWaitsForTheTaskThatHasCalledStop) {
  std::vector<DueTask> handed_over;
  std::mutex mutex;
  const TimerExecutor own = TimerExecutor::by([&](DueTask task) {
    const std::lock_guard lock(mutex);
    handed_over.push_back(std::move(task));
  });
  for (const TimerExecutor& executor :
       {TimerExecutor::timer_thread(), TimerExecutor::pool(2), own}) {
    std::latch stopped(1);
    std::latch go_on(1);
    std::atomic<bool> ended{false};
    std::thread releaser;
    std::thread runner;
    {
      TimerService timers({.executor = executor});
      timers.schedule_after(0s, [&] {
        EXPECT_TRUE(timers.stop().empty());
        stopped.count_down();
        go_on.wait();
        ended = true;
      });
      if (executor.function()) {
        runner = std::thread([&] {
          for (;;) {
            std::unique_lock lock(mutex);
            if (handed_over.empty()) continue;
            DueTask task = std::move(handed_over.back());
            handed_over.pop_back();
            lock.unlock();
            return task();
          }
        });
      }
      stopped.wait();
      releaser = std::thread([&] {
        std::this_thread::sleep_for(1ms);
        go_on.count_down();
      });
    }
    EXPECT_TRUE(ended);
    releaser.join();
    if (runner.joinable()) runner.join();
  }
}

TEST(ClosingBarrier, ASecondStopWaitsUntilTheFirstHasEnded) {
  TimerService timers;
  std::latch running(1);
  std::latch go_on(1);
  std::atomic<bool> ended{false};
  timers.schedule_after(0s, [&] {
    running.count_down();
    go_on.wait();
    ended = true;
  });
  running.wait();
  const auto stop = [&] {
    EXPECT_TRUE(timers.stop().empty());
    EXPECT_TRUE(ended);
  };
  std::thread first(stop);
  std::thread second(stop);
  std::this_thread::sleep_for(1ms);
  go_on.count_down();
  first.join();
  second.join();
}

}  // namespace
}  // namespace carillon::testing
