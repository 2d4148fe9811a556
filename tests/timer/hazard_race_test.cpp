// Hazards that are races, run many times on real threads. The tests count the outcomes of each
// timer, of which there must be exactly one. Races of stopping and handing over are in
// hazard_race_closing_test.cpp.
//
// CARILLON_TRIALS=100 runs a hundred times as many trials. The preset tsan runs them under the
// thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/timer_service.h"
#include "timer/hazard_race.h"
#include "timer/outcomes.h"
#include "timer/trials.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

INSTANTIATE_TEST_SUITE_P(Executors, HazardRace, ::testing::Values(0U, 2U),
                         [](const auto& parameter) {
                           return parameter.param == 0 ? "TimerThread" : "Pool";
                         });

TEST_P(HazardRace, H1_CancelVersusFire_ExactlyOneWinner) {
  const std::size_t timers = trials(20'000);
  for (const std::uint64_t seed : seeds(1)) {
    SCOPED_TRACE(replay_with(seed));
    Outcomes outcomes(timers);
    Mailboxes handles(timers);
    {
      TimerService service(fine(executor()));
      std::thread canceller([&] {
        for (std::size_t i = 0; i < timers; ++i) {
          TimerHandle handle = handles.wait_for(i);
          if (i % 3 == 0 ? handle.cancel_and_wait() : handle.cancel()) outcomes.cancelled(i);
        }
      });
      std::mt19937_64 random(seed);
      for (std::size_t i = 0; i < timers; ++i) {
        handles.put(i, service.schedule_after(nanoseconds(random() % 20'000),
                                              [&outcomes, i] { outcomes.fired(i); }));
      }
      canceller.join();
      EXPECT_TRUE(service.drain().empty());
      const TimerStats stats = service.stats();
      EXPECT_EQ(stats.scheduled, timers);
      EXPECT_EQ(stats.fired, outcomes.fired());
      EXPECT_EQ(stats.cancelled, outcomes.cancelled());
      EXPECT_EQ(stats.pending, 0U);
    }
    outcomes.expect_one_each();
    RecordProperty("fired", static_cast<int>(outcomes.fired()));
    RecordProperty("cancelled", static_cast<int>(outcomes.cancelled()));
  }
}

// One shard for all threads, so that most find its door taken and leave notes.
TEST_P(HazardRace, H2_CancelVersusATimerOnItsWayFromANoteToTheWheel) {
  constexpr std::size_t kThreads = 4;
  const std::size_t each = trials(5'000);
  Outcomes outcomes(kThreads * each);
  {
    TimerService service(fine(executor()));
    std::vector<std::unique_ptr<Mailboxes>> handles;
    for (std::size_t thread = 0; thread < kThreads; ++thread)
      handles.push_back(std::make_unique<Mailboxes>(each));
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t i = 0; i < each; ++i) {
          const std::size_t number = thread * each + i;
          TimerHandle handle = service.schedule_after(
              i % 2 == 0 ? 1h : nanoseconds(3us), [&outcomes, number] { outcomes.fired(number); });
          handles[thread]->put(i, handle);
          if (i % 4 == 0 && handle.cancel()) outcomes.cancelled(number);
        }
      });
      threads.emplace_back([&, thread] {
        for (std::size_t i = 0; i < each; ++i) {
          if (handles[thread]->wait_for(i).cancel()) outcomes.cancelled(thread * each + i);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(service.drain().empty());
    EXPECT_EQ(service.stats().scheduled, outcomes.fired() + outcomes.cancelled());
  }
  outcomes.expect_one_each();
}

// A lost wake-up would leave the timer thread asleep for an hour, and this test hanging.
TEST(HazardRaces, H3_SleepVersusPush_NoWakeupIsLost) {
  TimerService service({.tick = 1us});
  service.schedule_after(1h, [] {});
  for (std::size_t i = 0; i < trials(3'000); ++i) {
    std::atomic<bool> fired{false};
    service.schedule_after(microseconds(i % 30), [&] {
      fired = true;
      fired.notify_one();
    });
    fired.wait(false);
    // Now the timer thread is about to sleep again.
  }
}

TEST(HazardRaces, H3_SleepVersusPush_FromSeveralThreadsAndEarlierEachTime) {
  TimerService service({.tick = 1us, .shards = 4});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < trials(1'000); ++i) {
        std::atomic<int> fired{0};
        TimerHandle moved = service.schedule_after(1h, [&] { ++fired; });
        service.schedule_after(30us, [&] { ++fired; });
        service.schedule_after(10us, [&] { ++fired; });
        EXPECT_TRUE(moved.reschedule_after(5us));
        while (fired.load() < 3) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The memory of a timer that has ended is used for another timer at once. Code that still touched
// the old timer would corrupt the new one.
TEST_P(HazardRace, H9_NothingTouchesATimerThatIsOver) {
  TimerService service(fine(executor(), 2));
  std::vector<std::thread> threads;
  std::atomic<std::size_t> wrong{0};
  std::atomic<std::size_t> outcomes{0};
  const std::size_t each = trials(5'000);
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (std::size_t i = 0; i < each; ++i) {
        const std::uint64_t cookie = random();
        TimerHandle handle =
            service.schedule_after(nanoseconds(cookie % 4'000), [&, cookie, copy = ~cookie] {
              if (copy != ~cookie) ++wrong;
              ++outcomes;
            });
        if (cookie % 3 == 0) handle.reschedule_after(nanoseconds(cookie % 2'000));
        if (cookie % 2 == 0 && handle.cancel_and_wait()) ++outcomes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(service.drain().empty());
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(outcomes, 3 * each);
}

TEST_P(HazardRace, H11_ExtendVersusFire_ATimerMovedToLaterNeverFiresBefore) {
  const std::size_t timers = trials(10'000);
  std::vector<std::atomic<std::int64_t>> not_before(timers);
  std::vector<std::atomic<std::int64_t>> fired_at(timers);
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  Mailboxes handles(timers);
  std::size_t extended = 0;
  {
    TimerService service(fine(executor()));
    std::thread extender([&] {
      for (std::size_t i = 0; i < timers; ++i) {
        TimerHandle handle = handles.wait_for(i);
        const auto later = std::chrono::steady_clock::now() + 300us;
        if (!handle.reschedule_at(later)) continue;
        not_before[i] = later.time_since_epoch().count();
        ++extended;
      }
    });
    for (std::size_t i = 0; i < timers; ++i) {
      handles.put(i,
                  service.schedule_after(nanoseconds(i % 10'000), [&, i] { fired_at[i] = now(); }));
    }
    extender.join();
    EXPECT_TRUE(service.drain().empty());
  }
  std::size_t early = 0;
  for (std::size_t i = 0; i < timers; ++i) {
    EXPECT_NE(fired_at[i], 0);
    early += fired_at[i] < not_before[i] ? 1U : 0U;
  }
  EXPECT_EQ(early, 0U) << "of " << extended << " that were moved";
}

TEST_P(HazardRace, H11_MovesFromSeveralThreadsEndInOneFiring) {
  for (std::size_t trial = 0; trial < trials(300); ++trial) {
    TimerService service(fine(executor()));
    std::atomic<int> fired{0};
    TimerHandle handle = service.schedule_after(50us, [&] { ++fired; });
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        TimerHandle mine = handle;
        for (int i = 0; i < 50; ++i)
          mine.reschedule_after(nanoseconds((i * 7 + thread * 13) % 40 * 1'000));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(service.drain().empty());
    ASSERT_EQ(fired, 1);
  }
}

TEST_P(HazardRace, H12_ThePendingCountIsConserved) {
  constexpr std::size_t kMost = 64;
  TimerOptions options = fine(executor());
  options.max_pending = kMost;
  TimerService service(std::move(options));
  std::atomic<std::size_t> accepted{0};
  std::atomic<std::size_t> refused{0};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (std::size_t i = 0; i < trials(5'000); ++i) {
        try {
          TimerHandle handle = service.schedule_after(nanoseconds(random() % 30'000), [] {});
          ++accepted;
          if (random() % 2 == 0) handle.cancel();
        } catch (const TooManyTimers&) {
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // A timer that a note carries is counted when the note is read.
  while (service.stats().scheduled < accepted || service.pending() > 0) std::this_thread::yield();
  std::vector<TimerHandle> full;
  for (std::size_t i = 0; i < kMost; ++i) full.push_back(service.schedule_after(1h, [] {}));
  EXPECT_THROW(service.schedule_after(1h, [] {}), TooManyTimers) << "none was counted down twice";
  for (TimerHandle handle : full) EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(service.stats().scheduled, accepted + kMost);
  EXPECT_EQ(service.stats().rejected, refused + 1);
}

}  // namespace
}  // namespace carillon::testing
