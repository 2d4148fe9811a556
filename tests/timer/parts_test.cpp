// The small parts of the timer service, each tested alone, and bounds on its memory and wake-ups.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/detail/door.h"
#include "carillon/timer/detail/sleep_gate.h"
#include "carillon/timer/detail/tick_scale.h"
#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "timer/allocations.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using detail::kForever;

TEST(TickScale, AgreesWithDivision) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE(replay_with(seed));
    std::mt19937_64 random(seed);
    for (int i = 0; i < 20'000; ++i) {
      const auto any = [&] { return static_cast<std::int64_t>(random() >> 1 >> random() % 63); };
      const std::int64_t tick = std::max<std::int64_t>(any(), 1);
      const std::int64_t ns = any();
      const detail::TickScale scale(tick);
      const Tick zero = scale.at(0);
      const auto whole = static_cast<Tick>(ns / tick);
      const Tick started = whole + (ns % tick != 0 ? 1 : 0);
      ASSERT_EQ(scale.at(ns), zero + whole) << ns << " / " << tick;
      ASSERT_EQ(scale.not_before(ns), zero + started) << ns << " / " << tick;
      ASSERT_EQ(scale.at(-ns), zero - started) << -ns << " / " << tick;
      ASSERT_EQ(scale.not_before(-ns), zero - whole) << -ns << " / " << tick;
      for (const std::int64_t time : {ns, -ns}) {
        ASSERT_LE(scale.begin(scale.at(time)), time);
        ASSERT_GE(scale.begin(scale.not_before(time)), time);
      }
    }
  }
}

TEST(TickScale, TheEndsOfTheRange) {
  for (const std::int64_t tick :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{1'000'000}, kForever}) {
    const detail::TickScale scale(tick);
    EXPECT_EQ(scale.begin(scale.at(0)), 0);
    EXPECT_EQ(scale.at(kForever) - scale.at(0), static_cast<Tick>(kForever / tick));
    EXPECT_EQ(scale.at(0) - scale.not_before(-kForever), static_cast<Tick>(kForever / tick));
    EXPECT_LE(scale.begin(scale.at(-kForever)), -kForever + 1);
    EXPECT_EQ(scale.begin(scale.not_before(kForever)), kForever);
    EXPECT_EQ(scale.begin(std::numeric_limits<Tick>::max()), kForever);
    EXPECT_EQ(std::popcount(scale.at(0)), 1) << "where timers with slack meet";
  }
}

TEST(Durations, ADurationBeyondTheRangeBecomesTheEndOfTheRange) {
  EXPECT_EQ(detail::to_ns(1h), 3'600'000'000'000);
  EXPECT_EQ(detail::to_ns(std::chrono::hours::max()), kForever);
  EXPECT_EQ(detail::to_ns(std::chrono::hours::min()), -kForever);
  EXPECT_EQ(detail::to_ns(std::chrono::nanoseconds::max()), kForever);
  EXPECT_EQ(detail::to_ns(std::chrono::duration<double>(std::numeric_limits<double>::infinity())),
            kForever);
  EXPECT_EQ(detail::to_ns(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())),
            kForever);
  EXPECT_EQ(detail::to_ns(std::chrono::duration<double>(0.5)), 500'000'000);
  EXPECT_EQ(detail::to_ns(std::chrono::duration<int, std::pico>(1)), 1)
      << "rounded up: never early";
  EXPECT_EQ(detail::add_ns(kForever, 1), kForever);
  EXPECT_EQ(detail::add_ns(-kForever, -1), -kForever);
}

