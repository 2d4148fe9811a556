// stop(), drain() and the bound on pending timers. The S3 tests are two worked examples of the
// contract of Netty's HashedWheelTimer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "timer/allocations.h"
#include "timer/holding_clock.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

TEST(S3, Example9_MaxPendingTwo_TheThirdIsRefusedAndTheCountStaysTwo) {
  TimerService timers({.max_pending = 2, .clock = std::make_shared<ManualClock>()});
  TimerHandle first = timers.schedule_after(1s, [] {});
  timers.schedule_after(1s, [] {});
  try {
    timers.schedule_after(1s, [] {});
    FAIL() << "the third was accepted";
  } catch (const TooManyTimers& refused) {
    EXPECT_EQ(refused.max_pending(), 2U);
    EXPECT_EQ(refused.pending(), 2U);
    EXPECT_STREQ(refused.what(),
                 "carillon: a timer was refused: 2 timers are pending, and max_pending is 2");
  }
  EXPECT_EQ(timers.pending(), 2U);
  EXPECT_EQ(timers.stats().rejected, 1U);
  EXPECT_TRUE(first.cancel());
  EXPECT_NO_THROW(timers.schedule_after(1s, [] {})) << "a cancelled timer makes room";
  EXPECT_EQ(timers.pending(), 2U);
}

TEST(S3, Example10_StopReturnsExactlyThePendingOnes) {
  const auto clock = std::make_shared<ManualClock>();
  TimerService timers({.clock = clock});
  int fired = 0;
  timers.schedule_after(1s, [&] { ++fired; });
  TimerHandle cancelled = timers.schedule_after(2s, [&] { ++fired; });
  const std::vector<TimerHandle> pending = {timers.schedule_after(30s, [&] { fired += 100; }),
                                            timers.schedule_after(10s, [&] { fired += 10; }),
                                            timers.schedule_after(20s, [&] { fired += 1000; })};
  clock->advance(1s);
  EXPECT_TRUE(cancelled.cancel());

  std::vector<Unprocessed> rest = timers.stop();
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_EQ(rest[0].handle, pending[1]) << "by deadline";
  EXPECT_EQ(rest[1].handle, pending[2]);
  EXPECT_EQ(rest[2].handle, pending[0]);
  EXPECT_EQ(rest[0].due, 10s);
  EXPECT_EQ(fired, 1);
  rest[0].task();
  EXPECT_EQ(fired, 11) << "the tasks can still be run";

  const TimerStats stats = timers.stats();
  EXPECT_EQ(stats.scheduled, 5U);
  EXPECT_EQ(stats.fired, 1U);
  EXPECT_EQ(stats.cancelled, 1U);
  EXPECT_EQ(stats.returned, 3U);
  EXPECT_EQ(stats.pending, 0U);
  for (TimerHandle handle : pending) EXPECT_FALSE(handle.cancel());
}

TEST(Closing, WithoutMemoryStopThrowsAndTheNextCallReturnsTheTimers) {
  TimerService timers({.clock = std::make_shared<ManualClock>()});
  int run = 0;
  for (int i = 0; i < 100; ++i)
    timers.schedule_after(std::chrono::seconds(100 - i), [&] { ++run; });
  {
    const NoMemory short_of_it;
    EXPECT_THROW(timers.stop(), std::bad_alloc);
  }
  EXPECT_THROW(timers.schedule_after(1s, [] {}), TimersStopped) << "the service has ended";
  std::vector<Unprocessed> rest = timers.stop();
  ASSERT_EQ(rest.size(), 100U);
  EXPECT_EQ(rest[0].due, 1s);
  for (Unprocessed& each : rest) each.task();
  EXPECT_EQ(run, 100);
  EXPECT_TRUE(timers.stop().empty());
  EXPECT_EQ(timers.stats().returned, 100U);
}

