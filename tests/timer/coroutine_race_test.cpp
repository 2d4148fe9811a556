// Coroutines whose sleep or call may end in several ways at the same moment, on several threads:
// each ends exactly once, in one of these ways.
//
// CARILLON_TRIALS=100 runs a hundred times as many trials. The preset tsan runs them under the
// thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/timer_service.h"
#include "carillon/timer/with_timeout.h"
#include "timer/coroutines.h"
#include "timer/outcomes.h"
#include "timer/trials.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

class CoroutineRace : public ::testing::TestWithParam<unsigned> {
 protected:
  void TearDown() override { EXPECT_EQ(live_frames, 0) << "a coroutine's frame was leaked"; }

  TimerOptions fine() const {
    return {.tick = 1us,
            .executor =
                GetParam() == 0 ? TimerExecutor::timer_thread() : TimerExecutor::pool(GetParam()),
            .shards = 2};
  }
};
INSTANTIATE_TEST_SUITE_P(Executors, CoroutineRace, ::testing::Values(0U, 2U),
                         [](const auto& parameter) {
                           return parameter.param == 0 ? "TimerThread" : "Pool";
                         });

// Counts a full sleep as fired, and one that was ended as cancelled.
Detached sleep_once(TimerService& timers, nanoseconds delay, std::stop_token stop,
                    Outcomes& outcomes, std::size_t number, std::atomic<std::size_t>& early) {
  const auto time = steady_clock::now() + delay;
  bool slept = false;
  try {
    slept = co_await timers.sleep_for(delay, std::move(stop));
  } catch (const TimersStopped&) {
  }
  if (slept && steady_clock::now() < time) ++early;
  slept ? outcomes.fired(number) : outcomes.cancelled(number);
}

TEST_P(CoroutineRace, SleepVersusStopToken) {
  const std::size_t sleeps = trials(20'000);
  for (const std::uint64_t seed : seeds(1)) {
    SCOPED_TRACE(replay_with(seed));
    Outcomes outcomes(sleeps);
    std::atomic<std::size_t> early{0};
    std::vector<std::stop_source> stops(sleeps);
    {
      TimerService timers(fine());
      std::atomic<std::size_t> started{0};
      std::thread stopper([&] {
        for (std::size_t i = 0; i < sleeps; ++i) {
          // The request comes before the sleep, while the coroutine falls asleep, or later.
          while (i > started + 1) std::this_thread::yield();
          stops[i].request_stop();
        }
      });
      std::mt19937_64 random(seed);
      for (std::size_t i = 0; i < sleeps; ++i) {
        started = i;
        sleep_once(timers, nanoseconds(random() % 20'000), stops[i].get_token(), outcomes, i,
                   early);
      }
      started = sleeps;
      stopper.join();
      EXPECT_TRUE(timers.drain().empty());
    }
    outcomes.expect_one_each();
    EXPECT_EQ(outcomes.returned(), 0U);
    EXPECT_EQ(early, 0U);
    RecordProperty("slept", static_cast<int>(outcomes.fired()));
    RecordProperty("stopped", static_cast<int>(outcomes.cancelled()));
  }
}

TEST_P(CoroutineRace, SleepVersusStopTokenVersusTheEndOfTheService) {
  constexpr std::size_t kThreads = 2;
  constexpr std::size_t kEach = 50;
  for (std::size_t trial = 0; trial < trials(200); ++trial) {
    Outcomes outcomes(kThreads * kEach);
    std::atomic<std::size_t> early{0};
    std::vector<std::stop_source> stops(kThreads * kEach);
    auto timers = std::make_unique<TimerService>(fine());
    std::atomic<std::size_t> started{0};
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t i = thread; i < kThreads * kEach; i += kThreads) {
          sleep_once(*timers, i % 3 == 0 ? nanoseconds(1h) : nanoseconds(i * 150),
                     stops[i].get_token(), outcomes, i, early);
          ++started;
        }
      });
    }
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < kThreads * kEach; i += 2) stops[i].request_stop();
    });
    while (started < kThreads * kEach * (trial % 10) / 10) std::this_thread::yield();
    static_cast<void>(timers->stop());  // drops the returned timers
    for (std::thread& thread : threads) thread.join();
    timers.reset();
    outcomes.expect_one_each();
    EXPECT_EQ(early, 0U);
    ASSERT_FALSE(HasFailure()) << "in trial " << trial;
  }
}

// --- with_timeout

// Counts an end in time as fired, and a time-out as cancelled.
template <class Make>
Detached await_once(TimerService& timers, Make make, nanoseconds at_most, Outcomes& outcomes,
                    std::size_t number, std::atomic<std::size_t>& early) {
  const auto time = steady_clock::now() + at_most;
  try {
    if (co_await with_timeout(timers, make(), at_most)) {
      outcomes.fired(number);
      co_return;
    }
    if (steady_clock::now() < time) ++early;
  } catch (const TimersStopped&) {
  }
  outcomes.cancelled(number);
}