TEST(Lateness, EveryValueIsInTheBucketThatEndsAtMostAnEighthAboveIt) {
  std::uint64_t before = 0;
  for (std::size_t bucket = 0; bucket < LatenessHistogram::kBuckets; ++bucket) {
    const std::uint64_t last = LatenessHistogram::last_of(bucket);
    EXPECT_EQ(LatenessHistogram::bucket_of(last), bucket);
    if (bucket > 0) {
      EXPECT_EQ(LatenessHistogram::bucket_of(before + 1), bucket);
      EXPECT_LE(last - before, before / 8 + 1);
    }
    before = last;
    if (last > std::uint64_t{1} << 62) break;
  }
  LatenessHistogram histogram;
  EXPECT_EQ(histogram.percentile(0.5), 0ns);
  for (std::uint64_t value = 1; value <= 1000; ++value)
    histogram.add(LatenessHistogram::bucket_of(value), 1);
  EXPECT_EQ(histogram.count(), 1000U);
  EXPECT_GE(histogram.percentile(0.5), 500ns);
  EXPECT_LE(histogram.percentile(0.5), 563ns);
  EXPECT_GE(histogram.percentile(1.0), 1000ns);
}

TEST(Tasks, SmallOnesAreStoredInsideLargeOnesOnTheHeapAndBothMove) {
  int called = 0;
  TimerTask small([&called] { ++called; });
  TimerTask large([&called, big = std::string(100, 'x'), array = std::array<char, 100>{}] {
    called += big[99] + array[0];
  });
  TimerTask moved = std::move(small);
  EXPECT_FALSE(small);  // NOLINT(bugprone-use-after-move): the test is that it is empty
  moved();
  EXPECT_EQ(called, 1);
  moved = std::move(large);
  moved();
  EXPECT_EQ(called, 1 + 'x');
}

TEST(Tasks, AnEmptyFunctionIsRefused) {
  TimerService timers({.clock = std::make_shared<ManualClock>()});
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string empty =
      "carillon: a task is an empty function; it must be one that can be called";
  EXPECT_EQ(message([&] { timers.schedule_after(1s, std::function<void()>()); }), empty);
  EXPECT_EQ(message([&] { timers.schedule_every(1s, static_cast<void (*)()>(nullptr)); }), empty);
  const auto hourly = [](WallTime after) { return std::optional(after + 1h); };
  EXPECT_EQ(message([&] { timers.schedule_by(hourly, std::function<void()>()); }), empty);
  EXPECT_EQ(message([&] { TimerTask(std::function<void()>()); }), empty);
  EXPECT_EQ(message([] { TimerExecutor::by(nullptr); }),
            "carillon: TimerExecutor::by() was given an empty function; give it one that takes a "
            "DueTask, or make it TimerExecutor::timer_thread()");
  EXPECT_EQ(timers.pending(), 0U);
}

struct Note {
  Note* next = nullptr;
  int number = 0;
};

TEST(Door, NotesAreHandedOverOldestFirstAndNobodyLeavesWithoutReadingThem) {
  using detail::Admission;
  detail::Door<Note> door;
  Note notes[4];
  EXPECT_EQ(door.enter_or_post(notes[0]), Admission::kEntered);
  EXPECT_EQ(door.take_notes(), nullptr);
  EXPECT_EQ(door.enter_or_post(notes[1]), Admission::kPosted);
  EXPECT_EQ(door.enter_or_post(notes[2]), Admission::kPosted);
  EXPECT_EQ(door.take_notes(), &notes[1]);
  EXPECT_EQ(notes[1].next, &notes[2]);
  EXPECT_EQ(door.enter_or_post(notes[3]), Admission::kPosted);
  EXPECT_EQ(door.leave(), &notes[3]) << "still inside";
  EXPECT_EQ(door.leave(), nullptr);
  EXPECT_EQ(door.enter_or_post(notes[0]), Admission::kEntered);
  EXPECT_EQ(door.enter_or_post(notes[1]), Admission::kPosted);
  EXPECT_EQ(door.shut(), &notes[1]);
  EXPECT_EQ(door.shut(), nullptr);
  EXPECT_EQ(door.enter_or_post(notes[0]), Admission::kShut);
}

