// WheelPages::kHuge: memory is taken and given back in pieces of 2 MiB. That nothing else differs
// is tested with the sets of any_set.cpp, one of which is such a wheel.
#include "carillon/wheel/pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "carillon/wheel/hashed_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_pool.h"
#include "wheel/allocations.h"

namespace carillon::testing {
namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20;

void ignore(TimerNode&) {}

TEST(HugePages, AWheelTakesMemoryByThePageAndKeepsOneInReserve) {
  std::vector<TimerNode> timers(500'000);
  HierarchicalWheel<> wheel(0, WheelPages::kHuge);
  EXPECT_EQ(wheel.allocated_bytes(), 0U);
  std::mt19937_64 random(7);
  for (TimerNode& timer : timers) wheel.schedule(timer, Moment{1 + random() % 60'000});
  EXPECT_EQ(wheel.allocated_bytes() % kHuge, 0U);
  EXPECT_GE(wheel.allocated_bytes(), 4'000'000U);
  EXPECT_LE(wheel.allocated_bytes(), 3 * kHuge)
      << "8 bytes a timer, and a chunk of 512 for each of 256 slots";
  wheel.check_invariants();
  EXPECT_EQ(wheel.advance(60'000, ignore), timers.size());
  wheel.check_invariants();
  EXPECT_EQ(wheel.allocated_bytes(), kHuge);
}

// The system clears all 2 MiB of a page each time it gives one. So a page is kept.
TEST(HugePages, AWheelThatFillsAndEmptiesDoesNotAllocateEachTime) {
  std::vector<TimerNode> timers(1'000);
  HierarchicalWheel<> wheel(0, WheelPages::kHuge);
  const auto fill_and_empty = [&] {
    for (TimerNode& timer : timers) wheel.schedule(timer, wheel.now() + 1);
    EXPECT_EQ(wheel.advance(wheel.now() + 1, ignore), timers.size());
  };
  fill_and_empty();
  const std::size_t before = allocations();
  for (int i = 0; i < 10; ++i) fill_and_empty();
  EXPECT_EQ(allocations(), before);
}

TEST(HugePages, PagesAreAlignedToTheirSize) {
  void* const page = detail::take_huge_page();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(page) % kHuge, 0U);
  ::operator delete (page, std::align_val_t{kHuge});
}

TEST(HugePages, AfterReserveNothingAllocates) {
  std::vector<TimerNode> timers(100'000);
  HashedWheel<512> wheel(0, WheelPages::kHuge);
  TimerPool<std::uint64_t> pool(0, WheelPages::kHuge);
  wheel.reserve(timers.size());
  pool.reserve(timers.size());
  const std::size_t before = allocations();
  std::mt19937_64 random(7);
  for (TimerNode& timer : timers) {
    wheel.schedule(timer, Moment{1 + random() % 60'000});
    pool.schedule(Moment{1 + random() % 60'000}, 0);
  }
  EXPECT_EQ(wheel.advance(60'000, ignore), timers.size());
  EXPECT_EQ(pool.advance(60'000, [](TimerId, std::uint64_t&&) {}), timers.size());
  EXPECT_EQ(allocations(), before);
}

TEST(HugePages, APoolKeepsItsTimersInThem) {
  std::vector<TimerId> ids;
  ids.reserve(200'000);
  const std::size_t before = allocated_bytes();
  auto pool = std::make_unique<TimerPool<std::uint64_t>>(0, WheelPages::kHuge);
  for (std::uint64_t i = 0; i < 200'000; ++i)
    ids.push_back(pool->schedule(Moment{1 + i % 5'000}, i));
  pool->check_invariants();
  for (std::size_t i = 0; i < ids.size(); i += 2) EXPECT_TRUE(pool->cancel(ids[i]));
  std::size_t odd = 0;
  pool->advance(5'000, [&](TimerId, std::uint64_t&& payload) { odd += payload % 2; });
  EXPECT_EQ(odd, 100'000U);
  pool->check_invariants();
  pool.reset();
  EXPECT_EQ(allocated_bytes(), before);
}

TEST(HugePages, APoolWhoseBlocksAreLargerThanAPageTakesOrdinaryMemory) {
  struct Large {
    char bytes[200'000];
  };
  TimerPool<std::unique_ptr<Large>> by_pointer(0, WheelPages::kHuge);
  TimerPool<Large> by_value(0, WheelPages::kHuge);
  by_pointer.schedule(Moment{1}, std::make_unique<Large>());
  for (int i = 0; i < 40; ++i) by_value.schedule(Moment{1}, Large{});
  EXPECT_EQ(by_value.advance(1, [](TimerId, Large&&) {}), 40U);
  by_value.check_invariants();
}

TEST(HugePages, RefusedMemoryChangesNothing) {
  TimerPool<int> pool(0, WheelPages::kHuge);
  for (std::size_t allowed = 0; allowed < 2; ++allowed) {
    const FailingAllocations failing(allowed);
    EXPECT_THROW(pool.schedule(Moment{1'000}, 1), std::bad_alloc) << allowed;
    EXPECT_TRUE(pool.empty());
    pool.check_invariants();
  }
  EXPECT_NE(pool.schedule(Moment{1'000}, 1), TimerId{});
}

}  // namespace
}  // namespace carillon::testing
