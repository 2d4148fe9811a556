// The fixture of the literal contract tests: four named timers. The timers that fire are returned
// as a string of their names.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include "carillon/wheel/timer_set.h"
#include "wheel/model_test.h"

namespace carillon::testing {

inline constexpr Tick kEndOfTime = std::numeric_limits<Tick>::max();

struct Timer : TimerNode {
  explicit Timer(char timer_name = '?') : name(timer_name) {}
  char name;
};

inline char name_of(TimerNode& node) {
  return static_cast<Timer&>(node).name;
}

class FourTimers : public ::testing::Test {
 public:
  static const ModelKinds& kinds() { return models(); }

 protected:
  // Advances `model` and returns the names of the timers that fired.
  static std::string fire(ModelUnderTest& model, Tick to, std::size_t limit = kNoLimit) {
    std::string names;
    model.advance(
        to, [&](TimerNode& node) { names += name_of(node); }, limit);
    model.check_invariants();
    return names;
  }

  // Advances from wake-up to wake-up until timers fire, and returns their names.
  static std::string fire_next(ModelUnderTest& model) {
    std::string names;
    while (names.empty() && !model.empty()) names = fire(model, *model.next_wakeup());
    return names;
  }

  // Returns true if `delay` is beyond the model's range. Then it has tested that schedule() refuses
  // the delay.
  static bool refuses(Tick delay) {
    if (delay <= ModelUnderTest::longest_delay()) return false;
    ModelUnderTest model;
    Timer timer;
    EXPECT_THROW(model.schedule(timer, delay), std::out_of_range) << delay;
    EXPECT_FALSE(timer.armed());
    EXPECT_TRUE(model.empty());
    model.check_invariants();
    return true;
  }

  Timer a{'a'}, b{'b'}, c{'c'}, d{'d'};
};

}  // namespace carillon::testing
