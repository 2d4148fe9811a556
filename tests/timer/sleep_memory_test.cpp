// A coroutine that sleeps allocates nothing; with_timeout() makes two or three allocations.
#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <utility>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "carillon/timer/with_timeout.h"
#include "timer/allocations.h"
#include "timer/coroutines.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class CoroutineMemory : public ::testing::Test {
 protected:
  // Starts the timer thread and makes the wheel and free blocks, so that the tests do not count
  // these allocations.
  void SetUp() override {
    timers_.schedule_after(1h, [] {});
    clock_->settle();
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  TimerService timers_{{.clock = clock_, .shards = 1}};
};

TEST_F(CoroutineMemory, SleepingAllocatesNothingAlsoWithAStopToken) {
  std::stop_source stop;
  const auto sleep = [](TimerService& timers, std::stop_token token) -> Task<> {
    static_cast<void>(co_await timers.sleep_for(1h, std::move(token)));
  };
  for (const std::stop_token& token : {stop.get_token(), std::stop_token()}) {
    Task<> task = sleep(timers_, token);
    const std::size_t before = allocations;
    task.start();
    EXPECT_EQ(allocations - before, 0U);
  }
}

TEST_F(CoroutineMemory, WithTimeoutAllocatesAFrameAndAStateAndForAnOperationAStopState) {
  const auto wait = [](auto timeout) -> Task<> { co_await std::move(timeout); };
  const auto allocated_by = [&](Task<> task) {
    const std::size_t before = allocations;
    task.start();
    return allocations - before;
  };
  EXPECT_EQ(allocated_by(wait(with_timeout(timers_, timers_.sleep_for(1h), 5s))), 2U);
  EXPECT_EQ(
      allocated_by(wait(with_timeout(
          timers_, [this](std::stop_token stop) { return timers_.sleep_for(1h, std::move(stop)); },
          5s))),
      3U);
  clock_->advance(2h);
}

}  // namespace
}  // namespace carillon::testing
