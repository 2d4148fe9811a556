// A shard makes its wheel when it gets its first timer. The wheel starts at the time of that
// moment, which may be later than the time that the timer thread read last.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

TEST(LateWheel, AShardThatIsFirstUsedAnHourLaterKeepsItsTimers) {
  const auto clock = std::make_shared<ManualClock>();
  TimerService timers({.clock = clock, .shards = 8});
  std::vector<std::int64_t> fired_at;
  const auto log_time = [&] { fired_at.push_back(clock->now().time_since_epoch() / 1ms); };
  timers.schedule_after(2h, log_time);
  clock->advance(1h);
  const std::uint64_t before = timers.stats().wakeups;
  // Threads that live at the same time have different numbers, and so different shards.
  std::latch all_live(3);
  std::vector<std::thread> threads;
  for (int i = 1; i <= 3; ++i) {
    threads.emplace_back([&, i] {
      all_live.arrive_and_wait();
      timers.schedule_after(std::chrono::milliseconds(i), log_time);
    });
  }
  for (std::thread& thread : threads) thread.join();
  clock->advance(2h);
  EXPECT_EQ(fired_at, (std::vector<std::int64_t>{3'600'001, 3'600'002, 3'600'003, 7'200'000}));
  EXPECT_LE(timers.stats().wakeups, before + 16) << "a new wheel does not walk through the past";
}

TEST(LateWheel, TheFirstTimerOnTheWallClockMayComeLate) {
  const WallTime start{std::chrono::sys_days(std::chrono::year(2030) / 6 / 1)};
  const auto clock = std::make_shared<ManualClock>(SteadyTime(500s), start);
  TimerService timers({.clock = clock});
  int fired = 0;
  timers.schedule_after(24h, [] {});
  clock->advance(1h);
  timers.schedule_at(start + 2h, [&] { ++fired; });
  clock->advance(1h - 1ns);
  EXPECT_EQ(fired, 0);
  clock->advance(1ns);
  EXPECT_EQ(fired, 1);
}

// A ManualClock that can run a function after the timer thread has read the steady clock, and
// before it uses that time: when it reads the wall clock, which it does next.
class InterruptedClock final : public TimerClock {
 public:
  SteadyTime now() noexcept override { return clock_->now(); }
  WallTime wall_now() noexcept override {
    const bool on_timer_thread = std::this_thread::get_id() != test_thread_ && !interrupted_;
    if (on_timer_thread && interruption_) {
      interrupted_ = true;
      std::exchange(interruption_, nullptr)();
      interrupted_ = false;
    }
    return clock_->wall_now();
  }
  std::unique_ptr<TimerAlarm> make_alarm() override { return clock_->make_alarm(); }

  // REQUIRES: the timer thread sleeps.
  void interrupt_by(std::function<void()> interruption) { interruption_ = std::move(interruption); }
  ManualClock& manual() { return *clock_; }

 private:
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(SteadyTime(1s + 999us));
  const std::thread::id test_thread_ = std::this_thread::get_id();
  std::function<void()> interruption_;
  bool interrupted_ = false;
};

// The timer thread has read the clock 999 us after the start of a tick. Then another thread makes
// the wheel of its shard, in the next tick, for a timer that was due long ago. The timer thread
// finds a wheel that is ahead of its own time.
TEST(LateWheel, AWheelThatIsAheadOfTheTimerThreadsClockFiresWhatIsDueAtOnce) {
  const auto clock = std::make_shared<InterruptedClock>();
  TimerService timers({.clock = clock, .shards = 8});
  bool interrupted = false;
  int fired = 0;
  timers.schedule_after(100ms, [] {});
  clock->manual().settle();
  const std::uint64_t before = timers.stats().wakeups;
  clock->interrupt_by([&] {
    interrupted = true;
    clock->manual().pass(1us);
    std::thread([&] { timers.schedule_after(-1h, [&] { ++fired; }); }).join();
  });
  timers.schedule_after(-1h, [] {});  // wakes the timer thread
  clock->manual().settle();
  EXPECT_TRUE(interrupted);
  EXPECT_EQ(fired, 1) << "although the clock has not moved since";
  EXPECT_EQ(clock->now(), SteadyTime(1s + 1ms));
  EXPECT_EQ(timers.stats().wakeups, before + 1) << "the timer thread need not wake again for it";
}

}  // namespace
}  // namespace carillon::testing
