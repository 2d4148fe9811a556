// What users of Kafka's SystemTimer rely on, case by case as its own tests have it, on virtual
// time; and that its known defects are absent. The table of what is called how is in
// docs/timers.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// A ManualClock that writes down until when the timer thread sleeps.
class WatchedClock final : public TimerClock {
 public:
  explicit WatchedClock(std::shared_ptr<ManualClock> clock) : clock_(std::move(clock)) {}
  SteadyTime now() noexcept override { return clock_->now(); }
  WallTime wall_now() noexcept override { return clock_->wall_now(); }
  std::unique_ptr<TimerAlarm> make_alarm() override {
    return std::make_unique<WatchedAlarm>(*this);
  }

  std::vector<SteadyTime> sleeps() const {
    const std::lock_guard lock(mutex_);
    return sleeps_;
  }

 private:
  class WatchedAlarm final : public TimerAlarm {
   public:
    explicit WatchedAlarm(WatchedClock& clock)
        : clock_(clock), alarm_(clock.clock_->make_alarm()) {}
    void sleep_until(SteadyTime steady, WallTime wall) override {
      {
        const std::lock_guard lock(clock_.mutex_);
        clock_.sleeps_.push_back(steady);
      }
      alarm_->sleep_until(steady, wall);
    }
    void wake() noexcept override { alarm_->wake(); }
    void open() override { alarm_->open(); }
    void close() noexcept override { alarm_->close(); }

   private:
    WatchedClock& clock_;
    std::unique_ptr<TimerAlarm> alarm_;
  };

  const std::shared_ptr<ManualClock> clock_;
  mutable std::mutex mutex_;  // protects the following
  std::vector<SteadyTime> sleeps_;
};

class KafkaContract : public ::testing::Test {
 protected:
  std::int64_t now_ms() const { return clock_->now().time_since_epoch() / 1ms; }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
};

// --- its published cases

TEST_F(KafkaContract, TasksThatAreDueAlreadyRunAtOnce) {
  TimerService timers({.clock = clock_, .shards = 1});
  std::vector<int> output;
  for (int id = -5; id < 0; ++id)
    timers.schedule_after(milliseconds(id), [&output, id] { output.push_back(id); });
  clock_->settle();
  std::sort(output.begin(), output.end());
  EXPECT_EQ(output, (std::vector<int>{-5, -4, -3, -2, -1}));
}

TEST_F(KafkaContract, TasksOfManyDelaysRunOnceEachInOrderOfTime) {
  TimerService timers({.clock = clock_, .shards = 1});
  std::vector<int> ids;
  for (int id = 0; id < 5; ++id) ids.push_back(id);
  for (int id = 10; id < 100; ++id) ids.insert(ids.end(), 2, id);
  for (int id = 100; id < 500; ++id) ids.push_back(id);
  std::vector<int> shuffled = ids;
  for (const std::uint64_t seed : seeds(1)) {
    SCOPED_TRACE(replay_with(seed));
    std::mt19937_64 random(seed);
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    std::vector<int> output;
    int early_or_late = 0;
    for (const int id : shuffled) {
      timers.schedule_after(milliseconds(id), [&, id, due = now_ms() + id] {
        output.push_back(id);
        early_or_late += now_ms() == due ? 0 : 1;
      });
    }
    clock_->advance(2s);
    EXPECT_EQ(output, ids) << "in order of time";
    EXPECT_EQ(early_or_late, 0);
  }
}

// Its task lists share a counter: adding a task to another list moves it, and does not count it
// twice.
TEST_F(KafkaContract, ATaskThatIsMovedIsCountedOnce) {
  TimerService timers({.clock = clock_});
  std::vector<TimerHandle> tasks;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    tasks.push_back(timers.schedule_after(10ms, [] { FAIL() << "it was cancelled"; }));
    EXPECT_EQ(timers.pending(), i);
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_TRUE(tasks[i].reschedule_after(i < 4 ? milliseconds(5) : milliseconds(500)));
    EXPECT_EQ(timers.pending(), 10U);
  }
  for (std::uint64_t left = 10; TimerHandle & task : tasks) {
    EXPECT_TRUE(task.cancel());
    EXPECT_EQ(timers.pending(), --left);
  }
  clock_->advance(1s);
}

// A bucket in its delay queue says how long it has to wait: what drives the clock is the next
// bucket that is not empty.
TEST_F(KafkaContract, TheNextNonEmptyBucketDrivesTheClock) {
  const auto watched = std::make_shared<WatchedClock>(clock_);
  TimerService timers({.clock = watched, .shards = 1});
  timers.schedule_after(10s, [] {});
  clock_->settle();
  EXPECT_LE(watched->sleeps().back(), SteadyTime(10s));
  EXPECT_GT(watched->sleeps().back(), SteadyTime(10s - 256ms))
      << "the start of its slot, 256 ms wide";
  clock_->advance(10s - 1ns);
  EXPECT_EQ(watched->sleeps().back(), SteadyTime(10s));
  clock_->advance(1ns);
  EXPECT_EQ(watched->sleeps().back(), SteadyTime(std::chrono::nanoseconds(detail::kForever)))
      << "nothing is left";
  EXPECT_LE(watched->sleeps().size(), 8U)
      << "one for each level at most, not one for each of 10 000 ticks";
}

