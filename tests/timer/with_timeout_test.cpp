// with_timeout() on a manual clock: what it returns, and what happens to an operation that is late.
#include "carillon/timer/with_timeout.h"

#include <gtest/gtest.h>

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

// An awaitable that ends when the test says so.
class Event {
 public:
  auto operator co_await() noexcept {
    struct Awaiter {
      Event& event;
      bool await_ready() const noexcept { return event.value_.has_value(); }
      void await_suspend(std::coroutine_handle<> waiting) const noexcept {
        event.waiting_ = waiting;
      }
      int await_resume() const { return *event.value_; }
    };
    return Awaiter{*this};
  }
  void set(int value) {
    value_ = value;
    if (waiting_) std::exchange(waiting_, nullptr).resume();
  }

 private:
  std::optional<int> value_;
  std::coroutine_handle<> waiting_;
};

class Timeouts : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(live_frames, 0) << "a coroutine's frame was leaked"; }

  // Awaits `awaitable`, and logs the result.
  template <class A>
  Detached log_result(A awaitable) {
    try {
      const auto result = co_await std::move(awaitable);
      if constexpr (std::is_same_v<decltype(result), const bool>) {
        log_.emplace_back(result ? "in time" : "timed out");
      } else {
        log_.push_back(result ? "in time: " + std::to_string(*result) : "timed out");
      }
    } catch (const std::exception& error) {
      log_.emplace_back(error.what());
    }
  }
  using Log = std::vector<std::string>;
  const std::string kStopped = TimersStopped().what();

  Task<int> value_of(Event& event) {
    const int value = co_await event;
    log_.push_back("event " + std::to_string(value));
    co_return value;
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Log log_;
  std::optional<TimerService> timers_{std::in_place, TimerOptions{.clock = clock_}};
};

// --- an awaitable that cannot be told to stop

TEST_F(Timeouts, TimeoutAtCountsUntilATimeOfEitherClock) {
  Event event;
  log_result(timeout_at(*timers_, value_of(event), clock_->now() + 5s));
  clock_->advance(5s - 1ns);
  EXPECT_EQ(log_, Log{});
  clock_->advance(1ns);
  EXPECT_EQ(log_, Log{"timed out"});
  event.set(1);
  log_.clear();
  Event second;
  log_result(timeout_at(*timers_, value_of(second), clock_->wall_now() + 5s));
  clock_->set_wall(clock_->wall_now() + 4s);
  EXPECT_EQ(log_, Log{});
  clock_->set_wall(clock_->wall_now() + 1s);
  EXPECT_EQ(log_, Log{"timed out"});
  second.set(2);
  log_.clear();
  log_result(timeout_at(*timers_, value_of(event), clock_->now() - 1h));
  EXPECT_EQ(log_, (Log{"event 1", "in time: 1"})) << "what is ready wins, also if it is late";
}

TEST_F(Timeouts, InTimeItsValueIsTheResultAndTheTimerIsGone) {
  Event event;
  log_result(with_timeout(*timers_, value_of(event), 5s));
  clock_->advance(5s - 1ns);
  event.set(7);
  EXPECT_EQ(log_, (Log{"event 7", "in time: 7"}));
  EXPECT_EQ(timers_->pending(), 0U);
  clock_->advance(1h);
  EXPECT_EQ(log_.size(), 2U);
}

TEST_F(Timeouts, AfterATimeOutItIsGivenUpAndGoesOnByItself) {
  Event event;
  log_result(with_timeout(*timers_, value_of(event), 5s));
  clock_->advance(5s);
  EXPECT_EQ(log_, Log{"timed out"});
  EXPECT_EQ(live_frames, 1) << "of the task that was given up";
  event.set(7);
  EXPECT_EQ(log_, (Log{"timed out", "event 7"}));
  EXPECT_EQ(live_frames, 0) << "freed when it has ended";
}

