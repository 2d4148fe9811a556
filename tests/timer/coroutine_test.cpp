// Coroutine: values, references and exceptions; waiting for one, and leaving one alone.
#include "carillon/timer/coroutine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include "carillon/timer/timer_service.h"
#include "carillon/timer/with_timeout.h"

// g++ 12 gives this warning for code that it generates itself for a coroutine.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

Coroutine<int> answer(TimerService& timers) {
  co_await timers.sleep_for(1ms);
  co_return 42;
}

TEST(Coroutine, WaitReturnsWhatItReturnsThoughItEndsOnAnotherThread) {
  TimerService timers;
  EXPECT_EQ(answer(timers).wait(), 42);
  const auto twice = [&]() -> Coroutine<int> {
    const int first = co_await answer(timers);
    co_return first + co_await answer(timers);
  };
  EXPECT_EQ(twice().wait(), 84);
}

TEST(Coroutine, MovesValuesAndReturnsReferencesAndNothing) {
  const auto moved = []() -> Coroutine<std::unique_ptr<int>> {
    co_return std::make_unique<int>(9);
  };
  EXPECT_EQ(*moved().wait(), 9);
  int here = 1;
  const auto referred = [](int& it) -> Coroutine<int&> { co_return it; };
  EXPECT_EQ(&referred(here).wait(), &here);
  bool ran = false;
  [](bool& told) -> Coroutine<> {
    told = true;
    co_return;
  }(ran)
                        .wait();
  EXPECT_TRUE(ran);
}

TEST(Coroutine, ThrowsToWhoeverAwaitsIt) {
  TimerService timers;
  const auto fails = [&]() -> Coroutine<int> {
    co_await timers.sleep_for(1ms);
    throw std::runtime_error("no answer");
  };
  EXPECT_THROW(fails().wait(), std::runtime_error);
  const auto catches = [&]() -> Coroutine<bool> {
    try {
      co_await fails();
    } catch (const std::runtime_error&) {
      co_return true;
    }
    co_return false;
  };
  EXPECT_TRUE(catches().wait());
}

TEST(Coroutine, OneThatNobodyBeginsDoesNotRunAndIsDestroyed) {
  const auto held = std::make_shared<int>(1);
  bool ran = false;
  {
    const auto never = [](std::shared_ptr<int>, bool& told) -> Coroutine<> {
      told = true;
      co_return;
    }(held, ran);
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Coroutine, ADetachedOneGoesOnAloneAndFreesItself) {
  const auto held = std::make_shared<std::atomic<bool>>(false);
  TimerService timers;
  [](TimerService& service, std::shared_ptr<std::atomic<bool>> told) -> Coroutine<> {
    co_await service.sleep_for(1ms);
    *told = true;
    told->notify_one();
  }(timers, held)
                                                                            .detach();
  held->wait(false);
  static_cast<void>(timers.stop());  // waits for the task in which the coroutine ended
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Coroutine, StoppingTheServiceEndsADetachedOneAndNotTheProgram) {
  const auto held = std::make_shared<int>(1);
  {
    TimerService timers;
    static_cast<void>(timers.stop());
    [](TimerService& service, std::shared_ptr<int>)
        -> Coroutine<> { co_await service.sleep_for(1h); }(timers, held).detach();
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Coroutine, WorksWithATimeOut) {
  TimerService timers;
  const auto slow = [&](std::stop_token stop) -> Coroutine<int> {
    static_cast<void>(co_await timers.sleep_for(1h, stop));
    co_return 7;
  };
  const auto asks = [&]() -> Coroutine<std::optional<int>> {
    co_return co_await with_timeout(timers, slow, 2ms);
  };
  EXPECT_EQ(asks().wait(), std::nullopt);
}

}  // namespace
}  // namespace carillon::testing