Task<int> sleep_in_a_task(TimerService& timers, nanoseconds delay) {
  co_await timers.sleep_for(delay);
  co_return 1;
}

// Awaits an operation that refers to a local variable of its caller, which is allowed. Counts as
// await_once() does.
Detached await_operation(TimerService& timers, TimerService& sleeps, nanoseconds delay,
                         nanoseconds at_most, std::stop_token stop, Outcomes& outcomes,
                         std::size_t number) {
  int touched = 0;
  std::optional<bool> slept;
  try {
    slept = co_await with_timeout(
        timers,
        [&](std::stop_token told) -> Task<bool> {
          const bool result = co_await sleeps.sleep_for(delay, told);
          ++touched;
          co_return result;
        },
        at_most, std::move(stop));
  } catch (const TimersStopped&) {
  }
  EXPECT_LE(touched, 1) << "0: the service was stopped, and nothing started";
  slept ? outcomes.fired(number) : outcomes.cancelled(number);
}

TEST_P(CoroutineRace, EndVersusTimeOut) {
  const std::size_t calls = trials(10'000);
  for (const std::uint64_t seed : seeds(1)) {
    SCOPED_TRACE(replay_with(seed));
    Outcomes outcomes(calls);
    std::atomic<std::size_t> early{0};
    {
      TimerService timers(fine());
      TimerService sleeps(fine());
      std::mt19937_64 random(seed);
      for (std::size_t i = 0; i < calls; ++i) {
        const nanoseconds delay(random() % 20'000);
        const nanoseconds at_most(random() % 20'000);
        if (i % 2 == 0) {
          await_once(
              timers, [&sleeps, delay] { return sleep_in_a_task(sleeps, delay); }, at_most,
              outcomes, i, early);
        } else {
          await_operation(timers, sleeps, delay, at_most, {}, outcomes, i);
        }
      }
      EXPECT_TRUE(sleeps.drain().empty());
      EXPECT_TRUE(timers.drain().empty());
    }
    outcomes.expect_one_each();
    EXPECT_EQ(outcomes.returned(), 0U);
    EXPECT_EQ(early, 0U);
    RecordProperty("in_time", static_cast<int>(outcomes.fired()));
    RecordProperty("timed_out", static_cast<int>(outcomes.cancelled()));
  }
}

TEST_P(CoroutineRace, AnAwaitableThatIsReadyIsInTimeHoweverShortTheTime) {
  std::size_t late = 0;
  TimerService timers(fine());
  [](TimerService& service, std::size_t& count) -> Detached {
    for (std::size_t i = 0; i < trials(20'000); ++i) {
      const auto result = co_await with_timeout(
          service, []() -> Task<int> { co_return 1; }(), nanoseconds(i % 3));
      if (!result) ++count;
    }
  }(timers, late);
  EXPECT_EQ(late, 0U);
}

TEST_P(CoroutineRace, EndVersusTimeOutVersusStopTokenVersusTheEndOfTheService) {
  constexpr std::size_t kCalls = 60;
  for (std::size_t trial = 0; trial < trials(200); ++trial) {
    Outcomes outcomes(kCalls);
    std::atomic<std::size_t> early{0};
    std::vector<std::stop_source> stops(kCalls);
    TimerService sleeps(fine());
    auto timers = std::make_unique<TimerService>(fine());
    std::atomic<std::size_t> started{0};
    std::thread caller([&] {
      for (std::size_t i = 0; i < kCalls; ++i) {
        const nanoseconds delay(i * 37 % 41 * 500);
        const nanoseconds at_most(i % 5 == 0 ? nanoseconds(1h) : nanoseconds(i * 29 % 43 * 500));
        if (i % 2 == 0) {
          await_once(
              *timers, [&sleeps, delay] { return sleep_in_a_task(sleeps, delay); }, at_most,
              outcomes, i, early);
        } else {
          await_operation(*timers, sleeps, delay, at_most, stops[i].get_token(), outcomes, i);
        }
        ++started;
      }
    });
    std::thread stopper([&] {
      for (std::stop_source& stop : stops) stop.request_stop();
    });
    while (started < kCalls * (trial % 10) / 10) std::this_thread::yield();
    static_cast<void>(timers->stop());
    caller.join();
    stopper.join();
    EXPECT_TRUE(sleeps.drain().empty());
    timers.reset();
    outcomes.expect_one_each();
    ASSERT_FALSE(HasFailure()) << "in trial " << trial;
  }
}

}  // namespace
}  // namespace carillon::testing
