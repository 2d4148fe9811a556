// The published test cases of Dubbo's HashedWheelTimer, an older copy of Netty's, in which the two
// differ; on virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

class DubboContract : public ::testing::Test {
 protected:
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
};

// A tick of 0 is refused. The longest tick is accepted, because no multiplication can overflow.
TEST_F(DubboContract, TheTickMustBePositiveAndMayHaveAnyLength) {
  EXPECT_THROW(TimerService({.tick = 0ms}), std::invalid_argument);
  TimerService timers({.tick = std::chrono::nanoseconds::max(), .clock = clock_});
  int ran = 0;
  timers.schedule_after(0s, [&] { ++ran; });
  timers.schedule_after(1s, [&] { ran += 10; });
  clock_->advance(1h);
  EXPECT_LE(ran, 1);
  EXPECT_GE(timers.stop().size(), 1U);
}

TEST_F(DubboContract, TimersThatAreNotUsedHaveNoThreads) {
  const std::size_t before = threads_of_this_process();
  std::vector<std::unique_ptr<TimerService>> many;
  for (int i = 0; i < 128; ++i) {
    many.push_back(std::make_unique<TimerService>(
        TimerOptions{.executor = TimerExecutor::pool(2), .clock = clock_}));
  }
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST_F(DubboContract, ATaskThatThrewHasRunAndCannotBeCancelled) {
  int errors = 0;
  TimerService timers(
      {.tick = 10ms, .clock = clock_, .on_error = [&](std::exception_ptr) { ++errors; }});
  TimerHandle timeout = timers.schedule_after(10ms, [] { throw std::runtime_error("Test"); });
  clock_->advance(10ms);
  EXPECT_EQ(errors, 1);
  EXPECT_FALSE(timeout.cancel());
  EXPECT_EQ(timers.stats().fired, 1U);
  EXPECT_EQ(timers.stats().cancelled, 0U);
}

TEST_F(DubboContract, ACancelledTimeoutIsOver) {
  TimerService timers({.tick = 10ms, .clock = clock_});
  TimerHandle timeout = timers.schedule_after(1000s, [] {});
  EXPECT_TRUE(timeout.cancel());
  EXPECT_EQ(timeout.state(), TimerState::kOver);
}

// Eight timers with a negative delay wait behind a task that blocks. They are due, and count as
// pending until they start.
TEST_F(DubboContract, TimeoutsThatAreDueCountUntilTheyStart) {
  TimerService timers({.executor = TimerExecutor::pool(1), .max_pending = 8, .clock = clock_});
  std::latch blocked(1);
  std::latch go_on(1);
  timers.schedule_after(0s, [&] {
    blocked.count_down();
    go_on.wait();
  });
  blocked.wait();
  std::atomic<int> ran{0};
  std::vector<TimerHandle> timeouts;
  for (int i = 0; i < 8; ++i) timeouts.push_back(timers.schedule_after(-1ms, [&] { ++ran; }));
  EXPECT_THROW(timers.schedule_after(1ms, [] {}), TooManyTimers);
  clock_->settle();
  EXPECT_TRUE(std::all_of(timeouts.begin(), timeouts.end(),
                          [](auto one) { return one.state() == TimerState::kDue; }));
  go_on.count_down();
  EXPECT_TRUE(timers.drain().empty());
  EXPECT_EQ(ran, 8);
}

// Dubbo's and Netty's stop() throw when a task calls them.
TEST_F(DubboContract, ATaskMayStopItsTimer) {
  TimerService timers({.clock = clock_});
  std::size_t returned = 0;
  timers.schedule_after(10ms, [&] { returned = timers.stop().size(); });
  for (int i = 0; i < 8; ++i) timers.schedule_after(20ms, [] { FAIL() << "it was returned"; });
  clock_->advance(10ms);
  EXPECT_EQ(returned, 8U);
  EXPECT_THROW(timers.schedule_after(5s, [] {}), TimersStopped);
}

// Dubbo's stop() cancels nothing: a returned timeout still runs if somebody expires it. Here only
// the caller can run a returned task.
TEST_F(DubboContract, AReturnedTaskRunsOnlyIfTheCallerRunsIt) {
  TimerService timers({.clock = clock_});
  int ran = 0;
  timers.schedule_after(1s, [&] { ++ran; });
  std::vector<Unprocessed> rest = timers.stop();
  clock_->advance(1h);
  EXPECT_EQ(ran, 0);
  ASSERT_EQ(rest.size(), 1U);
  rest[0].task();
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace carillon::testing