TEST_F(Timeouts, AnAwaitableThatEndsAtOnceDoesNotSuspend) {
  Event event;
  event.set(7);
  log_result(with_timeout(*timers_, value_of(event), 5s));
  EXPECT_EQ(log_, (Log{"event 7", "in time: 7"}));
  EXPECT_EQ(timers_->pending(), 0U);
}

// --- a time of 0, and one that is over before the awaitable has begun

TEST_F(Timeouts, AnAwaitableThatIsReadyIsInTimeAlsoIfTheTimeIsZero) {
  for (const auto time : {0s, -1s}) {
    Event event;
    event.set(7);
    log_result(with_timeout(*timers_, value_of(event), time));
  }
  EXPECT_EQ(log_, (Log{"event 7", "in time: 7", "event 7", "in time: 7"}));
}

TEST_F(Timeouts, WithATimeOfZeroAnOperationThatEndsBeforeItIsToldToStopIsInTime) {
  std::vector<DueTask> due;
  TimerService timers(
      {.executor = TimerExecutor::by([&](DueTask&& task) { due.push_back(std::move(task)); }),
       .clock = clock_});
  Event event;
  event.set(7);
  log_result(with_timeout(
      timers, [&](std::stop_token) { return value_of(event); }, 0s));
  clock_->settle();
  for (DueTask& task : due) task();
  EXPECT_EQ(log_, (Log{"event 7", "in time: 7"}));
}

// It was never told.
TEST_F(Timeouts, WithATimeOfZeroAnOperationThatDoesNotWaitIsToldToStop) {
  const auto check_often = [](std::stop_token stop) -> Task<> {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (!stop.stop_requested() && std::chrono::steady_clock::now() < give_up)
      std::this_thread::yield();
    if (!stop.stop_requested()) throw std::runtime_error("never told");
    co_return;
  };
  log_result(with_timeout(*timers_, check_often, 0s));
  log_result(timeout_at(*timers_, check_often, clock_->now() - 1h));
  log_result(timeout_at(*timers_, check_often, clock_->wall_now() - 1h));
  EXPECT_EQ(log_, (Log{"timed out", "timed out", "timed out"}));
}

TEST_F(Timeouts, WithATimeOfZeroAnAwaitableThatWaitsIsGivenUpAndAnOperationIsToldToStop) {
  Event event;
  log_result(with_timeout(*timers_, value_of(event), 0s));
  EXPECT_EQ(log_, Log{"timed out"});
  bool told = false;
  log_result(with_timeout(
      *timers_,
      [&](std::stop_token stop) -> Task<> { told = !co_await timers_->sleep_for(1h, stop); }, 0s));
  clock_->settle();
  EXPECT_TRUE(told);
  EXPECT_EQ(log_, (Log{"timed out", "timed out"}));
  event.set(1);
}

TEST_F(Timeouts, AnAwaitableThatIsReadyIsInTimeThoughTheTimeIsOverWhenItBegins) {
  int calls = 0;
  const auto operation = [&](std::stop_token stop) -> Task<int> {
    clock_->advance(1s);
    co_return stop.stop_requested() ? -1 : ++calls;
  };
  log_result(with_timeout(*timers_, operation(std::stop_token()), 1s));
  EXPECT_EQ(log_, Log{"in time: 1"});
  // An operation that sees that it is told to stop has not ended in time.
  log_result(with_timeout(*timers_, operation, 1s));
  EXPECT_EQ(log_.back(), "timed out");
  EXPECT_EQ(timers_->pending(), 0U);
}

