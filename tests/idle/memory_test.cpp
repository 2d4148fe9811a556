// Memory of an IdleTracker: nothing is allocated after reserve(), a connection takes at most forty
// bytes, and none are kept for connections that are gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <random>
#include <vector>

#include "carillon/idle/idle_tracker.h"

namespace {

std::size_t calls = 0;
std::size_t allowed_calls = std::numeric_limits<std::size_t>::max();

void* allocate(std::size_t size, std::size_t alignment) {
  if (allowed_calls == 0) throw std::bad_alloc();
  if (allowed_calls != std::numeric_limits<std::size_t>::max()) --allowed_calls;
  ++calls;
  alignment = std::max(alignment, alignof(std::max_align_t));
  void* const memory =
      std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Not inlined. Otherwise the compiler, where it does not inline operator new, warns that free()
// does not match it.
[[gnu::noinline]] void deallocate(void* memory) noexcept {
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
// Sanitizers have their own array forms, which would not call the functions above.
void* operator new[](std::size_t size) {
  return allocate(size, 1);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  deallocate(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  deallocate(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  deallocate(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  deallocate(memory);
}
void operator delete[](void* memory) noexcept {
  deallocate(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  deallocate(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  deallocate(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  deallocate(memory);
}

namespace carillon::testing {
namespace {

TEST(IdleTrackerMemory, AfterReserveNothingAllocates) {
  constexpr std::size_t kConnections = 20'000;
  IdleTracker<std::uint64_t> tracker(Ticks{300}, 77);
  tracker.reserve(kConnections, {Ticks{40}, Ticks{5000}, Ticks{100'000}});
  const Ticks timeouts[] = {Ticks{300}, Ticks{40}, Ticks{5000}, Ticks{100'000}};
  std::mt19937_64 random(7);
  std::vector<IdleId> ids;
  const std::size_t ids_room = 2 * kConnections;
  ids.reserve(ids_room);
  const std::size_t before = calls;
  for (int round = 0; round < 300; ++round) {
    while (tracker.size() < kConnections) {
      const IdleId id = tracker.add(random(), timeouts[random() % 4]);
      if (ids.size() < ids_room) ids.push_back(id);
      ids[random() % ids.size()] = id;
    }
    for (int i = 0; i < 5000; ++i) {
      const IdleId id = ids[random() % ids.size()];
      switch (random() % 8) {
        case 0:
          tracker.remove(id);
          break;
        case 1:
          tracker.set_timeout(id, timeouts[random() % 4]);
          break;
        default:
          tracker.touch(id);
      }
    }
    if (round % 10 == 0) tracker.scale_timeouts(static_cast<double>(1 + random() % 8) / 8);
    tracker.advance(
        tracker.now() + random() % 200, [](IdleId, std::uint64_t) {},
        round % 2 == 0 ? kNoLimit : 50);
  }
  EXPECT_EQ(calls, before);
  tracker.check_invariants();
}

TEST(IdleTrackerMemory, AConnectionCostsAtMostFortyBytesAndItsKey) {
  for (const std::size_t connections : {100'000U, 1'000'000U}) {
    IdleTracker<std::uint64_t> tracker(Ticks{30'000});
    tracker.reserve(connections);
    for (std::size_t key = 0; key < connections; ++key) tracker.add(key);
    const double each = static_cast<double>(sizeof(tracker) + tracker.allocated_bytes()) /
                        static_cast<double>(connections);
    EXPECT_LE(each - sizeof(std::uint64_t), 40.0) << connections;
  }
}

// brpc#3384: 100 000 connections a second, removed long before their time-out.
TEST(IdleTrackerMemory, RemovedConnectionsKeepNoMemory) {
  IdleTracker<std::uint64_t> tracker(Ticks{300'000});
  tracker.add(1);
  tracker.remove(tracker.add(2, Ticks{600'000}));
  const std::size_t before = tracker.allocated_bytes();
  for (Tick now = 1; now <= 10'000; ++now) {
    tracker.advance(now, [](IdleId, std::uint64_t) {});
    IdleId ids[100];
    for (std::size_t i = 0; i < 100; ++i)
      ids[i] = tracker.add(i, Ticks{i % 2 == 0 ? 300'000 : 600'000});
    for (const IdleId id : ids) tracker.remove(id);
  }
  EXPECT_EQ(tracker.allocated_bytes(), before);
}

TEST(IdleTrackerMemory, ATimeOutThatIsChangedToAndFroKeepsNoMemory) {
  IdleTracker<std::uint64_t> tracker(Ticks{300'000});
  const IdleId id = tracker.add(1);
  tracker.set_timeout(id, Ticks{3000});
  const std::size_t before = tracker.allocated_bytes();
  for (Tick now = 1; now <= 200'000; ++now) {
    if (now % 1000 == 0) tracker.advance(now, [](IdleId, std::uint64_t) { FAIL(); });
    tracker.set_timeout(id, Ticks{300'000});
    tracker.touch(id);
    tracker.set_timeout(id, Ticks{3000});
  }
  EXPECT_EQ(tracker.allocated_bytes(), before);
}

TEST(IdleTrackerMemory, AnAddThatGetsNoMemoryChangesNothing) {
  for (std::size_t allowed = 0;; ++allowed) {
    IdleTracker<std::uint64_t> tracker(Ticks{30});
    bool refused = false;
    allowed_calls = allowed;
    try {
      tracker.add(1);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    allowed_calls = std::numeric_limits<std::size_t>::max();
    tracker.check_invariants();
    if (!refused) break;
    ASSERT_TRUE(tracker.empty());
    ASSERT_LT(allowed, 1000U);
    tracker.add(2);
    EXPECT_EQ(tracker.advance(31, [](IdleId, std::uint64_t key) { EXPECT_EQ(key, 2U); }), 1U);
  }
}

}  // namespace
}  // namespace carillon::testing