TEST_F(KafkaContract, FuturesFailAtTheirTimeouts) {
  TimerService timers({.executor = TimerExecutor::pool(1), .clock = clock_});
  std::vector<std::future<void>> futures;
  for (const auto delay : {100ms, 200ms, 300ms}) {
    std::promise<void> promise;
    futures.push_back(promise.get_future());
    timers.schedule_after(delay, [promise = std::move(promise)]() mutable {
      promise.set_exception(std::make_exception_ptr(std::runtime_error("timed out")));
    });
  }
  for (std::future<void>& future : futures) {
    clock_->advance(100ms);
    EXPECT_THROW(future.get(), std::runtime_error);
  }
}

// Its reaper polls every 200 ms, and is woken with an empty task to end.
TEST_F(KafkaContract, ClosingDoesNotWaitForTheNextTimer) {
  TimerService timers({.clock = clock_});
  timers.schedule_after(24h, [] {});
  clock_->settle();
  const std::uint64_t before = timers.stats().wakeups;
  EXPECT_EQ(timers.stop().size(), 1U);
  EXPECT_LE(timers.stats().wakeups, before + 1);
}

// --- its defects

// A bucket fires at its start, so with ticks of 20 ms a task of 25 ms runs after 20.
TEST_F(KafkaContract, Absent_EarlyTasksWithALongTick) {
  TimerService timers({.tick = 20ms, .clock = clock_});
  int early = 0;
  int late = 0;
  for (int ms = 0; ms < 1000; ++ms) {
    timers.schedule_after(milliseconds(ms), [&, due = now_ms() + ms] {
      early += now_ms() < due ? 1 : 0;
      late += now_ms() >= due + 20 ? 1 : 0;
    });
    if (ms % 7 == 0) clock_->advance(3ms);
  }
  clock_->advance(2s);
  EXPECT_EQ(timers.stats().fired, 1000U);
  EXPECT_EQ(early, 0);
  EXPECT_EQ(late, 0) << "by a tick or more";
}

// Kafka's timer is woken by every bucket that comes up, if only to move its tasks down; buckets
// that hold nothing cause no wake-up, there and here.
TEST_F(KafkaContract, Absent_WakeupsForBucketsThatWereNeverFilled) {
  TimerService timers({.clock = clock_, .shards = 1});
  for (int minute = 1; minute <= 60; ++minute)
    timers.schedule_after(std::chrono::minutes(minute), [] {});
  clock_->settle();
  const std::uint64_t before = timers.stats().wakeups;
  clock_->advance(1h);
  EXPECT_LE(timers.stats().wakeups, before + 180)
      << "for each of 60 tasks one at its time, and one for each of the two levels above";
}

// A bucket that was emptied by cancelling stays in Kafka's delay queue, and wakes the timer once.
// So it is here with slots: what is bounded is the number of wake-ups, by the slots that there are,
// however many tasks were cancelled.
TEST_F(KafkaContract, SlotsThatWereEmptiedByCancellingCauseOneWakeupEachAtMost) {
  TimerService timers({.clock = clock_, .shards = 1});
  timers.schedule_after(1h, [] {});
  std::vector<TimerHandle> cancelled;
  for (int ms = 1; ms <= 7'999; ++ms)
    cancelled.push_back(timers.schedule_after(milliseconds(ms), [] {}));
  clock_->settle();
  for (TimerHandle& timer : cancelled) EXPECT_TRUE(timer.cancel());
  const std::uint64_t before = timers.stats().wakeups;
  clock_->advance(10s);
  EXPECT_LE(timers.stats().wakeups, before + 287)
      << "255 slots of a tick, 31 slots of 256 ticks, and whatever is next";
}

// Adding a task waits for the lock under which expired buckets are emptied.
TEST_F(KafkaContract, Absent_SchedulingThatWaitsForTheClockToAdvance) {
  TimerService timers({.clock = clock_, .shards = 1});
  std::latch running(1);
  std::latch go_on(1);
  timers.schedule_after(0s, [&] {
    running.count_down();
    go_on.wait();
  });
  running.wait();
  // The timer thread is busy until this is done.
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(timers.schedule_after(1s, [] {}).cancel());
  go_on.count_down();
}

// TimerTask.cancel() says nothing; a task that is under way between two lists may still run.
TEST_F(KafkaContract, Absent_CancellingThatDoesNotSayWhetherItWon) {
  TimerService timers({.clock = clock_});
  int ran = 0;
  TimerHandle pending = timers.schedule_after(1s, [&] { ++ran; });
  TimerHandle fired = timers.schedule_after(1ms, [&] { ++ran; });
  clock_->advance(1ms);
  EXPECT_TRUE(pending.cancel());
  EXPECT_FALSE(fired.cancel());
  clock_->advance(1s);
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace carillon::testing
