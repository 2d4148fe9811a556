// No thread of a service waits long for a thread of lower priority, or for a slow clock.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/timer_service.h"
#include "timer/allocations.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::chrono::nanoseconds cpu_time_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// The CPU clock of the service's timer thread.
clockid_t timer_thread_clock(TimerService& timers) {
  clockid_t clock{};
  std::latch ran(1);
  timers.schedule_after(0ns, [&] {
    ::pthread_getcpuclockid(::pthread_self(), &clock);
    ran.count_down();
  });
  ran.wait();
  return clock;
}

// Waits until `done`, but no longer than 20 s. Returns false if that was too short.
template <class Done>
bool wait_for(Done&& done) {
  const auto give_up = Clock::now() + 20s;
  while (!done() && Clock::now() < give_up) std::this_thread::sleep_for(100us);
  return done();
}

class TakenDoors : public ::testing::Test {
 protected:
  // Schedules a timer on the wall clock, so that `inside` runs inside the door of this thread's
  // shard.
  template <class F>
  void inside_the_door(F&& inside) {
    at_next_slab = std::forward<F>(inside);
    timers_.schedule_at(std::chrono::system_clock::now() + 1h, [] {});
    EXPECT_FALSE(std::exchange(at_next_slab, nullptr)) << "nothing ran inside the door";
  }

  TimerService timers_{{.shards = 2}};
};

TEST_F(TakenDoors, TheTimerThreadSleepsWhileAnotherThreadIsInside) {
  const clockid_t clock = timer_thread_clock(timers_);
  std::latch fired(1);
  std::chrono::nanoseconds used{0};
  timers_.schedule_after(1ms, [&] { fired.count_down(); });
  inside_the_door([&] {
    const auto before = cpu_time_of(clock);
    std::this_thread::sleep_for(300ms);
    used = cpu_time_of(clock) - before;
    EXPECT_FALSE(fired.try_wait()) << "the timer's shard was open";
  });
  fired.wait();
  EXPECT_LT(used, 50ms) << "the timer thread has spun at the door";
}

TEST_F(TakenDoors, TimersOfOtherShardsFireMeanwhile) {
  constexpr int kThreads = 4;  // they use both shards
  std::atomic<int> fired{0};
  std::latch scheduled(kThreads);
  std::vector<std::jthread> threads;
  timers_.schedule_after(1ms, [] {});
  inside_the_door([&] {
    std::this_thread::sleep_for(50ms);  // the timer thread comes to this door
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        timers_.schedule_after(0ns, [&] { ++fired; });
        scheduled.arrive_and_wait();
      });
    }
    EXPECT_TRUE(wait_for([&] { return fired >= 1; })) << "they wait for the thread inside";
    scheduled.wait();
    EXPECT_LT(fired, kThreads) << "all threads use the other shard";
  });
  EXPECT_TRUE(wait_for([&] { return fired == kThreads; })) << "nobody has called the timer thread";
}

TEST_F(TakenDoors, StopWaitsForTheThreadInsideAndLosesNothing) {
  std::vector<Unprocessed> rest;
  std::jthread stopping;
  inside_the_door([&] {
    stopping = std::jthread([&] { rest = timers_.stop(); });
    std::this_thread::sleep_for(50ms);
  });
  stopping.join();
  EXPECT_EQ(rest.size(), 1U);
}

// Counts how long the timer thread has worked since it last ran a task: with one processor, that is
// how long the others had to wait.
struct WorkBetweenRuns {
  clockid_t clock;
  std::chrono::nanoseconds last = cpu_time_of(clock);
  std::chrono::nanoseconds most{0};

  void operator()() {
    const auto now = cpu_time_of(clock);
    most = std::max(most, now - last);
    last = now;
  }
};

