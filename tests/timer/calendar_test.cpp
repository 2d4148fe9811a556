// schedule_by(): timers that follow a user's calendar.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "timer/trials.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using Minutes = std::vector<std::int64_t>;

const WallTime kStart{std::chrono::sys_days(std::chrono::year(2030) / 6 / 1)};

// The calendar of every full ten minutes.
std::optional<WallTime> tens(WallTime after) {
  return std::chrono::floor<std::chrono::duration<std::int64_t, std::ratio<600>>>(after) + 10min;
}

class Calendar : public ::testing::Test {
 protected:
  std::int64_t now() const { return (clock_->wall_now() - kStart) / 1min; }
  void log_run() { ran_.push_back(now()); }
  auto logging() {
    return [this] { log_run(); };
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(SteadyTime(500s), kStart);
  TimerService timers_{{.clock = clock_}};
  Minutes ran_;  // in minutes of the wall clock
};

TEST_F(Calendar, RunsAtEachOfItsTimes) {
  clock_->advance(1min);
  timers_.schedule_by(tens, logging());
  clock_->advance(9min - 1ns);
  EXPECT_TRUE(ran_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(ran_, (Minutes{10}));
  clock_->advance(35min);
  EXPECT_EQ(ran_, (Minutes{10, 20, 30, 40}));
}

TEST_F(Calendar, ATimeAtTheMomentOfSchedulingIsNotLaterThanIt) {
  clock_->advance(10min);
  timers_.schedule_by(tens, logging());
  clock_->settle();
  EXPECT_TRUE(ran_.empty());
  clock_->advance(10min);
  EXPECT_EQ(ran_, (Minutes{20}));
}

// --- times that pass

TEST_F(Calendar, TimesThatPassDuringARunAreLeftOut) {
  timers_.schedule_by(tens, [&] {
    log_run();
    if (ran_.size() == 1) clock_->pass(25min);
  });
  clock_->advance(60min);
  EXPECT_EQ(ran_, (Minutes{10, 40, 50, 60}));
}

TEST_F(Calendar, MissedBurstRunsOnceForEach) {
  timers_.schedule_by(
      tens,
      [&] {
        log_run();
        if (ran_.size() == 1) clock_->pass(25min);
      },
      MissedRuns::kBurst);
  clock_->advance(60min);
  EXPECT_EQ(ran_, (Minutes{10, 35, 35, 40, 50, 60}));
}

TEST_F(Calendar, SetForwardPastSeveralTimesItRunsOnce) {
  timers_.schedule_by(tens, logging());
  clock_->set_wall(kStart + 35min);
  EXPECT_EQ(ran_, (Minutes{35}));
  clock_->advance(10min);
  EXPECT_EQ(ran_, (Minutes{35, 40}));
}

TEST_F(Calendar, SetForwardWithMissedBurstItRunsOnceForEach) {
  timers_.schedule_by(tens, logging(), MissedRuns::kBurst);
  clock_->set_wall(kStart + 35min);
  EXPECT_EQ(ran_, (Minutes{35, 35, 35}));
  clock_->advance(10min);
  EXPECT_EQ(ran_, (Minutes{35, 35, 35, 40}));
}

// --- set back

TEST_F(Calendar, SetBackALittleNoTimeComesTwice) {
  timers_.schedule_by(tens, logging());
  clock_->advance(20min);
  EXPECT_EQ(ran_, (Minutes{10, 20}));
  clock_->set_wall(kStart - 2h - 40min);  // by 3 hours
  clock_->advance(3h + 10min - 1ns);
  EXPECT_EQ(ran_, (Minutes{10, 20}));
  clock_->advance(1ns);
  EXPECT_EQ(ran_, (Minutes{10, 20, 30}));
}

TEST_F(Calendar, SetBackALittleDuringARunNoTimeComesTwice) {
  std::vector<std::int64_t> asked;
  const auto calendar = [&](WallTime after) {
    asked.push_back((after - kStart) / 1min);
    return tens(after);
  };
  std::optional<DueTask> due;
  TimerService timers(
      {.executor = TimerExecutor::by([&](DueTask task) { due.emplace(std::move(task)); }),
       .clock = clock_});
  timers.schedule_by(calendar, [&] {
    log_run();
    std::thread([&] { clock_->set_wall(kStart - 1h); }).join();
  });
  clock_->advance(10min);
  ASSERT_TRUE(due.has_value());
  (*due)();
  due.reset();
  EXPECT_EQ(asked, (Minutes{0, 10})) << "asked from the time for which it ran";
  clock_->advance(80min - 1ns);
  EXPECT_FALSE(due.has_value());
  clock_->advance(1ns);
  EXPECT_TRUE(due.has_value());
}

TEST_F(Calendar, SetBackFarItGoesOnFromTheNewTime) {
  timers_.schedule_by(tens, logging());
  timers_.schedule_at(kStart + 30min, [&] { ran_.push_back(-1); });
  clock_->advance(20min);
  clock_->set_wall(kStart - 24h * 365);
  EXPECT_EQ(ran_, (Minutes{10, 20}));
  ran_.clear();
  clock_->advance(20min);
  EXPECT_EQ(ran_, (Minutes{-525'590, -525'580})) << "the timer of schedule_at() still waits";
  EXPECT_EQ(timers_.stats().runs, 4U);
}

TEST_F(Calendar, SetBackFarWithAPoolAndSeveralShards) {
  std::array<std::atomic<int>, 8> runs{};
  const auto all_ran = [&] {
    return std::all_of(runs.begin(), runs.end(), [](const auto& each) { return each > 0; });
  };
  TimerService timers({.executor = TimerExecutor::pool(2), .clock = clock_, .shards = 8});
  std::vector<std::thread> threads;
  for (auto& run : runs) threads.emplace_back([&] { timers.schedule_by(tens, [&run] { ++run; }); });
  for (std::thread& thread : threads) thread.join();
  clock_->set_wall(kStart - 10h + 5min);
  // The threads of the pool ask the calendars, and the clock does not wait for these threads. So a
  // timer may miss a time.
  for (int i = 0; i < 10'000 && !all_ran(); ++i) {
    clock_->settle();
    if (clock_->wall_now() < kStart - 9h) clock_->advance(1s);
    std::this_thread::yield();
  }
  EXPECT_TRUE(all_ran());
  EXPECT_LT(clock_->wall_now(), kStart - 9h + 5s);
}

TEST_F(Calendar, SetBackBetweenDueAndRunItWaits) {
  std::optional<DueTask> due;
  TimerService timers(
      {.executor = TimerExecutor::by([&](DueTask task) { due.emplace(std::move(task)); }),
       .clock = clock_});
  timers.schedule_by(tens, logging());
  clock_->advance(10min);
  ASSERT_TRUE(due.has_value());
  clock_->set_wall(kStart + 5min);
  (*due)();
  due.reset();
  EXPECT_TRUE(ran_.empty()) << "never early";
  clock_->advance(5min);
  ASSERT_TRUE(due.has_value()) << "the same time again";
  (*due)();
  EXPECT_EQ(ran_, (Minutes{10}));
  EXPECT_EQ(timers.stats().runs, 1U);
}

TEST_F(Calendar, MovedWhileTheClockIsSetBackFarNothingIsLost) {
  TimerHandle handle = timers_.schedule_by(tens, logging());
  clock_->settle();
  EXPECT_TRUE(handle.reschedule_at(kStart + 1min));
  clock_->set_wall(kStart - 10h);
  clock_->advance(10min);
  EXPECT_EQ(ran_, (Minutes{-590}));
}

// --- the end

TEST_F(Calendar, WithoutANextTimeItIsOver) {
  const auto captured = std::make_shared<int>();
  const auto twice = [times = 0](WallTime after) mutable {
    return ++times <= 2 ? std::optional<WallTime>(after + 10min) : std::nullopt;
  };
  TimerService timers({.max_pending = 1, .clock = clock_});
  const TimerHandle handle = timers.schedule_by(twice, [&, captured] { log_run(); });
  EXPECT_THROW(timers.schedule_after(1s, [] {}), TooManyTimers);
  clock_->advance(10min);
  EXPECT_EQ(handle.state(), TimerState::kPending);
  clock_->advance(30min);
  EXPECT_EQ(ran_, (Minutes{10, 20}));
  EXPECT_EQ(handle.state(), TimerState::kOver);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(timers.pending(), 0U);
  EXPECT_EQ(timers.stats().fired, 1U);
  timers.schedule_after(1s, [] {});
}

TEST_F(Calendar, WithoutAnyTimeNothingIsScheduled) {
  const TimerHandle handle =
      timers_.schedule_by([](WallTime) { return std::optional<WallTime>(); }, logging());
  EXPECT_FALSE(handle);
  EXPECT_EQ(handle.state(), TimerState::kOver);
  EXPECT_EQ(timers_.stats().scheduled, 0U);
}

TEST_F(Calendar, ATaskThatThrowsRunsAgain) {
  int errors = 0;
  TimerService timers({.clock = clock_, .on_error = [&](std::exception_ptr) { ++errors; }});
  timers.schedule_by(tens, [] { throw std::runtime_error("again"); });
  clock_->advance(30min);
  EXPECT_EQ(errors, 3);
}

TEST_F(Calendar, CancelledBetweenRunsIsOver) {
  TimerHandle handle = timers_.schedule_by(tens, logging());
  clock_->advance(15min);
  EXPECT_TRUE(handle.cancel());
  clock_->advance(1h);
  EXPECT_EQ(ran_, (Minutes{10}));
  EXPECT_EQ(timers_.pending(), 0U);
}

TEST_F(Calendar, CancelledFromInsideItsRunIsNotAskedForAnotherTime) {
  int asked = 0;
  const auto counting = [&asked](WallTime after) {
    ++asked;
    return tens(after);
  };
  TimerHandle handle;
  handle = timers_.schedule_by(counting, [&] {
    log_run();
    EXPECT_TRUE(handle.cancel());
    EXPECT_TRUE(!handle.cancel_and_wait());
  });
  clock_->advance(1h);
  EXPECT_EQ(ran_, (Minutes{10}));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(timers_.stats().cancelled, 1U);
  EXPECT_EQ(timers_.pending(), 0U);
}

TEST_F(Calendar, RescheduleMovesTheNextRunAndTheCalendarGoesOnFromThere) {
  TimerHandle handle = timers_.schedule_by(tens, logging());
  clock_->advance(10min);
  EXPECT_TRUE(handle.reschedule_at(kStart + 13min));
  clock_->advance(15min);
  EXPECT_EQ(ran_, (Minutes{10, 13, 20}));
  EXPECT_TRUE(handle.reschedule_after(20min)) << "at 45";
  clock_->advance(30min);
  EXPECT_EQ(ran_, (Minutes{10, 13, 20, 45, 50}));
}

TEST_F(Calendar, StopReturnsTheTimer) {
  timers_.schedule_by(tens, logging());
  clock_->advance(15min);
  std::vector<Unprocessed> rest = timers_.stop();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_TRUE(rest[0].by_calendar);
  EXPECT_TRUE(rest[0].on_wall_clock);
  EXPECT_EQ(rest[0].period, 0ns);
  EXPECT_EQ(rest[0].due, (kStart + 20min).time_since_epoch());
  rest[0].task();
  EXPECT_EQ(ran_, (Minutes{10, 15}));
}

TEST_F(Calendar, DrainDoesNotWaitForTheTimer) {
  timers_.schedule_by(tens, logging());
  EXPECT_EQ(timers_.drain().size(), 1U);
}

TEST_F(Calendar, ALargeTaskWithALargeCalendar) {
  std::array<std::int64_t, 20> steps{};
  steps.fill(3);
  timers_.schedule_by([steps](WallTime after) { return std::optional(after + steps[7] * 1min); },
                      [this, steps] { ran_.push_back(now() + steps[3]); });
  clock_->advance(7min);
  EXPECT_EQ(ran_, (Minutes{6, 9}));
}

// --- races

TEST(CalendarRace, CancelVersusTheEndOfItsCalendar_ExactlyOneWinner) {
  const std::size_t count = trials(20'000);
  TimerService timers({.tick = 1us, .executor = TimerExecutor::pool(2)});
  std::atomic<std::size_t> cancelled{0};
  std::atomic<std::size_t> runs{0};
  const auto captured = std::make_shared<int>();
  for (std::size_t i = 0; i < count; ++i) {
    TimerHandle handle = timers.schedule_by(
        [left = 2](WallTime after) mutable {
          return left-- > 0 ? std::optional(after + 1us) : std::nullopt;
        },
        [&runs, captured] { ++runs; });
    // A loop rather than yields: on a busy machine each yield may take milliseconds.
    const SteadyTime until = std::chrono::steady_clock::now() + i % 64 * 500ns;
    while (std::chrono::steady_clock::now() < until) continue;
    if (handle.cancel()) ++cancelled;
  }
  EXPECT_TRUE(timers.drain().empty());
  const TimerStats stats = timers.stats();
  EXPECT_EQ(stats.scheduled, count);
  EXPECT_EQ(stats.cancelled, cancelled);
  EXPECT_EQ(stats.fired + stats.cancelled, count);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_LE(runs, 2 * count);
}

TEST(CalendarRace, ClockSetBackFarVersusCancelAndMove_NoneIsLost) {
  const auto clock = std::make_shared<ManualClock>(SteadyTime(500s), kStart);
  TimerService timers({.executor = TimerExecutor::pool(2), .clock = clock});
  const std::size_t count = trials(2'000);
  std::mutex mutex;
  std::vector<TimerHandle> handles;
  std::atomic<bool> scheduled{false};
  std::atomic<bool> done{false};
  std::atomic<std::size_t> cancelled{0};
  std::thread scheduler([&] {
    for (std::size_t i = 0; i < count; ++i) {
      const TimerHandle handle = timers.schedule_by(tens, [] {});
      const std::lock_guard lock(mutex);
      handles.push_back(handle);
    }
    scheduled = true;
  });
  std::thread mover([&] {
    for (std::size_t i = 0; !done; ++i) {
      TimerHandle handle;
      {
        const std::lock_guard lock(mutex);
        if (!handles.empty()) handle = handles[i * 7919 % handles.size()];
      }
      if (i % 4 == 0) {
        cancelled += handle.cancel() ? 1U : 0U;
      } else {
        handle.reschedule_after(std::chrono::seconds(i % 1000));
      }
    }
  });
  for (int i = 0; i < 1000 || !scheduled; ++i) {
    clock->set_wall(kStart - 4h * i);
    clock->advance(11min);
  }
  scheduler.join();
  done = true;
  mover.join();
  const std::size_t returned = timers.stop().size();
  EXPECT_EQ(returned + cancelled, count);
  EXPECT_EQ(timers.stats().cancelled, cancelled);
  EXPECT_EQ(timers.pending(), 0U);
}

}  // namespace
}  // namespace carillon::testing
