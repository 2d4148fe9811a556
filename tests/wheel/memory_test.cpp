// Memory: the memory of a wheel is bounded by its live timers and is given back, and an allocation
// may fail at any moment without harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_pool.h"
#include "carillon/wheel/timer_set.h"
#include "wheel/allocations.h"
#include "wheel/four_timers.h"
#include "wheel/model_test.h"

namespace carillon::testing {
namespace {

std::size_t calls = 0;
std::size_t bytes = 0;
std::size_t allowed_calls = std::numeric_limits<std::size_t>::max();

// Stored just before the address that the caller gets: the start of the block from malloc, and the
// size that was asked for.
struct Header {
  void* block;
  std::size_t size;
};

void* allocate(std::size_t size, std::size_t alignment) {
  if (allowed_calls == 0) throw std::bad_alloc();
  if (allowed_calls != std::numeric_limits<std::size_t>::max()) --allowed_calls;
  alignment = std::max(alignment, alignof(std::max_align_t));
  std::size_t space = size + alignment + sizeof(Header);
  void* const block = std::malloc(space);
  if (block == nullptr) throw std::bad_alloc();
  void* user = static_cast<char*>(block) + sizeof(Header);
  space -= sizeof(Header);
  std::align(alignment, size, user, space);
  new (static_cast<char*>(user) - sizeof(Header)) Header{block, size};
  ++calls;
  bytes += size;
  return user;
}

void deallocate(void* user) noexcept {
  if (user == nullptr) return;
  const Header header =
      *std::launder(reinterpret_cast<Header*>(static_cast<char*>(user) - sizeof(Header)));
  bytes -= header.size;
  std::free(header.block);
}

}  // namespace

std::size_t allocations() {
  return calls;
}
std::size_t allocated_bytes() {
  return bytes;
}
FailingAllocations::FailingAllocations(std::size_t allowed) {
  allowed_calls = allowed;
}
FailingAllocations::~FailingAllocations() {
  allowed_calls = std::numeric_limits<std::size_t>::max();
}

}  // namespace carillon::testing

