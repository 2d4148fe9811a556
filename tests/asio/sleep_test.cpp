// Sleeps of a TimerService, and with_timeout, in Asio: in asio::awaitable, with other completion
// tokens, and with cancellation slots. The same file is compiled for Boost's Asio and for the
// standalone one.
#include "carillon/asio/sleep.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "asio/either_asio.h"
#include "carillon/asio/with_timeout.h"
#include "carillon/timer/coroutine.h"
#include "carillon/timer/interval.h"
#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

// g++ 12 gives this warning for code that it generates itself for a coroutine.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class AsioSleep : public ::testing::Test {
 protected:
  // Runs a coroutine to its end.
  template <class F>
  void run(F&& coroutine) {
    net::co_spawn(io_, std::forward<F>(coroutine), [](std::exception_ptr error) {
      if (error != nullptr) std::rethrow_exception(error);
    });
    io_.run();
  }
  auto log() {
    return [this](error_code error) { log_.push_back(error ? error.message() : "done"); };
  }
  static std::string aborted() { return error_code(net::error::operation_aborted).message(); }

  std::vector<std::string> log_;
  net::io_context io_;
  TimerService timers_;  // its destructor ends all sleeps, so the context lives longer
};

TEST_F(AsioSleep, AnIntervalTicksInAnAwaitable) {
  run([&]() -> net::awaitable<void> {
    const auto start = Clock::now();
    Interval interval(timers_, {.period = 5ms});
    for (int tick = 1; tick <= 3; ++tick) {
      co_await interval.tick()(net::use_awaitable);
      EXPECT_GE(Clock::now(), start + tick * 5ms);
    }
    log_.emplace_back("end");
  });
  EXPECT_EQ(log_, (std::vector<std::string>{"end"}));
}

TEST_F(AsioSleep, TimeoutAtEndsAnAwaitableAtItsTime) {
  run([&]() -> net::awaitable<void> {
    const auto deadline = Clock::now() + 10ms;
    auto sleep = [&]() -> net::awaitable<void> {
      co_await timers_.sleep_for(1h)(net::use_awaitable);
    };
    EXPECT_FALSE(co_await timeout_at(timers_, sleep(), deadline));
    EXPECT_GE(Clock::now(), deadline);
    EXPECT_FALSE(co_await timeout_at(timers_, sleep(), std::chrono::system_clock::now()));
    log_.emplace_back("end");
  });
  EXPECT_EQ(log_, (std::vector<std::string>{"end"}));
}

#if CARILLON_ASIO_IS(102400)  // it awaits operations without a token
TEST_F(AsioSleep, AnAwaitableSleepsForAWhileAndUntilATimeOfEitherClock) {
  run([&]() -> net::awaitable<void> {
    const auto start = Clock::now();
    co_await timers_.sleep_for(10ms);
    EXPECT_GE(Clock::now(), start + 10ms);
    co_await timers_.sleep_until(start + 20ms);
    EXPECT_GE(Clock::now(), start + 20ms);
    const auto wall = std::chrono::system_clock::now() + 5ms;
    co_await timers_.sleep_until(wall);
    EXPECT_GE(std::chrono::system_clock::now(), wall);
    log_.emplace_back("end");
  });
  EXPECT_EQ(log_, (std::vector<std::string>{"end"}));
}

TEST_F(AsioSleep, AnAwaitableGoesOnInItsOwnContext) {
  run([&]() -> net::awaitable<void> {
    const auto thread = std::this_thread::get_id();
    co_await timers_.sleep_for(1ms);
    EXPECT_EQ(std::this_thread::get_id(), thread);
  });
}
#endif

TEST_F(AsioSleep, WithTimeoutAwaitsOperationsOfTheLibrarysOwnCoroutines) {
  const auto call = [](TimerService& timers, std::chrono::milliseconds time,
                       std::stop_token stop) -> Coroutine<int> {
    const bool slept = co_await timers.sleep_for(time, stop);
    co_return slept ? 42 : 0;
  };
  run([&]() -> net::awaitable<void> {
    std::optional<int> reply = co_await with_timeout(
        timers_, [&](std::stop_token stop) { return call(timers_, 1ms, stop); },
        1h)(net::use_awaitable);
    EXPECT_EQ(reply, 42);
    reply = co_await with_timeout(
        timers_, [&](std::stop_token stop) { return call(timers_, 1h, stop); },
        5ms)(net::use_awaitable);
    EXPECT_EQ(reply, std::nullopt);
    reply = co_await with_timeout(timers_, call(timers_, 1ms, {}), 1h)(net::use_awaitable);
    EXPECT_EQ(reply, 42);
#if CARILLON_ASIO_IS(102700)
    reply = co_await with_timeout(timers_, call(timers_, 1ms, {}), 1h);
    EXPECT_EQ(reply, 42);
#endif
    log_.emplace_back("end");
  });
  EXPECT_EQ(log_, (std::vector<std::string>{"end"}));
}