TEST(Closing, AServiceIsDestroyedWithoutMemory) {
  const auto captured = std::make_shared<int>(0);
  for (const bool stop_before : {false, true}) {
    std::optional<TimerService> timers(std::in_place,
                                       TimerOptions{.executor = TimerExecutor::pool(2)});
    for (int i = 0; i < 100; ++i) timers->schedule_after(1h, [captured] {});
    const NoMemory short_of_it;
    if (stop_before) {
      EXPECT_THROW(timers->stop(), std::bad_alloc);
    }
    timers.reset();
    EXPECT_EQ(captured.use_count(), 1);
  }
}

TEST(Closing, AfterStopTimersAreRefused) {
  TimerService timers;
  timers.schedule_after(1h, [] {});
  EXPECT_EQ(timers.stop().size(), 1U);
  const auto captured = std::make_shared<int>(0);
  EXPECT_THROW(timers.schedule_after(1s, [captured] {}), TimersStopped);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_TRUE(timers.stop().empty()) << "the second call";
  EXPECT_EQ(timers.stats().rejected, 1U);
}

TEST(Closing, AServiceThatWasNeverUsedStops) {
  TimerService timers;
  EXPECT_TRUE(timers.stop().empty());
  EXPECT_THROW(timers.schedule_after(1s, [] {}), TimersStopped);
}

TEST(Closing, TheDestructorDestroysTheTasksOfPendingTimers) {
  const auto captured = std::make_shared<int>(0);
  {
    TimerService timers;
    for (int i = 0; i < 100; ++i) timers.schedule_after(1h, [captured] {});
    EXPECT_EQ(captured.use_count(), 101);
  }
  EXPECT_EQ(captured.use_count(), 1);
}

TEST(Closing, StopReturnsPeriodicTimersWithTheirPeriod) {
  const auto clock = std::make_shared<ManualClock>();
  TimerService timers({.clock = clock});
  timers.schedule_every(10s, [] {});
  clock->advance(25s);
  const std::vector<Unprocessed> rest = timers.stop();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].period, 10s);
  EXPECT_EQ(rest[0].due, 30s);
}

TEST(Closing, StopWaitsForTheTaskThatRuns) {
  for (const TimerExecutor& executor : {TimerExecutor::timer_thread(), TimerExecutor::pool(2)}) {
    TimerService timers({.executor = executor});
    std::latch running(1);
    std::latch go_on(1);
    std::atomic<bool> ended{false};
    timers.schedule_after(0s, [&] {
      running.count_down();
      go_on.wait();
      ended = true;
    });
    running.wait();
    std::thread releaser([&] { go_on.count_down(); });
    EXPECT_TRUE(timers.stop().empty());
    EXPECT_TRUE(ended);
    releaser.join();
  }
}

TEST(Closing, StopReturnsTimersThatAreQueuedForThePool) {
  TimerService timers({.executor = TimerExecutor::pool(1)});
  std::latch running(1);
  std::latch go_on(1);
  timers.schedule_after(0s, [&] {
    running.count_down();
    go_on.wait();
  });
  running.wait();
  std::vector<TimerHandle> queued;
  for (int i = 0; i < 10; ++i)
    queued.push_back(timers.schedule_after(0s, [] { FAIL() << "it was returned"; }));
  while (queued.back().state() != TimerState::kDue) std::this_thread::yield();
  EXPECT_TRUE(queued.front().cancel()) << "a queued timer can still be cancelled";
  timers.schedule_after(1h, [] {});
  std::vector<Unprocessed> rest;
  std::thread stopper([&] { rest = timers.stop(); });
  for (bool refused = false; !refused;) {
    try {
      timers.schedule_after(1h, [] {}).cancel();
    } catch (const TimersStopped&) {
      refused = true;
    }
  }
  // stop() takes queued timers back before it waits for the pool.
  while (queued.back().state() != TimerState::kOver) std::this_thread::yield();
  go_on.count_down();
  stopper.join();
  EXPECT_EQ(rest.size(), 10U) << "9 that were queued, 1 that was pending";
}

