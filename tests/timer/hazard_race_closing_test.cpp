// Races of stopping, destroying and handing over, run many times on real threads. Outcomes are
// counted as in hazard_race_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/timer_service.h"
#include "timer/hazard_race.h"
#include "timer/outcomes.h"
#include "timer/trials.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

void run_all(std::vector<Unprocessed> rest) {
  for (Unprocessed& timer : rest) timer.task();
}

TEST_P(HazardRace, H6_SubmitVersusStop_RefusedOrReturnedNeverSwallowed) {
  constexpr std::size_t kThreads = 3;
  constexpr std::size_t kEach = 200;
  for (std::size_t trial = 0; trial < trials(60); ++trial) {
    Outcomes outcomes(kThreads * kEach);
    auto service = std::make_unique<TimerService>(fine(executor(), trial % 2 == 0 ? 1 : 4));
    std::atomic<std::size_t> scheduled{0};
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t i = 0; i < kEach; ++i) {
          const std::size_t number = thread * kEach + i;
          try {
            TimerHandle handle = service->schedule_after(
                i % 2 == 0 ? 1h : nanoseconds(0), [&outcomes, number] { outcomes.fired(number); });
            if (i % 5 == 0 && handle.cancel()) outcomes.cancelled(number);
            if (i % 7 == 0) handle.reschedule_after(i % 2 == 0 ? 30min : nanoseconds(5us));
          } catch (const TimersStopped&) {
            outcomes.refused(number);
          }
          ++scheduled;
        }
      });
    }
    while (scheduled < kThreads * kEach * (trial % 10) / 10) std::this_thread::yield();
    std::vector<Unprocessed> rest = service->stop();
    for (std::thread& thread : threads) thread.join();
    const TimerStats stats = service->stats();
    EXPECT_EQ(stats.returned, rest.size());
    EXPECT_EQ(stats.pending, 0U);
    EXPECT_EQ(stats.rejected, outcomes.refused());
    run_all(std::move(rest));  // a returned task that is run here is its timer's one outcome
    outcomes.expect_one_each();
    ASSERT_FALSE(HasFailure()) << "in trial " << trial;
  }
}

// Handles may be used while their service is being destroyed, and after.
TEST_P(HazardRace, H6_HandlesVersusDestruction) {
  for (std::size_t trial = 0; trial < trials(100); ++trial) {
    constexpr std::size_t kTimers = 200;
    Outcomes outcomes(kTimers);
    struct CountsReturned {
      Outcomes* outcomes;
      std::size_t number;
      bool done = false;
      CountsReturned(Outcomes& all, std::size_t timer) : outcomes(&all), number(timer) {}
      CountsReturned(CountsReturned&& from) noexcept
          : outcomes(std::exchange(from.outcomes, nullptr)), number(from.number), done(from.done) {}
      ~CountsReturned() {
        // Counts cancelled timers, too: the canceller counts those separately.
        if (outcomes != nullptr && !done) outcomes->returned(number);
      }
      void operator()() {
        done = true;
        outcomes->fired(number);
      }
    };
    std::atomic<std::size_t> cancelled{0};
    {
      auto service = std::make_unique<TimerService>(fine(executor(), 2));
      std::vector<TimerHandle> handles;
      for (std::size_t i = 0; i < kTimers; ++i) {
        handles.push_back(service->schedule_after(i % 3 == 0 ? nanoseconds(20us) : 1h,
                                                  CountsReturned(outcomes, i)));
      }
      std::vector<std::thread> threads;
      for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&, thread, handles]() mutable {
          for (std::size_t i = 0; i < kTimers; ++i) {
            TimerHandle& handle = handles[thread == 0 ? i : kTimers - 1 - i];
            handle.reschedule_after(nanoseconds(50us));
            if (handle.cancel()) ++cancelled;
          }
        });
      }
      service.reset();
      for (std::thread& thread : threads) thread.join();
      for (TimerHandle handle : handles) EXPECT_EQ(handle.state(), TimerState::kOver);
    }
    outcomes.expect_one_each();
    EXPECT_GE(outcomes.returned(), cancelled.load());
    ASSERT_FALSE(HasFailure()) << "in trial " << trial;
  }
}

TEST_P(HazardRace, H14_DestroyedInsideATaskWhileOthersCancel) {
  for (std::size_t trial = 0; trial < trials(100); ++trial) {
    auto service = std::make_unique<TimerService>(fine(executor(), 2));
    std::vector<TimerHandle> handles;
    for (int i = 0; i < 50; ++i) handles.push_back(service->schedule_after(1h, [] {}));
    std::atomic<bool> gone{false};
    TimerService* raw = service.get();
    raw->schedule_after(nanoseconds(10us), [&] {
      service.reset();
      gone = true;
    });
    for (TimerHandle& handle : handles) handle.cancel();
    while (!gone) std::this_thread::yield();
  }
}

TEST(HazardRaces, H15_CancelVersusTheHandOverToAnExecutor) {
  const std::size_t timers = trials(10'000);
  Outcomes outcomes(timers);
  Mailboxes handles(timers);
  std::mutex mutex;
  std::vector<DueTask> queue;
  std::atomic<bool> ended{false};
  std::thread runner([&] {
    for (;;) {
      const bool last = ended;
      std::vector<DueTask> tasks;
      {
        const std::lock_guard lock(mutex);
        tasks.swap(queue);
      }
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (i % 10 != 9) tasks[i]();  // the others are dropped
      }
      if (last && tasks.empty()) return;
      if (tasks.empty()) std::this_thread::yield();
    }
  });
  std::size_t dropped = 0;
  {
    TimerService service(fine(TimerExecutor::by([&](DueTask task) {
      const std::lock_guard lock(mutex);
      queue.push_back(std::move(task));
    })));
    std::thread canceller([&] {
      for (std::size_t i = 0; i < timers; ++i) {
        if (handles.wait_for(i).cancel()) outcomes.cancelled(i);
      }
    });
    for (std::size_t i = 0; i < timers; ++i) {
      handles.put(
          i, service.schedule_after(nanoseconds(i % 5'000), [&outcomes, i] { outcomes.fired(i); }));
    }
    canceller.join();
    EXPECT_TRUE(service.drain().empty());
    ended = true;
    runner.join();
    const TimerStats stats = service.stats();
    EXPECT_EQ(stats.fired, outcomes.fired());
    EXPECT_EQ(stats.fired + stats.cancelled, timers);
    dropped = stats.cancelled - outcomes.cancelled();
  }
  EXPECT_EQ(outcomes.fired() + outcomes.cancelled() + dropped, timers);
}

}  // namespace
}  // namespace carillon::testing
