// The systems under measurement behind one face: a timer with a 16-byte payload in its node, scheduled, cancelled, re-armed, fired.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "carillon/wheel/hierarchical_wheel.h"
#include "list_wheel.h"

namespace carillon::bench {

using Payload = std::array<std::uint64_t, 2>;

struct CarillonSystem {
  static constexpr const char* kName = "HierarchicalWheel";
  struct Timer : TimerNode {
    Payload payload{};
  };

  HierarchicalWheel<> wheel;

  void schedule(Timer& timer, Tick expiry) { wheel.schedule(timer, expiry); }
  void cancel(Timer& timer) { wheel.cancel(timer); }
  void reschedule(Timer& timer, Tick expiry) { wheel.reschedule(timer, expiry); }
  template <class F>
  void advance(Tick to, F&& fire) {
    wheel.advance(to, [&](TimerNode& node) { fire(static_cast<Timer&>(node)); });
  }
  std::optional<Tick> next_wakeup() const { return wheel.next_wakeup(); }
  std::size_t allocated_bytes() const { return sizeof(*this) + wheel.allocated_bytes(); }
};

struct ListSystem {
  static constexpr const char* kName = "list 256/64x4";
  struct Timer : ListNode {
    Payload payload{};
  };

  ListWheel wheel;

  void schedule(Timer& timer, Tick expiry) { wheel.schedule(timer, expiry); }
  void cancel(Timer& timer) { wheel.cancel(timer); }
  void reschedule(Timer& timer, Tick expiry) { wheel.reschedule(timer, expiry); }
  template <class F>
  void advance(Tick to, F&& fire) {
    wheel.advance(to, [&](ListNode& node) { fire(static_cast<Timer&>(node)); });
  }
  std::size_t allocated_bytes() const { return sizeof(*this); }
};

struct MultimapSystem {
  static constexpr const char* kName = "std::multimap";
  struct Timer {
    Payload payload{};
    std::multimap<Tick, Timer*>::iterator position{};
  };

  std::multimap<Tick, Timer*> timers;

  void schedule(Timer& timer, Tick expiry) { timer.position = timers.emplace(expiry, &timer); }
  void cancel(Timer& timer) { timers.erase(timer.position); }
  void reschedule(Timer& timer, Tick expiry) {
    cancel(timer);
    schedule(timer, expiry);
  }
  template <class F>
  void advance(Tick to, F&& fire) {
    while (!timers.empty() && timers.begin()->first <= to) {
      Timer& timer = *timers.begin()->second;
      timers.erase(timers.begin());
      fire(timer);
    }
  }
  std::optional<Tick> next_wakeup() const {
    return timers.empty() ? std::nullopt : std::optional<Tick>(timers.begin()->first);
  }
  std::size_t allocated_bytes() const {
    return timers.size() * 64;
  }  // a node of glibc's: 32 + 16 bytes, and malloc's 16
};

}  // namespace carillon::bench
