// Coroutines that sleep, on a manual clock: when and where they wake, and what wakes them before
// their time.
#include "carillon/timer/sleep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "carillon/timer/coroutine.h"
#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "carillon/timer/with_timeout.h"
#include "timer/coroutines.h"
#include "timer/holding_clock.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class Sleeping : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(live_frames, 0) << "a coroutine's frame was leaked"; }

  // Awaits `sleep`, and logs the result under `name`.
  template <class Sleep>
  Detached log_result(std::string name, Sleep sleep) {
    try {
      if constexpr (std::is_same_v<Sleep, StoppableSleep>) {
        const bool slept = co_await sleep;
        log_.push_back(name + (slept ? " slept" : " was asked to stop"));
      } else {
        co_await sleep;
        log_.push_back(name + " slept");
      }
    } catch (const TooManyTimers&) {
      log_.push_back(name + ": TooManyTimers");
    } catch (const TimersStopped&) {
      log_.push_back(name + ": TimersStopped");
    }
  }
  using Log = std::vector<std::string>;

  const WallTime wall_start_{std::chrono::sys_days(std::chrono::year(2030) / 6 / 1)};
  std::shared_ptr<ManualClock> clock_ =
      std::make_shared<ManualClock>(SteadyTime(1000s), wall_start_);
  Log log_;
  std::optional<TimerService> timers_{std::in_place, TimerOptions{.clock = clock_}};
};