TEST(Door, WithManyThreadsEachNoteIsReadOnceByTheOnlyThreadInside) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20'000;
  detail::Door<Note> door;
  std::vector<std::vector<Note>> notes(kThreads, std::vector<Note>(kEach));
  std::vector<int> order(kThreads, 0);  // only touched inside
  std::size_t handled = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const auto handle = [&](Note& note) {
        ++handled;
        int& last = order[static_cast<std::size_t>(note.number / kEach)];
        ASSERT_EQ(note.number % kEach, last++) << "the notes of one thread keep their order";
      };
      for (int i = 0; i < kEach; ++i) {
        Note& note = notes[static_cast<std::size_t>(thread)][static_cast<std::size_t>(i)];
        note.number = thread * kEach + i;
        if (door.enter_or_post(note) == detail::Admission::kPosted) continue;
        handle(note);
        while (Note* oldest = door.leave()) {
          while (oldest != nullptr) handle(*std::exchange(oldest, oldest->next));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(handled, std::size_t{kThreads} * kEach);
}

TEST(SleepGate, OnlyOneCallerWakesASleeperAndNoneWakesOneThatIsAwake) {
  detail::SleepGate<> gate;
  EXPECT_FALSE(gate.must_wake(5)) << "awake";
  gate.announce(100);
  EXPECT_FALSE(gate.must_wake(100));
  EXPECT_TRUE(gate.must_wake(99));
  EXPECT_FALSE(gate.must_wake(50)) << "somebody has woken it";
  gate.announce(kForever);
  EXPECT_TRUE(gate.must_wake(50));
}

// Schedules a timer in the destructor of one of its thread_local objects.
struct SchedulesAtThreadEnd {
  TimerService* timers = nullptr;
  ~SchedulesAtThreadEnd() {
    if (timers != nullptr) timers->schedule_after(1h, [] {}).cancel();
  }
};
thread_local SchedulesAtThreadEnd at_thread_end;

// Each such thread kept a bundle of 64 blocks; a slab has 512.
TEST(Costs, AThreadThatSchedulesWhileItEndsKeepsNoMemory) {
  TimerService timers({.clock = std::make_shared<ManualClock>()});
  const auto use_a_thread = [&timers] {
    std::thread([&timers] {
      at_thread_end.timers = &timers;  // made before, and so destroyed after what the pool keeps
      // More than a bundle, so that the depot has whole ones when the thread ends.
      std::vector<TimerHandle> handles(128);
      for (TimerHandle& handle : handles) handle = timers.schedule_after(1h, [] {});
      for (const TimerHandle& handle : handles) handle.cancel();
    }).join();
  };
  use_a_thread();
  const std::size_t before = block_slabs;
  for (int i = 0; i < 100; ++i) use_a_thread();
  EXPECT_EQ(block_slabs - before, 0U);
}

// A million timers of 30 s are scheduled, as a busy service has in a second, and all are cancelled
// except the last 100.
TEST(Costs, CancelledTimersKeepNoMemory) {
  const auto clock = std::make_shared<ManualClock>();
  TimerService timers({.clock = clock});
  std::vector<TimerHandle> recent(100);
  for (int i = 0; i < 1'000'000; ++i) {
    TimerHandle& handle = recent[static_cast<std::size_t>(i) % recent.size()];
    handle.cancel();
    handle = timers.schedule_after(30s, [] {});
  }
  EXPECT_EQ(timers.pending(), 100U);
  EXPECT_EQ(timers.stats().cancelled, 1'000'000U - 100);
  EXPECT_LE(timers.stats().wakeups, 10U);
}

TEST(Costs, FarTimersCauseNoWakeups) {
  const auto clock = std::make_shared<ManualClock>();
  TimerService timers({.clock = clock});
  for (int i = 0; i < 100'000; ++i)
    timers.schedule_after(10h + std::chrono::milliseconds(i), [] {});
  clock->settle();
  const std::uint64_t before = timers.stats().wakeups;
  for (int minute = 0; minute < 60; ++minute) clock->advance(1min);
  EXPECT_LE(timers.stats().wakeups, before + 2) << "in an hour";
}

TEST(Costs, AServiceThatHasNothingPendingNeverWakes) {
  const auto clock = std::make_shared<ManualClock>();
  TimerService timers({.clock = clock});
  timers.schedule_after(1s, [] {});
  clock->advance(1s);
  const std::uint64_t before = timers.stats().wakeups;
  clock->advance(24h * 365);
  EXPECT_EQ(timers.stats().wakeups, before);
}

}  // namespace
}  // namespace carillon::testing
