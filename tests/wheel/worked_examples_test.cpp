// The worked examples of each timer model, M5 to M9: in which slot a timer sits, when it moves, and
// when it fires.
//
// Levels and slots are numbered from 0, as position() numbers them. Texts that number wheels from 1
// say "second wheel" for level 1.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <vector>

#include "carillon/wheel/clock_wheel.h"
#include "carillon/wheel/hashed_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/kafka_wheel.h"
#include "carillon/wheel/linux_wheel.h"
#include "carillon/wheel/simple_wheel.h"

namespace carillon {

static std::ostream& operator<<(std::ostream& out, const SlotPosition& at) {
  return out << "level " << at.level << " slot " << at.slot;
}

namespace {

using Position = std::optional<SlotPosition>;

Position at(unsigned level, std::size_t slot) {
  return SlotPosition{level, slot};
}

std::size_t advance(auto& wheel, Tick to) {
  const std::size_t fired = wheel.advance(to, [](TimerNode&) {});
  wheel.check_invariants();
  return fired;
}

// --- M5, the simple wheel

TEST(WorkedExample, M5_TwelveSlots_Delay1_Slot1FiresAt1) {
  TimerNode timer;
  SimpleWheel<12> wheel;
  wheel.schedule(timer, Moment{1});
  EXPECT_EQ(wheel.position(timer), at(0, 1));
  EXPECT_EQ(advance(wheel, 1), 1U);
}

TEST(WorkedExample, M5_TwelveSlots_Delay2_Slot2) {
  TimerNode timer;
  SimpleWheel<12> wheel;
  wheel.schedule(timer, Moment{2});
  EXPECT_EQ(wheel.position(timer), at(0, 2));
  EXPECT_EQ(advance(wheel, 1), 0U);
  EXPECT_EQ(advance(wheel, 2), 1U);
}

TEST(WorkedExample, M5_TwelveSlots_Delay12OrMore_Refused) {
  TimerNode timer;
  SimpleWheel<12> wheel;
  for (const Tick delay : {Tick{12}, Tick{13}, Tick{24}, ~Tick{0}}) {
    EXPECT_THROW(wheel.schedule(timer, Moment{delay}), std::out_of_range) << delay;
  }
  wheel.schedule(timer, Moment{11});
  EXPECT_EQ(wheel.position(timer), at(0, 11));
  wheel.cancel(timer);
}

// --- M6, the wheel with rounds

TEST(WorkedExample, M6_HandAt2Delay3_Slot5Rounds0) {
  TimerNode timer;
  HashedWheel<8> wheel(2);
  wheel.schedule(timer, Moment{2 + 3});
  EXPECT_EQ(wheel.position(timer), at(0, 5));
  EXPECT_EQ(wheel.rounds(timer), 0U);
  EXPECT_EQ(advance(wheel, 4), 0U);
  EXPECT_EQ(advance(wheel, 5), 1U);
}

TEST(WorkedExample, M6_HandAt2Delay10_Slot4Rounds1) {
  TimerNode timer;
  HashedWheel<8> wheel(2);
  wheel.schedule(timer, Moment{2 + 10});
  EXPECT_EQ(wheel.position(timer), at(0, 4));
  EXPECT_EQ(wheel.slot_of(timer), 4U);
  EXPECT_EQ(wheel.rounds(timer), 1U);
  EXPECT_EQ(advance(wheel, 4), 0U) << "the hand is at 4 for the first time";
  EXPECT_EQ(wheel.rounds(timer), 0U);
  EXPECT_EQ(advance(wheel, 11), 0U);
  EXPECT_EQ(advance(wheel, 12), 1U) << "the hand is at 4 for the second time";
}

TEST(WorkedExample, M6_SixSlotsRequested_Eight) {
  EXPECT_EQ(HashedWheel<6>::kSlots, 8U);
  EXPECT_EQ(HashedWheel<8>::kSlots, 8U);
  EXPECT_EQ(HashedWheel<1>::kSlots, 1U);
  EXPECT_EQ(HashedWheel<513>::kSlots, 1024U);
}

// --- M7, the hierarchical wheel as a clock

TEST(WorkedExample, M7_ClockOfADay_144Slots_OfAMonth_174) {
  EXPECT_EQ((HierarchicalWheel<WheelLevels<SlotPlacement::kDigit, 60, 60, 24>>::kSlots), 144U);
  EXPECT_EQ(ClockWheel::kSlots, 174U);
}

TEST(WorkedExample, M7_Day2At084000_DaySlot2ThenHourSlot8ThenMinuteSlot40) {
  constexpr Tick kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  constexpr Tick kTime = 2 * kDay + 8 * kHour + 40 * kMinute;
  TimerNode timer;
  ClockWheel clock;
  clock.schedule(timer, Moment{kTime});
  EXPECT_EQ(clock.position(timer), at(3, 2));
  advance(clock, 2 * kDay - 1);
  EXPECT_EQ(clock.position(timer), at(3, 2));
  advance(clock, 2 * kDay);
  EXPECT_EQ(clock.position(timer), at(2, 8));
  advance(clock, 2 * kDay + 8 * kHour - 1);
  EXPECT_EQ(clock.position(timer), at(2, 8));
  advance(clock, 2 * kDay + 8 * kHour);
  EXPECT_EQ(clock.position(timer), at(1, 40));
  EXPECT_EQ(advance(clock, kTime - 1), 0U) << "never a second early";
  EXPECT_EQ(advance(clock, kTime), 1U);
}

TEST(WorkedExample, M7_TheClockRefuses30DaysAndTakesASecondLess) {
  TimerNode timer;
  ClockWheel clock(5 * 86'400 + 7);
  EXPECT_THROW(clock.schedule(timer, clock.now() + 2'592'000), std::out_of_range);
  clock.schedule(timer, clock.now() + 2'591'999);
  EXPECT_EQ(clock.position(timer), at(3, 5)) << "the day hand's own slot, a turn later";
  EXPECT_EQ(advance(clock, timer.expiry() - 1), 0U);
  EXPECT_EQ(advance(clock, timer.expiry()), 1U);
}

// --- M8, Linux's five wheels

TEST(WorkedExample, M8_Jiffy0Timer1000_SecondWheelSlot3) {
  TimerNode timer;
  LinuxWheel wheel;
  wheel.schedule(timer, Moment{1000});
  EXPECT_EQ(wheel.position(timer), at(1, 3));
  advance(wheel, 767);
  EXPECT_EQ(wheel.position(timer), at(1, 3));
  advance(wheel, 768);
  EXPECT_EQ(wheel.position(timer), at(0, 1000 % 256));
  EXPECT_EQ(advance(wheel, 999), 0U);
  EXPECT_EQ(advance(wheel, 1000), 1U);
}

TEST(WorkedExample, M8_512Slots_From0To4294967296) {
  EXPECT_EQ(LinuxWheel::kSlots, 512U);
  TimerNode timer;
  LinuxWheel wheel;
  wheel.schedule(timer, Moment{0xFFFF'FFFF});
  EXPECT_EQ(wheel.position(timer), at(4, 63));
  wheel.cancel(timer);
  EXPECT_THROW(wheel.schedule(timer, Moment{0x1'0000'0000}), std::out_of_range);
}

TEST(WorkedExample, M8_At12345678TheNextTickVisitsSlot79) {
  TimerNode timer;
  LinuxWheel wheel(0x12345678);
  wheel.schedule(timer, Moment{0x12345679});
  EXPECT_EQ(wheel.position(timer), at(0, 0x79));
  EXPECT_EQ(advance(wheel, 0x12345679), 1U);
}

TEST(WorkedExample, M8_At12345700TheSecondWheelCascades) {
  TimerNode timer;
  LinuxWheel wheel(0x12345600);
  wheel.schedule(timer, Moment{0x12345705});
  EXPECT_EQ(wheel.position(timer), at(1, 0x57 & 63)) << "bits 8 to 13";
  advance(wheel, 0x123456FF);
  EXPECT_EQ(wheel.position(timer), at(1, 0x57 & 63));
  advance(wheel, 0x12345700);
  EXPECT_EQ(wheel.position(timer), at(0, 5));
  EXPECT_EQ(advance(wheel, 0x12345705), 1U);
}

TEST(WorkedExample, M8_WhenBits8To13AreZeroAsWellTheThirdWheelCascadesAndSoOnUpward) {
  // At the tick `rolls_over`, all bits below those of `wheel` are zero. The timer expires one tick
  // later.
  struct Example {
    unsigned wheel;
    Tick start, rolls_over;
    std::size_t slot;
  };
  const std::vector<Example> examples = {{2, 0x1234'0000, 0x1234'4000, 0x1234'4000 >> 14 & 63},
                                         {3, 0x1230'0000, 0x1240'0000, 0x1240'0000 >> 20 & 63},
                                         {4, 0x1000'0000, 0x1400'0000, 0x1400'0000 >> 26 & 63}};
  for (const Example& example : examples) {
    TimerNode timer;
    LinuxWheel wheel(example.start);
    wheel.schedule(timer, Moment{example.rolls_over + 1});
    EXPECT_EQ(wheel.position(timer), at(example.wheel, example.slot));
    advance(wheel, example.rolls_over - 1);
    EXPECT_EQ(wheel.position(timer), at(example.wheel, example.slot));
    EXPECT_EQ(advance(wheel, example.rolls_over), 0U);
    EXPECT_EQ(wheel.position(timer), at(0, 1));
    EXPECT_EQ(advance(wheel, example.rolls_over + 1), 1U);
  }
}

// --- M9, Kafka's growing wheels

TEST(WorkedExample, M9_IntervalsAre20And400And8000) {
  for (const Tick interval : {Tick{20}, Tick{400}, Tick{8000}}) {
    TimerNode last, next;
    KafkaWheel wheel;
    wheel.schedule(last, Moment{interval - 1});
    wheel.schedule(next, Moment{interval});
    EXPECT_EQ(wheel.position(next)->level, wheel.position(last)->level + 1) << interval;
  }
}

TEST(WorkedExample, M9_HandAt0Delay2_Level1Slot2) {
  TimerNode timer;
  KafkaWheel wheel;
  wheel.schedule(timer, Moment{2});
  EXPECT_EQ(wheel.position(timer), at(0, 2));
}

TEST(WorkedExample, M9_HandAt2Delay8_Slot10) {
  TimerNode timer;
  KafkaWheel wheel(2);
  wheel.schedule(timer, Moment{2 + 8});
  EXPECT_EQ(wheel.position(timer), at(0, 10));
}

TEST(WorkedExample, M9_HandAt2Delay19_Slot1Reused) {
  TimerNode first, second;
  KafkaWheel wheel;
  wheel.schedule(first, Moment{1});
  EXPECT_EQ(wheel.position(first), at(0, 1));
  EXPECT_EQ(advance(wheel, 2), 1U);
  wheel.schedule(second, Moment{2 + 19});
  EXPECT_EQ(wheel.position(second), at(0, 1));
  EXPECT_EQ(advance(wheel, 20), 0U);
  EXPECT_EQ(advance(wheel, 21), 1U);
}

TEST(WorkedExample, M9_HandAt2Delay350_Level2Slot17) {
  TimerNode timer;
  KafkaWheel wheel(2);
  wheel.schedule(timer, Moment{2 + 350});
  EXPECT_EQ(wheel.position(timer), at(1, 17));
}

TEST(WorkedExample, M9_Delay450_Level3Slot1ThenLevel2ThenLevel1Slot10FiresAt450) {
  TimerNode timer;
  KafkaWheel wheel;
  wheel.schedule(timer, Moment{450});
  EXPECT_EQ(wheel.position(timer), at(2, 1)) << "it covers [400, 800)";
  EXPECT_EQ(wheel.next_wakeup(), 400U);
  EXPECT_EQ(advance(wheel, 400), 0U);
  EXPECT_EQ(wheel.position(timer), at(1, 2)) << "[40, 60) of the 50 that are left";
  EXPECT_EQ(wheel.next_wakeup(), 440U);
  EXPECT_EQ(advance(wheel, 440), 0U);
  EXPECT_EQ(wheel.position(timer), at(0, 10));
  EXPECT_EQ(wheel.next_wakeup(), 450U);
  EXPECT_EQ(advance(wheel, 449), 0U);
  EXPECT_EQ(advance(wheel, 450), 1U);
}

TEST(WorkedExample, M9_LevelsAppearOnDemand) {
  TimerNode near, far, farther;
  KafkaWheel wheel;
  EXPECT_EQ(wheel.levels(), 1U);
  wheel.schedule(near, Moment{19});
  EXPECT_EQ(wheel.levels(), 1U);
  wheel.schedule(far, Moment{350});
  EXPECT_EQ(wheel.levels(), 2U);
  wheel.schedule(farther, Moment{450});
  EXPECT_EQ(wheel.levels(), 3U);
}

TEST(WorkedExample, M9_NothingBetween20And400_TheDriverSleepsThrough) {
  TimerNode first, second;
  KafkaWheel wheel;
  wheel.schedule(first, Moment{20});
  wheel.schedule(second, Moment{400});
  std::vector<Tick> wakeups;
  std::size_t fired = 0;
  while (const std::optional<Tick> wakeup = wheel.next_wakeup()) {
    wakeups.push_back(*wakeup);
    fired += advance(wheel, *wakeup);
  }
  EXPECT_EQ(fired, 2U);
  EXPECT_EQ(wakeups, (std::vector<Tick>{20, 400}));
}

}  // namespace
}  // namespace carillon