TEST_F(AsioSleep, ASlotTellsAnOperationToStop) {
  const auto call = [&](std::stop_token stop) -> Coroutine<bool> {
    const bool slept = co_await timers_.sleep_for(1h, stop);
    co_return slept;
  };
  net::cancellation_signal signal;
  with_timeout(timers_, call, 2h)(net::bind_cancellation_slot(
      signal.slot(),
      net::bind_executor(io_, [&](std::exception_ptr error, std::optional<bool> slept) {
        EXPECT_EQ(error, nullptr);
        EXPECT_EQ(slept, false);
        log_.emplace_back("end");
      })));
  signal.emit(net::cancellation_type::terminal);
  io_.run();
  EXPECT_EQ(log_, (std::vector<std::string>{"end"}));
  EXPECT_EQ(timers_.pending(), 0U);
}

TEST_F(AsioSleep, AnyCompletionTokenWorks) {
  timers_.sleep_for(1ms)(log());
  io_.run();
  std::future<void> future = timers_.sleep_for(1ms)(net::use_future);
  io_.restart();
  run([&]() -> net::awaitable<void> { co_await timers_.sleep_for(1ms)(net::use_awaitable); });
  future.get();
  while (log_.empty()) std::this_thread::yield();
  EXPECT_EQ(log_, (std::vector<std::string>{"done"}));
}

TEST_F(AsioSleep, ASlotEndsTheSleepAndReturnsTheTimer) {
  net::cancellation_signal signal;
  timers_.sleep_for(1h)(net::bind_cancellation_slot(signal.slot(), net::bind_executor(io_, log())));
  EXPECT_EQ(timers_.pending(), 1U);
  signal.emit(net::cancellation_type::none);
  EXPECT_EQ(timers_.pending(), 1U);
  signal.emit(net::cancellation_type::partial);
  EXPECT_EQ(timers_.pending(), 0U);
  EXPECT_TRUE(log_.empty()) << "not within emit()";
  signal.emit(net::cancellation_type::terminal);  // too late: nothing happens
  io_.run();
  EXPECT_EQ(log_, (std::vector<std::string>{aborted()}));
  signal.emit(net::cancellation_type::terminal);
}

TEST_F(AsioSleep, AStopTokenEndsTheSleep) {
  std::stop_source stop;
  timers_.sleep_for(1h, stop.get_token())(net::bind_executor(io_, log()));
  std::jthread thread([&] { stop.request_stop(); });
  io_.run();
  timers_.sleep_for(1h, stop.get_token())(net::bind_executor(io_, log()));
  io_.restart();
  io_.run();
  EXPECT_EQ(log_, (std::vector<std::string>{aborted(), aborted()}));
  EXPECT_EQ(timers_.pending(), 0U);
}

TEST_F(AsioSleep, TheLoserOfTwoAwaitablesReturnsItsTimer) {
  using net::experimental::awaitable_operators::operator||;
  const auto start = Clock::now();
  run([&]() -> net::awaitable<void> {
    const auto first = co_await (timers_.sleep_for(1h)(net::use_awaitable) ||
                                 timers_.sleep_for(5ms)(net::use_awaitable));
    EXPECT_EQ(first.index(), 1U);
    EXPECT_EQ(timers_.pending(), 0U);
  });
  EXPECT_LT(Clock::now() - start, 10s);
}

TEST_F(AsioSleep, AServiceThatStopsEndsItsSleeps) {
  timers_.sleep_for(1h)(net::bind_executor(io_, log()));
  static_cast<void>(timers_.stop());
  timers_.sleep_for(1h)(net::bind_executor(io_, log()));
  io_.run();
  EXPECT_EQ(log_, (std::vector<std::string>{aborted(), aborted()}));
}

TEST_F(AsioSleep, ATimerThatIsRefusedIsAnError) {
  TimerService small({.max_pending = 1});
  net::cancellation_signal signal;
  small.sleep_for(1h)(net::bind_cancellation_slot(signal.slot(), net::bind_executor(io_, log())));
  small.sleep_for(1h)(net::bind_executor(io_, log()));
  signal.emit(net::cancellation_type::total);
  io_.run();
  EXPECT_EQ(log_, (std::vector<std::string>{error_code(net::error::no_buffer_space).message(),
                                            aborted()}));
}

// On a manual clock: an hour passes at once, and nothing is early.
TEST_F(AsioSleep, FollowsTheServicesClock) {
  auto clock = std::make_shared<ManualClock>();
  TimerService timers({.clock = clock});
  timers.sleep_for(1h)(net::bind_executor(io_, log()));
  clock->advance(1h - 1ms);
  io_.poll();
  EXPECT_TRUE(log_.empty());
  clock->advance(2ms);
  io_.run();
  EXPECT_EQ(log_, (std::vector<std::string>{"done"}));
}

// --- with_timeout of asio::awaitable