TEST(Closing, StopInsideATaskReturnsTheRestAndDoesNotWaitForItself) {
  for (const TimerExecutor& executor : {TimerExecutor::timer_thread(), TimerExecutor::pool(2)}) {
    TimerService timers({.executor = executor});
    std::vector<Unprocessed> rest;
    std::latch stopped(1);
    timers.schedule_after(1h, [] {});
    timers.schedule_every(1h, [] {});
    timers.schedule_after(0s, [&] {
      rest = timers.stop();
      stopped.count_down();
    });
    stopped.wait();
    EXPECT_EQ(rest.size(), 2U);
    EXPECT_THROW(timers.schedule_after(1s, [] {}), TimersStopped);
  }
}

TEST(Closing, APeriodicTimerThatStopsItsServiceIsOver) {
  const auto captured = std::make_shared<int>(0);
  TimerService timers;
  std::latch stopped(1);
  TimerHandle handle = timers.schedule_every(1ms, [&, captured] {
    EXPECT_TRUE(timers.stop().empty());
    stopped.count_down();
  });
  stopped.wait();
  while (handle.state() != TimerState::kOver) std::this_thread::yield();
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(timers.stats().fired, 1U);
  EXPECT_EQ(timers.stats().pending, 0U);
}

TEST(Closing, DrainRunsPendingTimersAndReturnsPeriodicOnes) {
  TimerService timers;
  std::atomic<int> fired{0};
  for (int i = 0; i < 100; ++i)
    timers.schedule_after(std::chrono::microseconds(50 * i), [&] { ++fired; });
  timers.schedule_every(1h, [] {});
  const std::vector<Unprocessed> rest = timers.drain();
  EXPECT_EQ(fired, 100);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].period, 1h);
  EXPECT_THROW(timers.schedule_after(1s, [] {}), TimersStopped);
}

TEST(Closing, DrainOnAPoolWaitsForTheTasks) {
  TimerService timers({.executor = TimerExecutor::pool(3)});
  std::atomic<int> fired{0};
  for (int i = 0; i < 300; ++i)
    timers.schedule_after(std::chrono::microseconds(10 * i), [&] { ++fired; });
  EXPECT_TRUE(timers.drain().empty());
  EXPECT_EQ(fired, 300);
}

TEST(Closing, DrainEndsWhenTheLastTimerIsCancelled) {
  TimerService timers;
  TimerHandle last = timers.schedule_after(1h, [] {});
  std::thread canceller([&] {
    for (bool refused = false; !refused;) {
      try {
        timers.schedule_after(1h, [] {}).cancel();
      } catch (const TimersStopped&) {
        refused = true;
      }
    }
    EXPECT_TRUE(last.cancel());
  });
  EXPECT_TRUE(timers.drain().empty());
  canceller.join();
}

TEST(Closing, DrainForReturnsTheTimersThatAreLeft) {
  TimerService timers;
  timers.schedule_after(1h, [] {});
  EXPECT_EQ(timers.drain_for(1ms).size(), 1U);
}

TEST(Closing, DrainInsideATaskIsAnError) {
  std::string said;
  TimerService timers({.on_error = [&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::logic_error& wrong) {
      said = wrong.what();
    }
  }});
  timers.schedule_after(0s, [&] { timers.drain(); });
  timers.drain();
  EXPECT_EQ(said, "carillon: drain() was called from inside a task, which it would wait for");
}

// The thread that schedules was about to wake the timer thread of a service that was gone.
TEST(Closing, ATaskMayDestroyTheServiceBeforeItsSchedulingHasReturned) {
  const auto seen = std::make_shared<HoldingClock::Seen>();
  auto* timers = new TimerService({.clock = std::make_shared<HoldingClock>(seen)});
  timers->schedule_after(1h, [] {});
  while (!seen->sleeping) std::this_thread::yield();
  timers->schedule_after(0s, [timers] { delete timers; });
  while (!seen->destroyed) std::this_thread::yield();
  EXPECT_FALSE(seen->destroyed_in_use);
}

}  // namespace
}  // namespace carillon::testing