TEST_F(Timeouts, AHundredThousandAwaitablesThatEndAtOnceDoNotUseUpTheStack) {
  int ended = 0;
  [](TimerService& timers, int& count) -> Detached {
    for (int i = 0; i < 100'000; ++i) {
      const auto result = co_await with_timeout(
          timers, []() -> Task<int> { co_return 1; }(), 1h);
      count += result.value_or(0);
    }
  }(*timers_, ended);
  EXPECT_EQ(ended, 100'000);
}

TEST_F(Timeouts, AnExceptionInTimeIsThrown) {
  log_result(with_timeout(
      *timers_,
      []() -> Task<int> {
        throw std::runtime_error("no such host");
        co_return 1;
      }(),
      5s));
  EXPECT_EQ(log_, Log{"no such host"});
}

TEST_F(Timeouts, AnExceptionThatIsTooLateIsDropped) {
  Event event;
  log_result(with_timeout(
      *timers_,
      [](Event& event_of_test) -> Task<int> {
        co_await event_of_test;
        throw std::runtime_error("too late");
      }(event),
      5s));
  clock_->advance(5s);
  event.set(1);
  EXPECT_EQ(log_, Log{"timed out"});
}

TEST_F(Timeouts, TheResultOfAVoidAwaitableIsABool) {
  log_result(with_timeout(
      *timers_, [](TimerSleep sleep) -> Task<> { co_await sleep; }(timers_->sleep_for(4s)), 5s));
  log_result(with_timeout(
      *timers_, [](TimerSleep sleep) -> Task<> { co_await sleep; }(timers_->sleep_for(6s)), 5s));
  clock_->advance(10s);
  EXPECT_EQ(log_, (Log{"in time", "timed out"}));
}

TEST_F(Timeouts, TheResultOfAReferenceRefersToTheSameObject) {
  int number = 0;
  [](TimerService& timers, int& referred) -> Detached {
    std::optional<std::reference_wrapper<int>> result = co_await with_timeout(
        timers, [](int& it) -> Task<int&> { co_return it; }(referred), 5s);
    if (result) result->get() = 5;
  }(*timers_, number);
  EXPECT_EQ(number, 5);
}

TEST_F(Timeouts, AValueThatCanOnlyBeMoved) {
  int value = 0;
  [](TimerService& timers, int& result) -> Detached {
    auto pointer = co_await with_timeout(
        timers, []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(9); }(), 5s);
    result = **pointer;
  }(*timers_, value);
  EXPECT_EQ(value, 9);
}

// An awaitable whose await_resume() returns an rvalue reference, as those of many libraries do.
struct HandsOver {
  std::unique_ptr<int> value;

  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  std::unique_ptr<int>&& await_resume() noexcept { return std::move(value); }
};

TEST_F(Timeouts, TheResultOfAnRvalueReferenceIsTheMovedValue) {
  int value = 0;
  [](TimerService& timers, int& result) -> Detached {
    HandsOver hands_over{std::make_unique<int>(9)};
    std::optional<std::unique_ptr<int>> pointer =
        co_await with_timeout(timers, std::move(hands_over), 5s);
    result = **pointer;
  }(*timers_, value);
  EXPECT_EQ(value, 9);
}

// --- an operation that takes a stop token

