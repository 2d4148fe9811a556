// A number is not taken for a moment, nor a moment for a distance.
#include "carillon/wheel/moment.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_pool.h"

namespace carillon::testing {
namespace {

using Wheel = HierarchicalWheel<>;
using Pool = TimerPool<int>;

template <class Expiry>
constexpr bool kTakenByWheel = requires(Wheel& wheel, TimerNode& node, Expiry expiry) {
  wheel.schedule(node, expiry);
};
template <class Expiry>
constexpr bool kTakenWithSlack = requires(Wheel& wheel, TimerNode& node, Expiry expiry) {
  wheel.schedule(node, expiry, 5);
};
template <class Expiry>
constexpr bool kTakenByReschedule = requires(Wheel& wheel, TimerNode& node, Expiry expiry) {
  wheel.reschedule(node, expiry);
};
template <class Expiry>
constexpr bool kTakenByPool = requires(Pool& pool, Expiry expiry) {
  pool.schedule(expiry, 7);
};
template <class Expiry>
constexpr bool kTakenByPoolsReschedule = requires(Pool& pool, TimerId id, Expiry expiry) {
  pool.reschedule(id, expiry);
};
template <class Expiry>
constexpr bool kIsExpiry = kTakenByWheel<Expiry>&& kTakenWithSlack<Expiry>&&
    kTakenByReschedule<Expiry>&& kTakenByPool<Expiry>&& kTakenByPoolsReschedule<Expiry>;
template <class Expiry>
constexpr bool kIsNoExpiry =
    !kTakenByWheel<Expiry> && !kTakenWithSlack<Expiry> && !kTakenByReschedule<Expiry> &&
    !kTakenByPool<Expiry> && !kTakenByPoolsReschedule<Expiry>;

TEST(Moments, WithoutNowANumberIsNoExpiry) {
  EXPECT_TRUE(kIsNoExpiry<int>);
  EXPECT_TRUE(kIsNoExpiry<unsigned>);
  EXPECT_TRUE(kIsNoExpiry<std::int64_t>);
  EXPECT_TRUE(kIsNoExpiry<Tick>);
  EXPECT_TRUE(kIsExpiry<decltype(std::declval<Wheel&>().now() + 30)>);
  EXPECT_TRUE(kIsExpiry<decltype(30U + std::declval<Pool&>().now())>);
  EXPECT_TRUE(kIsExpiry<decltype(std::declval<TimerNode&>().expiry() + Tick{30})>);
  EXPECT_TRUE(kIsExpiry<decltype(*std::declval<Pool&>().expiry(TimerId{}) - 1)>);
}

template <class Delay>
constexpr bool kTakenAfter = requires(Wheel& wheel, TimerNode& node, Delay delay) {
  wheel.schedule_after(node, delay);
};
template <class Delay>
constexpr bool kTakenAfterWithSlack = requires(Wheel& wheel, TimerNode& node, Delay delay) {
  wheel.schedule_after(node, delay, 5);
};
template <class Delay>
constexpr bool kTakenByRescheduleAfter = requires(Wheel& wheel, TimerNode& node, Delay delay) {
  wheel.reschedule_after(node, delay);
};
template <class Delay>
constexpr bool kTakenByPoolAfter = requires(Pool& pool, Delay delay) {
  pool.schedule_after(delay, 7);
};
template <class Delay>
constexpr bool kTakenByPoolsRescheduleAfter = requires(Pool& pool, TimerId id, Delay delay) {
  pool.reschedule_after(id, delay);
};

TEST(Moments, AMomentIsNoDelay) {
  EXPECT_FALSE(kTakenAfter<Moment>);
  EXPECT_FALSE(kTakenAfterWithSlack<Moment>);
  EXPECT_FALSE(kTakenByRescheduleAfter<Moment>);
  EXPECT_FALSE(kTakenByPoolAfter<Moment>);
  EXPECT_FALSE(kTakenByPoolsRescheduleAfter<Moment>);
  EXPECT_TRUE(kTakenAfter<int> && kTakenAfter<Tick>);
  EXPECT_TRUE(kTakenAfterWithSlack<int> && kTakenAfterWithSlack<Tick>);
  EXPECT_TRUE(kTakenByRescheduleAfter<int> && kTakenByRescheduleAfter<Tick>);
  EXPECT_TRUE(kTakenByPoolAfter<int> && kTakenByPoolAfter<Tick>);
  EXPECT_TRUE(kTakenByPoolsRescheduleAfter<int> && kTakenByPoolsRescheduleAfter<Tick>);
}

TEST(Moments, AMomentAndADistanceMakeAMomentAndTwoMomentsADistance) {
  constexpr Moment kNoon{720};
  static_assert(std::is_same_v<decltype(kNoon + 30), Moment>);
  static_assert(std::is_same_v<decltype(kNoon - kNoon), Tick>);
  EXPECT_EQ(kNoon + 30, 750U);
  EXPECT_EQ(30 + kNoon, 750U);
  EXPECT_EQ(kNoon - 20, 700U);
  EXPECT_EQ(kNoon + -20, 700U);
  EXPECT_EQ(kNoon + 30 - kNoon, 30U);
  EXPECT_EQ(Moment{}, 0U);
  EXPECT_LT(kNoon, kNoon + 1);
  EXPECT_EQ(Moment{std::numeric_limits<Tick>::max()}, std::numeric_limits<Tick>::max());
}

TEST(Moments, AWheelAndItsTimersSayWhereTheyAreInMoments) {
  Wheel wheel(1'000);
  TimerNode node;
  wheel.schedule(node, wheel.now() + 30);
  EXPECT_EQ(wheel.now(), Moment{1'000});
  EXPECT_EQ(node.expiry(), Moment{1'030});
  EXPECT_EQ(node.expiry() - wheel.now(), 30U);
  wheel.reschedule(node, node.expiry() + 10);
  Pool pool(1'000);
  const TimerId id = pool.schedule(node.expiry(), 7);
  EXPECT_EQ(pool.expiry(id), std::optional(Moment{1'040}));
}

// It travels in a register, as the number does.
static_assert(sizeof(Moment) == sizeof(Tick) && std::is_trivially_copyable_v<Moment>);

}  // namespace
}  // namespace carillon::testing