TEST(RealTime, ATimerThreadDoesNotKeepTheOnlyProcessorFromAThreadInside) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // the service's threads inherit it
  {
    TimerService timers({.tick = 100us, .shards = 1});
    WorkBetweenRuns work{timer_thread_clock(timers)};
    std::atomic<int> refused{-1};
    timers.schedule_after(0ns, [&] {
      const sched_param lowest{.sched_priority = 1};
      refused = ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &lowest);
      refused.notify_one();
    });
    refused.wait(-1);
    if (refused == 0) {
      timers.schedule_every(200us, [&work] { work(); });
      for (const auto end = Clock::now() + 2s; Clock::now() < end;)
        timers.schedule_after(1h, [] {}).cancel();
      static_cast<void>(timers.stop());
      EXPECT_LT(work.most, 300ms) << "the timer thread has spun";
    }
    ::sched_setaffinity(0, sizeof before, &before);
    if (refused != 0)
      GTEST_SKIP() << "SCHED_FIFO is refused; it needs CAP_SYS_NICE, or RLIMIT_RTPRIO of 1";
  }
}

// A clock that, when told to, lets a call of now() wait until the test lets it go on.
class SlowClock : public TimerClock {
 public:
  SteadyTime now() noexcept override {
    if (slow && std::this_thread::get_id() == slow_for) {
      entered = true;
      wait_for([this] { return go_on.load(); });
    }
    return machine_->now();
  }
  WallTime wall_now() noexcept override { return machine_->wall_now(); }
  std::unique_ptr<TimerAlarm> make_alarm() override { return machine_->make_alarm(); }

  std::atomic<bool> slow{false};
  std::atomic<bool> entered{false};
  std::atomic<bool> go_on{false};
  std::thread::id slow_for;

 private:
  std::shared_ptr<TimerClock> machine_ = machine_clock();
};

class SlowClocks : public ::testing::Test {
 protected:
  // Moves `handle` on another thread, which is inside the clock when this returns.
  void start_to_move(TimerHandle handle) {
    std::latch begun(1);
    moving_ = std::jthread([&, handle]() mutable {
      clock_->slow_for = std::this_thread::get_id();
      clock_->slow = true;
      begun.count_down();
      moved_ = handle.reschedule_after(2h);
    });
    begun.wait();
    EXPECT_TRUE(wait_for([&] { return clock_->entered.load(); }));
  }
  void finish_to_move() {
    EXPECT_TRUE(clock_->slow) << "the clock was asked and has answered";
    clock_->go_on = true;
    moving_.join();
  }

  std::shared_ptr<SlowClock> clock_ = std::make_shared<SlowClock>();
  std::optional<TimerService> timers_{std::in_place, TimerOptions{.clock = clock_}};
  std::jthread moving_;
  bool moved_ = false;
};

TEST_F(SlowClocks, CancelDoesNotWaitForAMoveThatAsksTheClock) {
  TimerHandle handle = timers_->schedule_after(1h, [] {});
  start_to_move(handle);
  const auto before = Clock::now();
  EXPECT_TRUE(handle.cancel());
  EXPECT_LT(Clock::now() - before, 10s) << "it has waited until the clock gave up";
  finish_to_move();
  EXPECT_FALSE(moved_) << "the timer was cancelled before";
}

TEST_F(SlowClocks, TheServiceMayBeDestroyedWhileAMoveAsksTheClock) {
  TimerHandle handle = timers_->schedule_after(1h, [] {});
  start_to_move(handle);
  const auto before = Clock::now();
  timers_.reset();
  EXPECT_LT(Clock::now() - before, 10s) << "it has waited until the clock gave up";
  finish_to_move();
  EXPECT_FALSE(moved_);
}

TEST_F(SlowClocks, TheMoveStillCounts) {
  TimerHandle handle = timers_->schedule_after(1h, [] {});
  start_to_move(handle);
  EXPECT_EQ(handle.state(), TimerState::kPending);
  finish_to_move();
  EXPECT_TRUE(moved_);
  const std::vector<Unprocessed> rest = timers_->stop();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_GT(rest[0].due, Clock::now().time_since_epoch() + 90min);
}

}  // namespace
}  // namespace carillon::testing