void* operator new(std::size_t size) {
  return carillon::testing::allocate(size, 0);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return carillon::testing::allocate(size, static_cast<std::size_t>(alignment));
}
// Sanitizers bring array forms of their own, which would not call the two above.
void* operator new[](std::size_t size) {
  return carillon::testing::allocate(size, 0);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return carillon::testing::allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete[](void* user) noexcept {
  carillon::testing::deallocate(user);
}
void operator delete[](void* user, std::size_t) noexcept {
  carillon::testing::deallocate(user);
}
void operator delete[](void* user, std::align_val_t) noexcept {
  carillon::testing::deallocate(user);
}
void operator delete[](void* user, std::size_t, std::align_val_t) noexcept {
  carillon::testing::deallocate(user);
}
void operator delete(void* user) noexcept {
  carillon::testing::deallocate(user);
}
void operator delete(void* user, std::size_t) noexcept {
  carillon::testing::deallocate(user);
}
void operator delete(void* user, std::align_val_t) noexcept {
  carillon::testing::deallocate(user);
}
void operator delete(void* user, std::size_t, std::align_val_t) noexcept {
  carillon::testing::deallocate(user);
}

namespace carillon::testing {
namespace {

void ignore(TimerNode&) {}

class Memory : public FourTimers {};

MODEL_TEST(Memory, TimersThatNeverFireKeepNone) {  // brpc#3384, netty#2541
  if (refuses(30'000)) return;
  // A tick is a millisecond: a million schedules and cancels per second of timers of 30 s, with a
  // hundred alive at a time.
  std::vector<TimerNode> alive(100);
  auto wheel = std::make_unique<ModelUnderTest>();
  const std::size_t before = allocated_bytes();
  std::size_t peak = 0;
  for (Tick now = 0; now < 2000; ++now) {
    wheel->advance(now, ignore);
    for (int i = 0; i < 1000; ++i) {
      TimerNode& timer = alive[static_cast<std::size_t>(i) % alive.size()];
      wheel->cancel(timer);
      wheel->schedule(timer, now + 30'000);
    }
    peak = std::max(peak, allocated_bytes() - before);
  }
  wheel->check_invariants();
  EXPECT_LE(peak, std::size_t{256} * 1024);
}

MODEL_TEST(Memory, ReArmsToAnEarlierTickKeepNone) {
  if (refuses(3'000'000)) return;
  TimerNode timer;
  auto wheel = std::make_unique<ModelUnderTest>();
  const std::size_t before = allocated_bytes();
  for (Tick expiry = 3'000'000; expiry > 1'000'000; --expiry) wheel->reschedule(timer, expiry);
  EXPECT_LE(allocated_bytes() - before, std::size_t{256} * 1024);
  wheel->check_invariants();
}

MODEL_TEST(Memory, TimersCancelledBeforeTheyAreDueAlreadyKeepNone) {
  TimerNode timer;
  auto wheel = std::make_unique<ModelUnderTest>(1000);
  const std::size_t before = allocated_bytes();
  for (int i = 0; i < 1'000'000; ++i) {
    wheel->schedule(timer, 5);
    wheel->cancel(timer);
  }
  EXPECT_LE(allocated_bytes() - before, std::size_t{256} * 1024);
  wheel->check_invariants();
}

MODEL_TEST(Memory, NullEntriesAreSweptBeforeTheSlotsGrow) {
  if (refuses(20'000'000)) return;
  std::vector<TimerNode> timers(std::min<std::size_t>(20'000, ModelUnderTest::kind().many));
  auto wheel = std::make_unique<ModelUnderTest>();
  std::mt19937_64 random(7);
  for (TimerNode& timer : timers) wheel->schedule(timer, 1 + random() % 10'000'000);
  const std::size_t full = allocated_bytes();
  for (std::size_t i = 0; i < timers.size(); ++i) {
    if (i % 100 != 0) wheel->cancel(timers[i]);
  }
  EXPECT_EQ(wheel->size(), timers.size() / 100);
  for (Tick expiry = 20'000'000; expiry > 19'000'000; --expiry)
    wheel->reschedule(timers[1], expiry);
  EXPECT_LE(allocated_bytes(), full + std::size_t{128} * 1024)
      << "a million entries found room among those of the cancelled timers";
  wheel->check_invariants();
  wheel->clear(ignore);
  EXPECT_LE(wheel->allocated_bytes(),
            ModelUnderTest::kind().gives_memory_back ? std::size_t{600} * 1024 : full)
      << "an empty wheel keeps eight slabs of 64 KiB";
}

TEST(HierarchicalWheelMemory, MillionsOfCancelsGiveMemoryBackByThemselves) {
  std::vector<TimerNode> timers(4'000'000);
  HierarchicalWheel<> wheel;
  std::mt19937_64 random(7);
  for (TimerNode& timer : timers) wheel.schedule(timer, Moment{1 + random() % 60'000});
  const std::size_t full = wheel.allocated_bytes();
  EXPECT_GE(full, 32'000'000U);
  for (TimerNode& timer : timers) wheel.cancel(timer);
  wheel.check_invariants();
  EXPECT_LE(wheel.allocated_bytes(), full * 2 / 3);
}

MODEL_TEST(Memory, APendingTimerCostsAtMostWhatTheHeaderSays) {
  std::vector<TimerNode> timers(ModelUnderTest::kind().many);
  auto wheel = std::make_unique<ModelUnderTest>();
  std::mt19937_64 random(7);
  const std::size_t before = allocated_bytes();
  for (TimerNode& timer : timers)
    wheel->schedule(timer, 1 + random() % ModelUnderTest::within(60'000));
  const double per_timer =
      static_cast<double>(allocated_bytes() - before) / static_cast<double>(timers.size());
  EXPECT_LE(per_timer, ModelUnderTest::kind().bytes_per_timer);
  wheel->clear(ignore);
}

MODEL_TEST(Memory, AfterReserveNoOperationAllocates) {
  const std::size_t count = std::min<std::size_t>(5000, ModelUnderTest::kind().many);
  std::vector<TimerNode> timers(count);
  auto wheel = std::make_unique<ModelUnderTest>(123);
  wheel->reserve(count);
  std::mt19937_64 random(7);
  const std::size_t before = allocations();
  for (int round = 0; round < 30; ++round) {
    for (TimerNode& timer : timers) {
      switch (random() % 4) {
        case 0:
          wheel->cancel(timer);
          break;
        case 1:
          wheel->reschedule(timer,
                            wheel->now() + ModelUnderTest::within(random() >> (8 + random() % 56)));
          break;
        case 2:
          wheel->reschedule(timer, timer.expiry() - timer.expiry() / 3);
          break;
        default:
          wheel->reschedule(timer, 0);
          break;
      }
    }
    wheel->advance(wheel->now() + (random() >> 40), ignore, 1000);
  }
  EXPECT_EQ(allocations(), before);
  wheel->check_invariants();
}

MODEL_TEST(Memory, ScheduleThatFailsChangesNothing) {
  TimerNode first, second;  // a wheel may need no memory for the first timer of a tick
  auto wheel = std::make_unique<ModelUnderTest>();
  std::size_t scheduled = 0;
  {
    const FailingAllocations failing(0);
    try {
      wheel->schedule(first, 10);
      scheduled = 1;
    } catch (const std::bad_alloc&) {
    }
    EXPECT_THROW(wheel->schedule(second, 10), std::bad_alloc);
    EXPECT_THROW(wheel->schedule(second, 0), std::bad_alloc);
    EXPECT_THROW(wheel->reschedule(second, 10), std::bad_alloc);
  }
  EXPECT_FALSE(second.armed());
  EXPECT_EQ(wheel->size(), scheduled);
  wheel->check_invariants();
  wheel->schedule(second, 10);
  EXPECT_EQ(wheel->advance(10, ignore), scheduled + 1);
}

MODEL_TEST(Memory, RescheduleThatFailsKeepsTheOldExpiry) {
  if (refuses(1'000'000)) return;
  std::deque<TimerNode> timers;
  auto wheel = std::make_unique<ModelUnderTest>();
  wheel->schedule(timers.emplace_back(), 1'000'000);
  const std::size_t before = allocations();
  // Fills the slab up to its last chunk.
  while (allocations() == before) wheel->schedule(timers.emplace_back(), 1'000'000);
  bool failed = false;
  for (Tick expiry = 1; !failed && expiry < 1'000'000; expiry *= 2) {
    for (TimerNode& timer : timers) {
      const Tick old = timer.expiry();
      const FailingAllocations failing(0);
      try {
        wheel->reschedule(timer, expiry);
      } catch (const std::bad_alloc&) {
        failed = true;
        EXPECT_EQ(timer.expiry(), old);
        EXPECT_TRUE(timer.armed());
        break;
      }
    }
  }
  EXPECT_EQ(wheel->size(), timers.size());
  wheel->check_invariants();
  EXPECT_EQ(wheel->advance(1'000'000, ignore), timers.size());
}

MODEL_TEST(Memory, AnAdvanceThatRunsOutOfMemoryGoesOnWhenThereIsSome) {
  if (refuses(125'536)) return;
  std::mt19937_64 random(7);
  std::vector<TimerNode> timers(std::min<std::size_t>(20'000, ModelUnderTest::kind().many));
  auto wheel = std::make_unique<ModelUnderTest>();
  for (TimerNode& timer : timers) wheel->schedule(timer, 65'536 + random() % 60'000);
  std::size_t fired = 0;
  Tick last = 0;
  const auto in_order = [&](TimerNode& node) {
    ++fired;
    ASSERT_EQ(node.expiry(), wheel->now());
    ASSERT_GE(node.expiry(), last);
    last = node.expiry();
  };
  while (!wheel->empty()) {
    const Tick to = wheel->now() + 1000;
    try {
      const FailingAllocations failing(0);
      wheel->advance(to, in_order);
    } catch (const std::bad_alloc&) {
      wheel->check_invariants();
      ASSERT_LE(wheel->now(), to);
      wheel->advance(to, in_order);
    }
    wheel->check_invariants();
  }
  EXPECT_EQ(fired, timers.size());
}

TEST(PoolMemory, APoolAllocatesNothingAfterReserve) {
  constexpr std::size_t kTimers = 5000;
  TimerPool<std::uint64_t> pool(123);
  pool.reserve(kTimers);
  std::vector<TimerId> ids(kTimers);
  std::mt19937_64 random(7);
  const std::size_t before = allocations();
  for (int round = 0; round < 30; ++round) {
    for (TimerId& id : ids) {
      if (random() % 3 == 0) pool.cancel(id);
      if (!pool.contains(id)) id = pool.schedule(pool.now() + random() % 100'000, random());
    }
    pool.advance(pool.now() + random() % 10'000, [](TimerId, std::uint64_t&&) {});
  }
  EXPECT_EQ(allocations(), before);
  pool.check_invariants();
}

TEST(WheelMemory, WhatIsReservedIsEnoughWhereverTheTimersOnceWere) {
  TimerNode timer;
  HierarchicalWheel<> wheel;
  wheel.reserve(1);
  const std::size_t before = allocations();
  for (unsigned shift = 0; shift < 64; shift += 8) {  // a null entry in every slot
    for (Tick slot = 1; slot < 256; ++slot) {
      wheel.schedule(timer, Moment{slot << shift});
      wheel.cancel(timer);
    }
  }
  EXPECT_EQ(allocations(), before);
}

TEST(WheelMemory, WhatALimitLeftIsSweptWhenItIsCancelled) {
  std::vector<TimerNode> timers(200'000);
  auto wheel = std::make_unique<HierarchicalWheel<>>();
  for (TimerNode& timer : timers) wheel->schedule(timer, Moment{100});
  EXPECT_EQ(wheel->advance(100, ignore, 0), 0U);
  for (TimerNode& timer : timers) wheel->cancel(timer);
  for (Tick expiry = 2'000'000; expiry > 1'000'000; --expiry) {
    wheel->schedule(timers[0], Moment{expiry});
    wheel->cancel(timers[0]);
  }
  EXPECT_LE(wheel->allocated_bytes(), std::size_t{900} * 1024);
  wheel->check_invariants();
}

TEST(PoolMemory, APoolThatCannotAllocateIsAsItWas) {
  TimerPool<int> pool;
  {
    const FailingAllocations failing(0);
    EXPECT_THROW(pool.schedule(Moment{1000}, 1), std::bad_alloc);
  }
  for (std::size_t allowed = 1; allowed < 3; ++allowed) {
    const FailingAllocations failing(allowed);
    EXPECT_THROW(pool.schedule(Moment{1000}, 1), std::bad_alloc);
  }
  EXPECT_TRUE(pool.empty());
  pool.check_invariants();
  const TimerId id = pool.schedule(Moment{1000}, 7);
  int fired = 0;
  pool.advance(1000, [&](TimerId which, int&& payload) {
    EXPECT_EQ(which, id);
    fired = payload;
  });
  EXPECT_EQ(fired, 7);
}

}  // namespace
}  // namespace carillon::testing
