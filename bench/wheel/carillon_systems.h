// Carillon's own Systems (workloads.h): ModelSystem for any model, with nodes that its owner
// embeds, and PoolSystem for TimerPool.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "carillon/wheel/timer_pool.h"
#include "carillon/wheel/timer_set.h"
#include "workloads.h"

namespace carillon::bench {

// The first delay that a model refuses.
template <class Model>
constexpr Tick range_of() {
  if constexpr (requires { Model::kLongestDelay; }) {
    return std::min(Model::kLongestDelay, kEveryRange - 1) + 1;
  } else {
    return kEveryRange;
  }
}

template <TimerSet Model, WheelPages kPages = WheelPages::kDefault>
class ModelSystem {
 public:
  static constexpr Tick kRange = range_of<Model>();
  static constexpr bool kHandles = false;
  static constexpr bool kSleeps = false;

  struct Timer : TimerNode {
    Payload payload{};
  };

  explicit ModelSystem(std::span<Timer> /*timers*/) {}

  void reserve(std::size_t timers) requires requires(Model model) { model.reserve(timers); }
  { model_.reserve(timers); }
  void schedule(Timer& timer, Tick expiry) { model_.schedule(timer, Moment{expiry}); }
  void cancel(Timer& timer) { model_.cancel(timer); }
  void reschedule(Timer& timer, Tick expiry) { model_.reschedule(timer, Moment{expiry}); }
  template <class Fire>
  void advance(Tick to, Fire&& fire) {
    model_.advance(to, [&](TimerNode& node) {
      auto& timer = static_cast<Timer&>(node);
      fire(timer, timer.payload);
    });
  }
  std::optional<Tick> next_wakeup() const { return model_.next_wakeup(); }

 private:
  static Model make() {
    if constexpr (kPages == WheelPages::kDefault)
      return Model();
    else
      return Model(0, kPages);
  }

  Model model_ = make();
};

template <TimerSet Model>
class PoolSystem {
 public:
  static constexpr Tick kRange = range_of<Model>();
  static constexpr bool kHandles = true;
  static constexpr bool kSleeps = false;

  struct Timer {
    TimerId id;
  };

  explicit PoolSystem(std::span<Timer> timers) : timers_(timers) {}

  void reserve(std::size_t timers) { pool_.reserve(timers); }
  void schedule(Timer& timer, Tick expiry) {
    timer.id = pool_.schedule(Moment{expiry},
                              Payload{0, static_cast<std::uint64_t>(&timer - timers_.data())});
  }
  void cancel(Timer& timer) { pool_.cancel(timer.id); }
  void reschedule(Timer& timer, Tick expiry) {
    if (!pool_.reschedule(timer.id, Moment{expiry})) schedule(timer, expiry);
  }
  template <class Fire>
  void advance(Tick to, Fire&& fire) {
    pool_.advance(to, [&](TimerId, Payload&& payload) { fire(timers_[payload[1]], payload); });
  }
  std::optional<Tick> next_wakeup() const { return pool_.next_wakeup(); }

 private:
  std::span<Timer> timers_;
  TimerPool<Payload, Model> pool_;
};

}  // namespace carillon::bench