TEST_F(AsioSleep, WithTimeoutGivesTheResultInTime) {
  const auto answer = [&]() -> net::awaitable<std::string> {
    co_await timers_.sleep_for(1ms)(net::use_awaitable);
    co_return "forty-two";
  };
  run([&]() -> net::awaitable<void> {
    const std::optional<std::string> reply = co_await with_timeout(timers_, answer(), 1h);
    EXPECT_EQ(reply, "forty-two");
    const bool in_time =
        co_await with_timeout(timers_, timers_.sleep_for(1ms)(net::use_awaitable), 1h);
    EXPECT_TRUE(in_time);
    EXPECT_EQ(timers_.pending(), 0U) << "the time-out's timers are returned";
  });
}

TEST_F(AsioSleep, WithTimeoutCancelsWhatTakesTooLongAndAwaitsItsEnd) {
  const auto start = Clock::now();
  const auto slow = [&]() -> net::awaitable<int> {
    const std::shared_ptr<void> end(nullptr, [&](void*) { log_.emplace_back("slow has ended"); });
    co_await timers_.sleep_for(1h)(net::use_awaitable);
    co_return 42;
  };
  run([&]() -> net::awaitable<void> {
    const std::optional<int> reply = co_await with_timeout(timers_, slow(), 5ms);
    EXPECT_EQ(reply, std::nullopt);
    log_.emplace_back("timed out");
    EXPECT_EQ(timers_.pending(), 0U);
  });
  EXPECT_EQ(log_, (std::vector<std::string>{"slow has ended", "timed out"}));
  EXPECT_LT(Clock::now() - start, 10s);
}

TEST_F(AsioSleep, WithTimeoutThrowsWhatTheAwaitableThrows) {
  const auto broken = [&]() -> net::awaitable<int> {
    co_await timers_.sleep_for(1ms)(net::use_awaitable);
    throw std::runtime_error("broken");
  };
  run([&]() -> net::awaitable<void> {
    try {
      co_await with_timeout(timers_, broken(), 1h);
    } catch (const std::runtime_error& error) {
      log_.emplace_back(error.what());
    }
  });
  EXPECT_EQ(log_, (std::vector<std::string>{"broken"}));
}

TEST_F(AsioSleep, WithTimeoutPassesACancellationOn) {
  using net::experimental::awaitable_operators::operator||;
  const auto slow = [&]() -> net::awaitable<int> {
    const std::shared_ptr<void> end(nullptr, [&](void*) { log_.emplace_back("cancelled"); });
    co_await timers_.sleep_for(1h)(net::use_awaitable);
    co_return 42;
  };
  run([&]() -> net::awaitable<void> {
    const auto first =
        co_await (with_timeout(timers_, slow(), 2h) || timers_.sleep_for(5ms)(net::use_awaitable));
    EXPECT_EQ(first.index(), 1U);
    EXPECT_EQ(timers_.pending(), 0U);
  });
  EXPECT_EQ(log_, (std::vector<std::string>{"cancelled"}));
}

// So a loop that tries again ends, too.
TEST_F(AsioSleep, WithTimeoutThrowsWhenTheServiceStopsAndWhenItIsFull) {
  TimerService full({.max_pending = 0});
  run([&]() -> net::awaitable<void> {
    net::steady_timer never(io_, 1h);
    try {
      co_await with_timeout(full, never.async_wait(net::use_awaitable), 2h);
    } catch (const asio_detail::SystemError& error) {
      EXPECT_EQ(error.code(), net::error::no_buffer_space);
      log_.emplace_back("full");
    }
    net::post(io_, [&] { static_cast<void>(timers_.stop()); });
    try {
      for (;;) co_await with_timeout(timers_, never.async_wait(net::use_awaitable), 2h);
    } catch (const asio_detail::SystemError& error) {
      EXPECT_EQ(error.code(), net::error::operation_aborted);
      log_.emplace_back("stopped");
    }
  });
  EXPECT_EQ(log_, (std::vector<std::string>{"full", "stopped"}));
}

// Many coroutines on a pool of threads: each ends in exactly one way.
TEST(AsioSleepThreads, RacesBetweenResultAndTimeHaveOneOutcome) {
  net::thread_pool pool(3);
  TimerService timers({.tick = 10us});
  std::atomic<int> in_time{0};
  std::atomic<int> late{0};
  constexpr int kCalls = 500;
  for (int i = 0; i < kCalls; ++i) {
    net::co_spawn(
        pool,
        [&, i]() -> net::awaitable<void> {
          const auto time = std::chrono::microseconds(i % 7 * 100);
          const bool ended =
              co_await with_timeout(timers, timers.sleep_for(300us)(net::use_awaitable), time);
          ++(ended ? in_time : late);
        },
        net::detached);
  }
  pool.join();
  EXPECT_EQ(in_time + late, kCalls);
  EXPECT_TRUE(timers.stop().empty());
}

}  // namespace
}  // namespace carillon::testing