TEST_F(Timeouts, AnOperationIsToldToStopAndWaitedFor) {
  Event cleaned_up;
  log_result(with_timeout(
      *timers_,
      [&](std::stop_token stop) -> Task<int> {
        const bool slept = co_await timers_->sleep_for(1h, stop);
        log_.emplace_back(slept ? "slept" : "told to stop");
        co_return co_await cleaned_up;
      },
      5s));
  clock_->advance(5s - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(log_, Log{"told to stop"});
  cleaned_up.set(3);
  EXPECT_EQ(log_, (Log{"told to stop", "timed out"})) << "the value of the operation was dropped";
}

TEST_F(Timeouts, AnOperationThatEndsInTimeIsNotToldToStop) {
  std::stop_token kept;
  log_result(with_timeout(
      *timers_,
      [&](std::stop_token stop) {
        kept = stop;
        return timers_->sleep_for(1s, stop);
      },
      5s));
  clock_->advance(1h);
  EXPECT_EQ(log_, Log{"in time: 1"});
  EXPECT_FALSE(kept.stop_requested());
}

TEST_F(Timeouts, AnExceptionOfAnOperationThatIsToldToStopIsDropped) {
  log_result(with_timeout(
      *timers_,
      [&](std::stop_token stop) -> Task<> {
        if (!co_await timers_->sleep_for(1h, stop)) throw std::runtime_error("cancelled");
      },
      5s));
  clock_->advance(5s);
  EXPECT_EQ(log_, Log{"timed out"});
}

TEST_F(Timeouts, AnExceptionOfTheCallOfAnOperationIsThrown) {
  log_result(with_timeout(
      *timers_, [](std::stop_token) -> Task<> { throw std::runtime_error("could not begin"); },
      5s));
  EXPECT_EQ(log_, Log{"could not begin"});
  EXPECT_EQ(timers_->pending(), 0U);
}

TEST_F(Timeouts, AStopRequestOfTheCallerIsPassedOnAndTheOperationDecides) {
  std::stop_source stop;
  const auto operation = [&](std::stop_token told) { return timers_->sleep_for(1h, told); };
  log_result(with_timeout(*timers_, operation, 5s, stop.get_token()));
  clock_->advance(1s);
  stop.request_stop();
  clock_->settle();
  log_result(with_timeout(*timers_, operation, 5s, stop.get_token()));
  EXPECT_EQ(log_, (Log{"in time: 0", "in time: 0"})) << "what sleep_for() returned: false";
  EXPECT_EQ(timers_->pending(), 0U);
}

// An awaitable that ends within request_stop(), while another callback of the token has still to be
// called.
struct EndsInTheFirstOfTwoCallbacks {
  using Callback = std::stop_callback<std::function<void()>>;

  std::stop_token stop;
  std::optional<Callback> last = std::nullopt;
  std::optional<Callback> first = std::nullopt;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    const std::function<void()> nothing = [] {};
    const std::function<void()> end = [waiting] { waiting.resume(); };
    last.emplace(stop, nothing);
    first.emplace(stop, end);
  }
  void await_resume() const noexcept {}
};

// The stop state must live until request_stop() returns. The address sanitizer finds out if it does
// not.
TEST_F(Timeouts, AnOperationThatEndsWithinTheCallersRequestToStop) {
  std::stop_source stop;
  log_result(with_timeout(
      *timers_,
      [](std::stop_token told) -> Task<> {
        EndsInTheFirstOfTwoCallbacks end{std::move(told)};
        co_await end;
      },
      5s, stop.get_token()));
  stop.request_stop();
  EXPECT_EQ(log_, Log{"in time"});
  EXPECT_EQ(timers_->pending(), 0U);
}

