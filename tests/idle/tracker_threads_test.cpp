// Touches from other threads than the owner's: no connection with packets is found, while others
// come and go. For the thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "carillon/idle/idle_tracker.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

std::uint64_t as_word(IdleId id) {
  return std::uint64_t{id.index} << 32 | id.generation;
}
IdleId as_id(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
}

// The owner advances only when each toucher has touched all its connections since the last advance:
// so each of them has had a packet in every tick.
TEST(IdleTrackerThreads, AConnectionTouchedInEveryTickIsNeverFound) {
  constexpr int kThreads = 3;
  constexpr int kEach = 200;
  constexpr Tick kTicks = 300;
  IdleTracker<int> tracker(Ticks{2});
  std::vector<IdleId> ids;
  for (int key = 0; key < kThreads * kEach; ++key) ids.push_back(tracker.add(key));
  for (int key = 0; key < 1000; ++key) tracker.add(-1);
  std::atomic<Tick> tick{0};
  std::vector<std::atomic<Tick>> through(kThreads);
  std::vector<std::thread> touchers;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    touchers.emplace_back([&, thread] {
      for (Tick now = 0; now < kTicks;) {
        now = tick.load(std::memory_order_acquire);
        for (std::size_t i = 0; i < kEach; ++i) tracker.touch(ids[thread * kEach + i]);
        through[thread].store(now + 1, std::memory_order_release);
      }
    });
  }
  int silent_found = 0;
  for (Tick now = 1; now <= kTicks; ++now) {
    for (auto& done : through) {
      while (done.load(std::memory_order_acquire) < now) std::this_thread::yield();
    }
    tracker.advance(now, [&](IdleId, int key) {
      EXPECT_EQ(key, -1) << "found at " << now;
      ++silent_found;
    });
    tick.store(now, std::memory_order_release);
  }
  for (auto& toucher : touchers) toucher.join();
  EXPECT_EQ(silent_found, 1000);
  EXPECT_EQ(tracker.size(), static_cast<std::size_t>(kThreads * kEach));
}

// Touchers use ids while the owner removes and adds connections, more than fit on the first page.
TEST(IdleTrackerThreads, TouchesRaceAddRemoveAndAdvanceWithoutHarm) {
  for (const std::uint64_t seed : seeds(2)) {
    SCOPED_TRACE(replay_with(seed));
    constexpr std::size_t kShown = 64;
    IdleTracker<std::size_t> tracker(Ticks{5});
    // Ids, some of them of connections that are gone.
    std::vector<std::atomic<std::uint64_t>> shown(kShown);
    std::atomic<bool> stop{false};
    std::vector<std::thread> touchers;
    for (std::uint64_t thread = 0; thread < 3; ++thread) {
      touchers.emplace_back([&, thread] {
        std::mt19937_64 random(seed + thread);
        while (!stop.load(std::memory_order_relaxed))
          tracker.touch(as_id(shown[random() % kShown].load(std::memory_order_acquire)));
      });
    }
    std::mt19937_64 random(seed);
    std::size_t added = 0, removed = 0, found = 0;
    for (Tick now = 1; now <= 400; ++now) {
      for (int i = 0; i < 100; ++i) {
        const IdleId id = tracker.add(added++, Ticks{1 + random() % 1000});
        auto& entry = shown[random() % kShown];
        if (random() % 2 == 0 && tracker.remove(as_id(entry.load()))) ++removed;
        if (random() % 4 != 0) entry.store(as_word(id), std::memory_order_release);
      }
      found += tracker.advance(now, [](IdleId, std::size_t) {});
      ASSERT_EQ(tracker.size(), added - removed - found);
    }
    tracker.check_invariants();
    stop = true;
    for (auto& toucher : touchers) toucher.join();
    found += tracker.advance(10'000, [](IdleId, std::size_t) {});
    // The connections that got another time-out because of a late touch.
    found += tracker.advance(20'000, [](IdleId, std::size_t) {});
    EXPECT_EQ(added, removed + found) << "each connection ends exactly once: removed or found";
  }
}

// Three threads close connections while the owner adds others and finds idle ones. Each connection
// ends exactly once, and its key is destroyed exactly once, by whoever ended it.
TEST(IdleTrackerThreads, AConnectionEndsOnceRemovedByAnyThreadOrFoundByTheOwner) {
  for (const std::uint64_t seed : seeds(3)) {
    SCOPED_TRACE(replay_with(seed));
    constexpr std::size_t kShown = 64;
    const auto key = std::make_shared<int>(1);
    std::atomic<long> removed{0};
    long added = 0, found = 0;
    {
      IdleTracker<std::shared_ptr<int>> tracker(Ticks{3}, 0, MostConnections{5000});
      std::vector<std::atomic<std::uint64_t>> shown(kShown);
      std::atomic<bool> stop{false};
      std::vector<std::thread> removers;
      for (std::uint64_t thread = 0; thread < 3; ++thread) {
        removers.emplace_back([&, thread] {
          std::mt19937_64 random(seed + 1 + thread);
          while (!stop.load(std::memory_order_relaxed)) {
            const IdleId id = as_id(shown[random() % kShown].load(std::memory_order_acquire));
            if (random() % 2 == 0) tracker.touch(id);
            if (tracker.remove(id)) ++removed;
          }
        });
      }
      std::mt19937_64 random(seed);
      for (Tick now = 1; now <= 400; ++now) {
        for (int i = 0; i < 50; ++i, ++added) {
          const IdleId id = tracker.add(key, Ticks{1 + random() % 8});
          shown[random() % kShown].store(as_word(id), std::memory_order_release);
        }
        tracker.advance(
            now, [&](IdleId, std::shared_ptr<int>&&) { ++found; },
            random() % 2 == 0 ? kNoLimit : 20);
        if (now % 8 == 0) std::this_thread::yield();
      }
      stop = true;
      for (auto& remover : removers) remover.join();
      tracker.check_invariants();
      EXPECT_EQ(static_cast<long>(tracker.size()), added - removed - found);
      EXPECT_EQ(key.use_count(), 1 + added - removed - found);
      for (Tick now = 401; now <= 420; ++now)
        tracker.advance(now, [&](IdleId, std::shared_ptr<int>&&) { ++found; });
      EXPECT_EQ(tracker.size(), 0U);
      tracker.check_invariants();
    }
    EXPECT_EQ(added, removed + found);
    EXPECT_EQ(key.use_count(), 1);
  }
}

TEST(IdleTrackerThreads, IfManyThreadsRemoveAConnectionExactlyOneSucceeds) {
  IdleTracker<int> tracker(Ticks{1'000'000});
  for (int round = 0; round < 300; ++round) {
    const IdleId id = tracker.add(round);
    std::atomic<int> told{0};
    std::vector<std::thread> removers;
    for (int thread = 0; thread < 3; ++thread)
      removers.emplace_back([&] { told += tracker.remove(id) ? 1 : 0; });
    for (auto& remover : removers) remover.join();
    ASSERT_EQ(told, 1);
    ASSERT_EQ(tracker.size(), 0U);
    ASSERT_FALSE(tracker.contains(id));
  }
  tracker.check_invariants();
}

}  // namespace
}  // namespace carillon::testing
