// wheel_pictures: the scenes of docs/wheels.md, played on the real wheels.
//
//   build/wheel_pictures            # prints, for ./draw, one JSON object per moment of a scene
//   build/wheel_pictures --sizes    # prints the table of sizes in docs/wheels.md
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/wheel/clock_wheel.h"
#include "carillon/wheel/detail/chunk_pool.h"
#include "carillon/wheel/detail/slot.h"
#include "carillon/wheel/detail/slot_compactor.h"
#include "carillon/wheel/hashed_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/kafka_wheel.h"
#include "carillon/wheel/linux_wheel.h"
#include "carillon/wheel/simple_wheel.h"
#include "carillon/wheel/timer_node.h"
#include "models/binary_heap.h"
#include "models/scan_list.h"
#include "models/sorted_list.h"
#include "scene.h"

namespace carillon::pictures {
namespace {

void simple() {
  Scene<SimpleWheel<12>> scene("simple", 0);
  for (const Tick delay : {1U, 2U, 2U, 7U, 11U, 12U})
    scene.schedule(std::to_string(delay) + " s", delay);
  scene.show("at 0 s");
  scene.advance(2);
  scene.schedule("13 s", 13);
  scene.show("at 2 s");
}

void hashed() {
  Scene<HashedWheel<8>> scene("hashed", 2);
  for (const Tick delay : {3U, 10U, 2U}) scene.schedule(std::to_string(2 + delay), 2 + delay);
  scene.show("at 2");
  scene.advance(4);
  scene.show("at 4");
  scene.advance(12);
  scene.show("at 12");
}

void clock() {
  constexpr Tick kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  constexpr Tick kTime = 2 * kDay + 8 * kHour + 40 * kMinute;
  Scene<ClockWheel> scene("clock", 0);
  scene.schedule("08:40:00", kTime);
  scene.schedule("08:40:25", kTime + 25);
  scene.show("day 0, 00:00:00");
  scene.advance(2 * kDay);
  scene.show("day 2, 00:00:00");
  scene.advance(2 * kDay + 8 * kHour);
  scene.show("day 2, 08:00:00");
  scene.advance(kTime);
  scene.show("day 2, 08:40:00");
}

void linux_wheels() {
  Scene<LinuxWheel> scene("linux", 0);
  for (const Tick delay : {100U, 1'000U, 100'000U, 5'000'000U, 1'000'000'000U})
    scene.schedule(std::to_string(delay), delay);
  scene.show("at jiffy 0");
  scene.advance(768);
  scene.show("at jiffy 768");
}

void kafka() {
  Scene<KafkaWheel> scene("kafka", 0);
  scene.schedule("2", 2);
  scene.show("a timer of 2 ms");
  scene.schedule("350", 350);
  scene.schedule("450", 450);
  scene.show("and of 350 and 450 ms");
  for (const Tick tick : {400U, 440U, 450U}) {
    scene.advance(tick);
    scene.show("at " + std::to_string(tick) + " ms");
  }
}

// A thousand timers from a millisecond to 50 days, each order of magnitude as often as the others.
void default_wheel() {
  constexpr Tick kNow = 1'796'826'017'345;  // 9 December 2026, 14:20:17.345 UTC
  Scene<HierarchicalWheel<>> scene("default", kNow);
  std::mt19937_64 random(42);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t bits = random() % 32;
    scene.schedule("", scene.wheel().now() + (std::uint64_t{1} << bits) +
                           random() % (std::uint64_t{1} << bits));
  }
  scene.show("");
}

// A connection that is closed after 30 s of silence; a packet at 10 s makes that 40 s.
void rearm() {
  constexpr Tick kSlot = 256;  // ticks, on level 1
  Scene<HierarchicalWheel<>> scene("rearm", 0);
  scene.schedule("timer", 30'000);
  scene.show("armed for 30 000");
  scene.advance(10'000);
  scene.reschedule_last(40'000);
  scene.show("a packet: re-armed for 40 000");
  scene.advance(117 * kSlot);
  scene.show("its old slot comes up");
  scene.advance(156 * kSlot);
  scene.show("its slot comes up");
  scene.advance(40'000);
  scene.show("it fires");
}

void slack() {
  for (const Tick slack : {0U, 60U}) {
    Scene<HierarchicalWheel<>> scene("slack", 0);
    std::mt19937_64 random(42);
    for (int i = 0; i < 40; ++i) scene.schedule("", 1 + random() % 1000, slack);
    scene.run();
    scene.show(std::to_string(slack));
  }
}

// The inside of one slot of the default wheel: twelve timers are scheduled, five are cancelled, and
// the gaps are closed.
class SlotScene {
 public:
  void play() {
    for (std::size_t i = 0; i < 12; ++i) append(timers_[i]);
    show("12 timers are scheduled");
    for (const std::size_t i : {1U, 4U, 5U, 7U, 10U}) cancel(timers_[i]);
    show("5 are cancelled");
    append(timers_[12]);
    show("one more is scheduled");
    detail::SlotCompactor<64>().step(slot_, pool_);
    show("the slot is swept");
    for (Timer& timer : timers_) cancel(timer);
  }

 private:
  using Access = detail::NodeAccess;

  void append(Timer& timer) {
    if (slot_.needs_chunk()) slot_.add_chunk(pool_.acquire());
    TimerNode** const entry = slot_.take();
    *entry = &timer;
    Access::entry(timer) = entry;
  }

  static void cancel(Timer& timer) {
    if (!timer.armed()) return;
    *Access::entry(timer) = nullptr;
    Access::entry(timer) = nullptr;
  }

  void show(const std::string& caption) {
    std::vector<std::string> entries;
    for (TimerNode** entry = slot_.front()->begin(); entry != slot_.end_of(slot_.front()); ++entry)
      entries.push_back(*entry == nullptr ? "null" : quoted(static_cast<Timer*>(*entry)->name));
    std::cout << "{\"picture\": \"slot\", \"caption\": " << quoted(caption)
              << ", \"room\": " << detail::Slot<64>::ChunkType::kEntries
              << ", \"entries\": " << Scene<HierarchicalWheel<>>::array(entries) << "}\n";
  }

  std::array<Timer, 13> timers_{Timer("A"), Timer("B"), Timer("C"), Timer("D"), Timer("E"),
                                Timer("F"), Timer("G"), Timer("H"), Timer("I"), Timer("J"),
                                Timer("K"), Timer("L"), Timer("M")};
  std::size_t count_ = 0;  // timers; not used here
  detail::ChunkPool<64> pool_{WheelPages::kDefault, count_};
  detail::Slot<64> slot_;
};

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, " ");
  return text;
}

template <class Wheel>
void print_wheel(std::string_view name) {
  const bool all = Wheel::kLongestDelay == std::numeric_limits<Tick>::max();
  std::cout << "| `" << name << "` | " << grouped(Wheel::kSlots) << " | "
            << (all ? std::string("any") : grouped(Wheel::kLongestDelay)) << " | "
            << grouped(sizeof(Wheel)) << " |\n";
}

template <class Design>
void print_design(std::string_view name) {
  std::cout << "| `" << name << "` | none | any | " << grouped(sizeof(Design)) << " |\n";
}

void print_sizes() {
  std::cout << "| model | slots | longest delay, ticks | `sizeof`, bytes |\n|---|---:|---:|---:|\n";
  print_wheel<HierarchicalWheel<>>("HierarchicalWheel<>");
  print_wheel<SimpleWheel<4096>>("SimpleWheel<4096>");
  print_wheel<HashedWheel<>>("HashedWheel<>");
  print_wheel<LinuxWheel>("LinuxWheel");
  print_wheel<KafkaWheel>("KafkaWheel");
  print_wheel<ClockWheel>("ClockWheel");
  print_design<ScanList>("ScanList");
  print_design<SortedList>("SortedList");
  print_design<BinaryHeap>("BinaryHeap");
  std::cout << "\nA timer, `sizeof(TimerNode)`: " << sizeof(TimerNode)
            << " bytes. An entry in a slot: " << sizeof(TimerNode*) << " bytes.\n";
}

void play_all() {
  simple();
  hashed();
  clock();
  linux_wheels();
  kafka();
  default_wheel();
  SlotScene().play();
  rearm();
  slack();
}

}  // namespace
}  // namespace carillon::pictures

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    carillon::pictures::play_all();
  } else if (arguments.size() == 1 && arguments[0] == "--sizes") {
    carillon::pictures::print_sizes();
  } else {
    std::cerr << "usage: wheel_pictures [--sizes]\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
