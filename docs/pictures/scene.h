// Scene: a wheel with named timers. show() prints the wheel as it is at that moment, as one line of
// JSON.
#pragma once

#include <cstddef>
#include <deque>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "carillon/wheel/geometry.h"
#include "carillon/wheel/hashed_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/levels.h"
#include "carillon/wheel/slot_position.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::pictures {

struct Timer : TimerNode {
  std::string name;
  explicit Timer(std::string timer_name) : name(std::move(timer_name)) {}
};

// One level of a wheel.
struct LevelView {
  std::size_t slots;
  Tick width;        // width of a slot, in ticks
  std::size_t hand;  // the slot at which the hand is
};

template <SlotPlacement kPlacement, std::size_t... kSizes>
std::vector<LevelView> levels_at(WheelLevels<kPlacement, kSizes...>, Tick now) {
  using Geometry = WheelLevels<kPlacement, kSizes...>;
  std::vector<LevelView> levels;
  for (unsigned level = 0; level < Geometry::kLevels; ++level)
    levels.push_back({Geometry::kSize[level], Geometry::kWidth[level], Geometry::slot(level, now)});
  return levels;
}

template <unsigned kBits>
std::vector<LevelView> levels_at(BinaryDigits<kBits>, Tick now) {
  using Geometry = BinaryDigits<kBits>;
  std::vector<LevelView> levels;
  for (unsigned level = 0; level < Geometry::kLevels; ++level) {
    const Tick hand = (now >> level * kBits) % Geometry::kSlotsPerLevel;
    levels.push_back({Geometry::kSlotsPerLevel, Tick{1} << level * kBits, hand});
  }
  return levels;
}

// The levels of a wheel; of a wheel that grows, those that a timer has needed so far.
template <class Geometry, std::size_t kChunkWords, std::size_t kEntryBudget>
std::vector<LevelView> levels_of(
    const HierarchicalWheel<Geometry, kChunkWords, kEntryBudget>& wheel) {
  std::vector<LevelView> levels = levels_at(Geometry{}, wheel.now());
  levels.resize(wheel.levels());
  return levels;
}

template <std::size_t kRequested, std::size_t kChunkWords, std::size_t kEntryBudget>
std::vector<LevelView> levels_of(const HashedWheel<kRequested, kChunkWords, kEntryBudget>& wheel) {
  return {{wheel.kSlots, 1, wheel.now() % wheel.kSlots}};
}

inline std::string quoted(const std::string& text) {
  return '"' + text + '"';  // no text of ours holds a quote
}

template <class Wheel>
class Scene {
 public:
  Scene(std::string picture, Tick start) : picture_(std::move(picture)), wheel_(start) {}

  const Wheel& wheel() const { return wheel_; }

  void schedule(const std::string& name, Tick expiry, Tick slack = 0) {
    Timer& timer = timers_.emplace_back(name);
    try {
      wheel_.schedule(timer, Moment{expiry}, slack);
    } catch (const std::out_of_range& error) {
      refused_ = error.what();
      timers_.pop_back();
    }
  }

  void reschedule_last(Tick expiry) { wheel_.reschedule(timers_.back(), Moment{expiry}); }

  void advance(Tick to) {
    wheel_.advance(to, [this](TimerNode& node) {
      fired_.push_back("{\"name\": " + quoted(static_cast<Timer&>(node).name) +
                       ", \"at\": " + std::to_string(wheel_.now()) + "}");
    });
    wheel_.check_invariants();
  }

  // Jumps from wake-up to wake-up until nothing is pending.
  void run() {
    while (const std::optional<Tick> wakeup = wheel_.next_wakeup()) {
      wakeups_.push_back(std::to_string(*wakeup));
      advance(*wakeup);
    }
  }

  // Prints the wheel as it is now, and what has happened since the last call.
  void show(const std::string& caption) {
    std::vector<std::string> levels, timers;
    for (const LevelView& level : levels_of(wheel_)) {
      levels.push_back("{\"slots\": " + std::to_string(level.slots) +
                       ", \"width\": " + std::to_string(level.width) +
                       ", \"hand\": " + std::to_string(level.hand) + "}");
    }
    wheel_.for_each([&](const TimerNode& node, std::optional<SlotPosition> at) {
      timers.push_back(json(node, at));
    });
    const auto wakeup = wheel_.next_wakeup();
    std::cout << "{\"picture\": " << quoted(picture_) << ", \"caption\": " << quoted(caption)
              << ", \"now\": " << wheel_.now()
              << ", \"next_wakeup\": " << (wakeup ? std::to_string(*wakeup) : "null")
              << ", \"levels\": " << array(levels) << ", \"timers\": " << array(timers)
              << ", \"fired\": " << array(std::exchange(fired_, {}))
              << ", \"wakeups\": " << array(std::exchange(wakeups_, {}))
              << ", \"refused\": " << quoted(std::exchange(refused_, {})) << "}\n";
  }

  static std::string array(const std::vector<std::string>& items) {
    std::ostringstream out;
    for (const std::string& item : items) out << (out.tellp() == 0 ? "[" : ", ") << item;
    return items.empty() ? "[]" : out.str() + "]";
  }

 private:
  std::string json(const TimerNode& node, std::optional<SlotPosition> at) const {
    std::ostringstream out;
    out << "{\"name\": " << quoted(static_cast<const Timer&>(node).name)
        << ", \"expiry\": " << node.expiry();
    if (at) out << ", \"level\": " << at->level << ", \"slot\": " << at->slot;
    if constexpr (requires { wheel_.rounds(node); }) out << ", \"rounds\": " << wheel_.rounds(node);
    out << "}";
    return out.str();
  }

  std::string picture_;
  std::deque<Timer> timers_;  // outlives the wheel, which disarms what is left
  Wheel wheel_;
  std::vector<std::string> fired_, wakeups_;
  std::string refused_;
};

}  // namespace carillon::pictures