TEST_F(Sleeping, WakesAtItsTimeAndNotBefore) {
  log_result("a", timers_->sleep_for(30s));
  clock_->advance(30s - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(log_, Log{"a slept"});
}

TEST_F(Sleeping, TheDelayCountsFromCoAwaitOn) {
  const TimerSleep sleep = timers_->sleep_for(10s);
  clock_->pass(1min);
  log_result("first", sleep);
  clock_->advance(10s - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  log_result("again", sleep);
  clock_->advance(10s);
  EXPECT_EQ(log_, (Log{"first slept", "again slept"}));
}

TEST_F(Sleeping, UntilATimeOfTheSteadyClock) {
  log_result("a", timers_->sleep_until(std::chrono::steady_clock::time_point(1005s)));
  log_result("past", timers_->sleep_until(std::chrono::steady_clock::time_point(1s)));
  clock_->settle();
  EXPECT_EQ(log_, Log{"past slept"});
  clock_->advance(5s);
  EXPECT_EQ(log_.size(), 2U);
}

TEST_F(Sleeping, UntilATimeOfTheWallClockFollowsItWhenItIsSet) {
  log_result("a", timers_->sleep_until(std::chrono::system_clock::time_point(wall_start_ + 1h)));
  clock_->set_wall(wall_start_ - 1h);
  clock_->advance(1h);
  EXPECT_TRUE(log_.empty());
  clock_->set_wall(wall_start_ + 2h);
  EXPECT_EQ(log_, Log{"a slept"});
}

TEST_F(Sleeping, ManySleepsInARow) {
  int slept = 0;
  [](TimerService& timers, int& count) -> Detached {
    for (int i = 0; i < 1000; ++i) {
      co_await timers.sleep_for(1ms);
      ++count;
    }
  }(*timers_, slept);
  clock_->advance(999ms);
  EXPECT_EQ(slept, 999);
  clock_->advance(1ms);
  EXPECT_EQ(slept, 1000);
  EXPECT_EQ(timers_->pending(), 0U);
}

// --- asked to stop

TEST_F(Sleeping, AskedToStopItWakesAtOnceAndSaysSo) {
  std::stop_source stop;
  log_result("a", timers_->sleep_for(1h, stop.get_token()));
  log_result("b", timers_->sleep_until(std::chrono::system_clock::time_point(wall_start_ + 1h),
                                       stop.get_token()));
  clock_->advance(10s);
  EXPECT_TRUE(log_.empty());
  stop.request_stop();
  clock_->settle();
  std::sort(log_.begin(), log_.end());  // a stop source asks in no particular order
  EXPECT_EQ(log_, (Log{"a was asked to stop", "b was asked to stop"}));
  EXPECT_EQ(timers_->pending(), 0U);
}

TEST_F(Sleeping, AskedToStopBeforeItDoesNotSleepAtAll) {
  std::stop_source stop;
  stop.request_stop();
  log_result("a", timers_->sleep_for(1h, stop.get_token()));
  EXPECT_EQ(log_, Log{"a was asked to stop"});
  EXPECT_EQ(timers_->stats().scheduled, 0U);
}

TEST_F(Sleeping, AskedToStopTooLateItHasSlept) {
  std::stop_source stop;
  log_result("a", timers_->sleep_for(1s, stop.get_token()));
  clock_->advance(1s);
  stop.request_stop();
  EXPECT_EQ(log_, Log{"a slept"});
}

TEST_F(Sleeping, AStopTokenWithoutASourceHasNoEffect) {
  log_result("a", timers_->sleep_for(1s, std::stop_token()));
  clock_->advance(1s);
  EXPECT_EQ(log_, Log{"a slept"});
}

TEST_F(Sleeping, OneTokenWakesMany) {
  std::stop_source stop;
  for (int i = 0; i < 100; ++i) log_result("a", timers_->sleep_for(1h, stop.get_token()));
  stop.request_stop();
  clock_->settle();
  EXPECT_EQ(log_, Log(100, "a was asked to stop"));
}

// --- where it resumes

TEST_F(Sleeping, ResumesOnTheExecutorAlsoWhenAskedToStop) {
  TimerService timers({.executor = TimerExecutor::pool(2)});
  std::atomic<int> ended{0};
  std::atomic<int> on_pool{0};
  const auto sleep = [](auto awaitable, std::atomic<int>& count,
                        std::atomic<int>& elsewhere) -> Detached {
    const auto before = std::this_thread::get_id();
    static_cast<void>(co_await awaitable);
    if (std::this_thread::get_id() != before) ++elsewhere;
    ++count;
    count.notify_one();
  };
  std::stop_source stop;
  sleep(timers.sleep_for(1ms), ended, on_pool);
  sleep(timers.sleep_for(1h, stop.get_token()), ended, on_pool);
  ended.wait(0);
  stop.request_stop();
  ended.wait(1);
  EXPECT_TRUE(timers.drain().empty());
  EXPECT_EQ(on_pool, 2);
}

// --- the end of the service

TEST_F(Sleeping, StopReturnsItsTimerAndDroppingTheTimerEndsTheSleep) {
  log_result("a", timers_->sleep_for(1s));
  log_result("b", timers_->sleep_for(2s));
  std::vector<Unprocessed> rest = timers_->stop();
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_TRUE(log_.empty()) << "not within stop()";
  rest.pop_back();
  EXPECT_EQ(log_, Log{"b: TimersStopped"});
  rest.clear();
  EXPECT_EQ(log_, (Log{"b: TimersStopped", "a: TimersStopped"}));
}

TEST_F(Sleeping, AReturnedTaskThatIsCalledByHandDoesNotPretendThatTheTimeHasCome) {
  log_result("a", timers_->sleep_for(1h));
  std::vector<Unprocessed> rest = timers_->stop();
  ASSERT_EQ(rest.size(), 1U);
  rest[0].task();
  EXPECT_EQ(log_, Log{"a: TimersStopped"});
}

TEST_F(Sleeping, AReturnedTaskMayBeCalledWhenTheServiceIsGoneAndTheCoroutineIsAskedToStop) {
  std::stop_source stop;
  log_result("a", timers_->sleep_for(1h, stop.get_token()));
  std::vector<Unprocessed> rest = timers_->stop();
  timers_.reset();
  stop.request_stop();
  ASSERT_EQ(rest.size(), 1U);
  rest[0].task();
  EXPECT_EQ(log_, Log{"a: TimersStopped"});
}

TEST_F(Sleeping, TheServicesDestructorResumesAllThatSleep) {
  std::stop_source stop;
  log_result("a", timers_->sleep_for(1h));
  log_result("b", timers_->sleep_for(2h, stop.get_token()));
  timers_.reset();
  EXPECT_EQ(log_, (Log{"a: TimersStopped", "b: TimersStopped"}));
}

TEST_F(Sleeping, AStoppedServiceLetsNobodySleep) {
  static_cast<void>(timers_->stop());
  std::stop_source stop;
  log_result("a", timers_->sleep_for(1s));
  log_result("b", timers_->sleep_for(1s, stop.get_token()));
  EXPECT_EQ(log_, (Log{"a: TimersStopped", "b: TimersStopped"}));
}

// The loop has no end of its own, and checks nothing.
TEST_F(Sleeping, ALoopOfSleepsEndsWithItsService) {
  int polls = 0;
  [](TimerService& timers, int& count) -> Coroutine<> {
    for (;;) {
      co_await timers.sleep_for(10ms);
      ++count;
    }
  }(*timers_, polls)
                                              .detach();
  clock_->advance(35ms);
  EXPECT_EQ(polls, 3);
  timers_.reset();
  EXPECT_EQ(polls, 3);
}

TEST_F(Sleeping, ALoopOfTimeOutsEndsWithItsService) {
  int attempts = 0;
  [](TimerService& timers, int& count) -> Coroutine<> {
    bool answered = false;
    while (!answered) {
      ++count;
      answered = co_await with_timeout(timers, timers.sleep_for(1h), 10ms);
    }
  }(*timers_, attempts)
                                              .detach();
  clock_->advance(25ms);
  EXPECT_EQ(attempts, 3);
  timers_.reset();
  EXPECT_EQ(attempts, 3);
}

TEST_F(Sleeping, AFullServiceRefuses) {
  TimerService full({.max_pending = 1, .clock = clock_});
  log_result("a", full.sleep_for(1s));
  log_result("b", full.sleep_for(1s));
  EXPECT_EQ(log_, Log{"b: TooManyTimers"});
  clock_->advance(1s);
  EXPECT_EQ(log_.back(), "a slept");
}

TEST_F(Sleeping, DrainWaitsForTheSleeper) {
  TimerService timers;
  bool slept = false;
  [](TimerService& service, bool& done) -> Detached {
    co_await service.sleep_for(2ms);
    done = true;
  }(timers, slept);
  EXPECT_TRUE(timers.drain().empty());
  EXPECT_TRUE(slept);
}

TEST_F(Sleeping, ASleepThatTheExecutorDropsEnds) {
  TimerService dropping({.executor = TimerExecutor::by([](const DueTask&) {}), .clock = clock_});
  log_result("a", dropping.sleep_for(1s));
  clock_->advance(1s);
  EXPECT_EQ(log_, Log{"a: TimersStopped"});
}

TEST_F(Sleeping, AnExecutorMayOutliveTheService) {
  std::vector<DueTask> queue;
  std::stop_source stop;
  {
    TimerService timers(
        {.executor = TimerExecutor::by([&](DueTask task) { queue.push_back(std::move(task)); }),
         .clock = clock_});
    log_result("a", timers.sleep_for(1s, stop.get_token()));
    clock_->advance(1s);
  }
  stop.request_stop();
  ASSERT_EQ(queue.size(), 1U);
  queue[0]();
  EXPECT_EQ(log_, Log{"a: TimersStopped"});
}

// The coroutine goes on while the thread on which it fell asleep is still inside co_await.
TEST_F(Sleeping, TheServiceMayBeDestroyedAsSoonAsTheCoroutineGoesOn) {
  const auto seen = std::make_shared<HoldingClock::Seen>();
  auto timers =
      std::make_unique<TimerService>(TimerOptions{.clock = std::make_shared<HoldingClock>(seen)});
  timers->schedule_after(1h, [] {});
  while (!seen->sleeping) std::this_thread::yield();
  [](std::unique_ptr<TimerService> last) -> Detached {
    co_await last->sleep_for(1ns);
    last.reset();
  }(std::move(timers));
  while (!seen->destroyed) std::this_thread::yield();
  EXPECT_FALSE(seen->destroyed_in_use) << "while co_await was about to wake the timer thread";
  while (live_frames != 0) std::this_thread::yield();
}

// A coroutine whose promise lets exceptions out.
struct Leaky {
  // NOLINTNEXTLINE(readability-identifier-naming): the name that the standard gives
  struct promise_type : CountsFrames {
    Leaky get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void unhandled_exception() { throw; }
    void return_void() noexcept {}
  };

  std::coroutine_handle<promise_type> coroutine;
};

TEST_F(Sleeping, AnExceptionFromACoroutineThatTheDestructorResumesDoesNotEndTheProgram) {
  const Leaky leaky = [](TimerSleep sleep) -> Leaky {
    try {
      co_await sleep;
    } catch (const TimersStopped&) {
      throw std::runtime_error("what a coroutine throws at the end");
    }
  }(timers_->sleep_for(1h));
  ::testing::internal::CaptureStderr();
  timers_.reset();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "carillon: a timer's task threw: what a coroutine throws at the end\n");
  leaky.coroutine.destroy();  // nobody else frees a frame that an exception has left
}

// --- the end of the coroutine

Task<> sleep_in_a_task(TimerService& timers, std::stop_token stop) {
  static_cast<void>(co_await timers.sleep_for(1h, std::move(stop)));
  ADD_FAILURE() << "went on";
}

TEST_F(Sleeping, ACoroutineMayBeDestroyedWhileItSleeps) {
  std::stop_source stop;
  {
    Task<> task = sleep_in_a_task(*timers_, stop.get_token());
    task.start();
    EXPECT_EQ(timers_->pending(), 1U);
  }
  EXPECT_EQ(timers_->pending(), 0U) << "its timer is cancelled";
  stop.request_stop();
  clock_->advance(2h);
}

TEST_F(Sleeping, ACoroutineMayBeDestroyedAfterStopHasReturnedItsTimer) {
  std::vector<Unprocessed> rest;
  {
    Task<> task = sleep_in_a_task(*timers_, {});
    task.start();
    rest = timers_->stop();
    std::vector<Unprocessed> moved = std::move(rest);
    rest = std::move(moved);
  }
  EXPECT_EQ(rest.size(), 1U);
  rest.clear();
}

// --- the moment between reading the token and falling asleep

// An awaitable that asks its sleep to stop between await_ready() and await_suspend().
struct AsksInBetween {
  StoppableSleep sleep;
  std::stop_source& stop;

  auto operator co_await() const {
    using Inner = decltype(sleep.operator co_await());
    struct Awaiter {
      Inner inner;
      std::stop_source& stop;
      bool await_ready() {
        const bool ready = inner.await_ready();
        stop.request_stop();
        return ready;
      }
      void await_suspend(std::coroutine_handle<> coroutine) { inner.await_suspend(coroutine); }
      bool await_resume() const { return inner.await_resume(); }
    };
    return Awaiter{sleep.operator co_await(), stop};
  }
};

TEST_F(Sleeping, AskedToStopWhileItFallsAsleep) {
  std::stop_source stop;
  bool slept = true;
  [](AsksInBetween asks, bool& result) -> Detached { result = co_await asks; }(
                                           {timers_->sleep_for(1h, stop.get_token()), stop}, slept);
  clock_->settle();
  EXPECT_FALSE(slept);
  EXPECT_EQ(timers_->pending(), 0U);
}

}  // namespace
}  // namespace carillon::testing
