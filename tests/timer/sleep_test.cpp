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
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "timer/coroutines.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class Sleeping : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(live_frames, 0) << "a coroutine's frame was leaked"; }

  // Awaits `sleep`, and logs the result under `name`.
  Detached log_result(std::string name, TimerSleep sleep) {
    try {
      const bool slept = co_await sleep;
      log_.push_back(name + (slept ? " slept" : " did not sleep"));
    } catch (const TooManyTimers&) {
      log_.push_back(name + ": TooManyTimers");
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
      if (!co_await timers.sleep_for(1ms)) co_return;
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
  EXPECT_EQ(log_, (Log{"a did not sleep", "b did not sleep"}));
  EXPECT_EQ(timers_->pending(), 0U);
}

TEST_F(Sleeping, AskedToStopBeforeItDoesNotSleepAtAll) {
  std::stop_source stop;
  stop.request_stop();
  log_result("a", timers_->sleep_for(1h, stop.get_token()));
  EXPECT_EQ(log_, Log{"a did not sleep"});
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
  EXPECT_EQ(log_, Log(100, "a did not sleep"));
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
  EXPECT_EQ(log_, Log{"b did not sleep"});
  rest.clear();
  EXPECT_EQ(log_, (Log{"b did not sleep", "a did not sleep"}));
}

TEST_F(Sleeping, AReturnedTaskThatIsCalledByHandDoesNotPretendThatTheTimeHasCome) {
  log_result("a", timers_->sleep_for(1h));
  std::vector<Unprocessed> rest = timers_->stop();
  ASSERT_EQ(rest.size(), 1U);
  rest[0].task();
  EXPECT_EQ(log_, Log{"a did not sleep"});
}

TEST_F(Sleeping, AReturnedTaskMayBeCalledWhenTheServiceIsGoneAndTheCoroutineIsAskedToStop) {
  std::stop_source stop;
  log_result("a", timers_->sleep_for(1h, stop.get_token()));
  std::vector<Unprocessed> rest = timers_->stop();
  timers_.reset();
  stop.request_stop();
  ASSERT_EQ(rest.size(), 1U);
  rest[0].task();
  EXPECT_EQ(log_, Log{"a did not sleep"});
}

TEST_F(Sleeping, TheServicesDestructorResumesAllThatSleep) {
  std::stop_source stop;
  log_result("a", timers_->sleep_for(1h));
  log_result("b", timers_->sleep_for(2h, stop.get_token()));
  timers_.reset();
  EXPECT_EQ(log_, (Log{"a did not sleep", "b did not sleep"}));
}

TEST_F(Sleeping, AStoppedServiceLetsNobodySleep) {
  timers_->stop();
  std::stop_source stop;
  log_result("a", timers_->sleep_for(1s));
  log_result("b", timers_->sleep_for(1s, stop.get_token()));
  EXPECT_EQ(log_, (Log{"a did not sleep", "b did not sleep"}));
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
  [](TimerService& service, bool& done) -> Detached { done = co_await service.sleep_for(2ms); }(
                                            timers, slept);
  EXPECT_TRUE(timers.drain().empty());
  EXPECT_TRUE(slept);
}

TEST_F(Sleeping, ASleepThatTheExecutorDropsEnds) {
  TimerService dropping({.executor = TimerExecutor::by([](const DueTask&) {}), .clock = clock_});
  log_result("a", dropping.sleep_for(1s));
  clock_->advance(1s);
  EXPECT_EQ(log_, Log{"a did not sleep"});
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
  EXPECT_EQ(log_, Log{"a did not sleep"});
}

// A clock whose alarm delays each thread that wakes the timer thread, until the alarm is destroyed,
// but for 10 000 yields at most.
class HoldingClock : public TimerClock {
 public:
  struct Seen {
    std::atomic<bool> sleeping{false};
    std::atomic<bool> destroyed{false};
    std::atomic<bool> destroyed_in_use{false};
  };

  explicit HoldingClock(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  SteadyTime now() noexcept override { return machine_->now(); }
  WallTime wall_now() noexcept override { return machine_->wall_now(); }
  std::unique_ptr<TimerAlarm> make_alarm() override {
    return std::make_unique<Holding>(machine_->make_alarm(), seen_);
  }

 private:
  struct Holding : TimerAlarm {
    Holding(std::unique_ptr<TimerAlarm> alarm, std::shared_ptr<Seen> what)
        : inner(std::move(alarm)), seen(std::move(what)) {}
    ~Holding() override { seen->destroyed = true; }
    void sleep_until(SteadyTime steady, WallTime wall) override {
      seen->sleeping = true;
      inner->sleep_until(steady, wall);
    }
    void wake() noexcept override {
      const std::shared_ptr<Seen> kept = seen;
      inner->wake();
      for (int i = 0; i < 10'000 && !kept->destroyed; ++i) std::this_thread::yield();
      if (kept->destroyed) kept->destroyed_in_use = true;
    }

    std::unique_ptr<TimerAlarm> inner;
    std::shared_ptr<Seen> seen;
  };

  std::shared_ptr<TimerClock> machine_ = machine_clock();
  std::shared_ptr<Seen> seen_;
};

// The coroutine goes on while the thread on which it fell asleep is still inside co_await.
TEST_F(Sleeping, TheServiceMayBeDestroyedAsSoonAsTheCoroutineGoesOn) {
  const auto seen = std::make_shared<HoldingClock::Seen>();
  auto timers =
      std::make_unique<TimerService>(TimerOptions{.clock = std::make_shared<HoldingClock>(seen)});
  timers->schedule_after(1h, [] {});
  while (!seen->sleeping) std::this_thread::yield();
  [](std::unique_ptr<TimerService> last) -> Detached {
    static_cast<void>(co_await last->sleep_for(1ns));
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
    const bool slept = co_await sleep;
    if (!slept) throw std::runtime_error("what a coroutine throws at the end");
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

// --- the moment between looking at the token and falling asleep

// An awaitable that asks its sleep to stop between await_ready() and await_suspend().
struct AsksInBetween {
  TimerSleep sleep;
  std::stop_source& stop;

  auto operator co_await() const {
    using Inner = decltype(sleep.operator co_await());
    struct Awaiter {
      Inner inner;
      std::stop_source& stop;
      bool await_ready() const {
        const bool ready = inner.await_ready();
        stop.request_stop();
        return ready;
      }
      bool await_suspend(std::coroutine_handle<> coroutine) {
        return inner.await_suspend(coroutine);
      }
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
