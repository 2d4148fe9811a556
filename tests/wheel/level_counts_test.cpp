// HierarchicalWheel::count_levels(): what it counts, beside what position() says of each timer.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "carillon/wheel/clock_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/kafka_wheel.h"
#include "carillon/wheel/linux_wheel.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

// Counts in steps of at least `most` entries; returns how many steps it took in `steps`.
template <class Wheel>
auto counts(const Wheel& wheel, std::size_t most, std::size_t* steps = nullptr) {
  std::array<std::size_t, Wheel::kLevels> timers{};
  for (std::optional<std::size_t> next = 0; next;) {
    next = wheel.count_levels(timers, *next, most);
    if (steps != nullptr) ++*steps;
  }
  return timers;
}

TEST(LevelCounts, TellOfEachLevel) {
  HierarchicalWheel<> wheel;
  std::array<TimerNode, 5> timers;
  wheel.schedule(timers[0], Moment{3});
  wheel.schedule(timers[1], Moment{3});
  wheel.schedule(timers[2], Moment{300});
  wheel.schedule(timers[3], Moment{70'000});
  wheel.schedule(timers[4], Moment{0});  // due
  EXPECT_EQ(counts(wheel, 100), (std::array<std::size_t, 8>{3, 1, 1}));
  wheel.cancel(timers[3]);
  wheel.advance(256, [](TimerNode&) {});
  EXPECT_EQ(counts(wheel, 100), (std::array<std::size_t, 8>{1}));
  wheel.advance(300, [](TimerNode&) {});
  EXPECT_EQ(counts(wheel, 100), (std::array<std::size_t, 8>{}));
}

TEST(LevelCounts, StopWhenTheyHaveReadEnough) {
  HierarchicalWheel<> wheel;
  std::vector<TimerNode> timers(1'000);
  for (std::size_t n = 0; n < timers.size(); ++n)
    wheel.schedule(timers[n], Moment{256 + 256 * (n % 10)});
  std::size_t steps = 0;
  EXPECT_EQ(counts(wheel, 300, &steps), (std::array<std::size_t, 8>{0, 1'000}));
  EXPECT_EQ(steps, 4U) << "slots of 100 timers are read as a whole";
  for (TimerNode& timer : timers) wheel.cancel(timer);
}

template <class Wheel>
class LevelCountsOf : public ::testing::Test {};
using Wheels = ::testing::Types<HierarchicalWheel<>, HierarchicalWheel<BinaryDigits<3>, 4>,
                                ClockWheel, LinuxWheel, KafkaWheel>;
TYPED_TEST_SUITE(LevelCountsOf, Wheels);

TYPED_TEST(LevelCountsOf, AgreeWithThePositionsOfTheTimers) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE(replay_with(seed));
    std::mt19937_64 random(seed);
    const auto wheel = std::make_unique<TypeParam>(random() % 1'000);
    std::vector<TimerNode> timers(300);
    for (int step = 0; step < 400; ++step) {
      TimerNode& timer = timers[random() % timers.size()];
      const Tick expiry = wheel->now() + random() % (Tick{1} << random() % 17);
      if (random() % 4 == 0) {
        if (timer.armed()) wheel->cancel(timer);
      } else {
        wheel->reschedule(timer, Moment{expiry});
      }
      if (random() % 8 == 0)
        wheel->advance(
            wheel->now() + random() % 500, [](TimerNode&) {}, 7);
      std::array<std::size_t, TypeParam::kLevels> expected{};
      for (const TimerNode& each : timers) {
        if (!each.armed()) continue;
        const auto position = wheel->position(each);
        ++expected[position ? position->level : 0];
      }
      ASSERT_EQ(counts(*wheel, 1 + random() % 100), expected) << "step " << step;
    }
    for (TimerNode& timer : timers)
      if (timer.armed()) wheel->cancel(timer);
  }
}

}  // namespace
}  // namespace carillon::testing