TEST_F(Timeouts, AHundredThousandOperationsThatEndAsTheyAreToldToDoNotUseUpTheStack) {
  int timed_out = 0;
  [](TimerService& timers, int& count) -> Detached {
    for (int i = 0; i < 100'000; ++i) {
      const bool in_time = co_await with_timeout(
          timers,
          [](std::stop_token told) -> Task<> {
            EndsInTheFirstOfTwoCallbacks end{std::move(told)};
            co_await end;
          },
          0s);
      count += in_time ? 0 : 1;
    }
  }(*timers_, timed_out);
  clock_->settle();
  EXPECT_EQ(timed_out, 100'000);
}

TEST_F(Timeouts, ATimeoutInsideATimeout) {
  log_result(with_timeout(
      *timers_,
      [&](std::stop_token stop) -> Task<int> {
        const auto inner = co_await with_timeout(
            *timers_, [&](std::stop_token both) { return timers_->sleep_for(1h, both); }, 10s,
            stop);
        log_.emplace_back(inner ? "inner told to stop" : "inner timed out");
        co_return 1;
      },
      5s));
  clock_->advance(5s);
  EXPECT_EQ(log_, (Log{"inner told to stop", "timed out"}));
  EXPECT_EQ(timers_->pending(), 0U);
}

// --- what is refused at compile time

template <class A>
concept TakesATimeout = requires(TimerService& timers, A&& awaitable) {
  with_timeout(timers, std::forward<A>(awaitable), 5s);
};
static_assert(TakesATimeout<Task<int>>);
static_assert(!TakesATimeout<Task<int>&>, "it would have been copied, or left to dangle");
static_assert(TakesATimeout<TimerSleep>);
static_assert(!TakesATimeout<TimerSleep&> && !TakesATimeout<const TimerSleep&>);

TEST_F(Timeouts, ARefusedTimerThrowsAndNothingIsStarted) {
  TimerService full({.max_pending = 1, .clock = clock_});
  full.schedule_after(1h, [] {});
  Event event;
  log_result(with_timeout(full, value_of(event), 5s));
  EXPECT_EQ(log_.size(), 1U);
  EXPECT_NE(log_[0].find("max_pending is 1"), std::string::npos) << log_[0];
  EXPECT_EQ(live_frames, 0);
}

// --- the end of the service, and of the coroutine

TEST_F(Timeouts, WhenTheServiceIsStoppedItThrowsAndTheOperationIsToldToStop) {
  Event event;
  Event cleaned_up;
  TimerService other({.clock = clock_});
  log_result(with_timeout(*timers_, value_of(event), 5s));
  log_result(with_timeout(
      *timers_,
      [&](std::stop_token stop) -> Task<int> {
        static_cast<void>(co_await other.sleep_for(1h, stop));
        co_return co_await cleaned_up;
      },
      5s));
  std::vector<Unprocessed> rest = timers_->stop();
  EXPECT_TRUE(log_.empty());
  rest.clear();
  EXPECT_EQ(log_, Log{kStopped});
  clock_->settle();
  cleaned_up.set(1);
  EXPECT_EQ(log_, (Log{kStopped, kStopped}));
  event.set(1);
}

TEST_F(Timeouts, AnAwaitableThatEndsBeforeItsReturnedTimerIsDroppedIsInTime) {
  Event event;
  log_result(with_timeout(*timers_, value_of(event), 5s));
  std::vector<Unprocessed> rest = timers_->stop();
  event.set(1);
  rest.clear();
  EXPECT_EQ(log_, (Log{"event 1", "in time: 1"}));
}

TEST_F(Timeouts, AStoppedServiceStartsNothing) {
  static_cast<void>(timers_->stop());
  Event event;
  log_result(with_timeout(*timers_, value_of(event), 5s));
  log_result(with_timeout(
      *timers_, [&](std::stop_token) { return value_of(event); }, 5s));
  // They began with these, so a loop that tried again never ended.
  log_result(with_timeout(*timers_, value_of(event), 0s));
  log_result(with_timeout(
      *timers_, [&](std::stop_token) { return value_of(event); }, 0s));
  log_result(timeout_at(*timers_, value_of(event), clock_->now() - 1s));
  log_result(timeout_at(*timers_, value_of(event), clock_->wall_now() - 1s));
  EXPECT_EQ(log_, Log(6, kStopped));
  EXPECT_EQ(live_frames, 0);
}

TEST_F(Timeouts, ACoroutineThatAwaitsWithTimeoutMayBeDestroyed) {
  Event given_up;
  bool told_to_stop = false;
  {
    Task<> waits = [](TimerService& timers, Task<int> task) -> Task<> {
      co_await with_timeout(timers, std::move(task), 5s);
      ADD_FAILURE() << "went on";
    }(*timers_, value_of(given_up));
    waits.start();
    Task<> other = [](TimerService& timers, bool& told) -> Task<> {
      co_await with_timeout(
          timers,
          [&told, &timers](std::stop_token stop) -> Task<> {
            bool& result = told;  // owned by the test
            result = !co_await timers.sleep_for(1h, stop);
          },
          5s);
      ADD_FAILURE() << "went on";
    }(*timers_, told_to_stop);
    other.start();
  }
  clock_->settle();
  EXPECT_TRUE(told_to_stop);
  EXPECT_EQ(timers_->pending(), 0U);
  given_up.set(4);
  EXPECT_EQ(log_, Log{"event 4"});
}

}  // namespace
}  // namespace carillon::testing
