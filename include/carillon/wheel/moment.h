// Moment: a point in time, as a type of its own. Tick: the number in it, and a distance.
//
// A compiler that takes any number for a moment finds no mistake in wheel.schedule(timer, 30),
// where now() + 30 was meant: such a timer would fire at once. So a moment must be named:
//
//   wheel.schedule(timer, wheel.now() + 30);          // a moment and a number make a moment
//   wheel.schedule(timer, carillon::Moment{30});      // at tick 30
//   wheel.schedule(timer, 30);                        // does not compile
//   wheel.schedule_after(timer, 30);
//   wheel.schedule_after(timer, wheel.now() + 30);    // does not compile
//
// A Moment becomes a number by itself; a number never becomes a Moment by itself. advance() takes
// the numbers of the owner's clock as they are: it refuses to go back, and so finds this mistake.
#pragma once

#include <concepts>
#include <cstdint>

namespace carillon {

// A number of ticks, counted in units of the owner's choice (a millisecond, a frame, a jiffy): how
// long something takes, or how far a moment is from an origin of the owner's choice. The whole
// range 0 .. 2^64-1 is valid; ticks never wrap.
using Tick = std::uint64_t;

// A tick that is a point in time.
class Moment {
 public:
  constexpr Moment() noexcept = default;  // tick 0
  template <std::integral Integer>
  explicit constexpr Moment(Integer tick) noexcept : tick_(static_cast<Tick>(tick)) {}

  constexpr operator Tick() const noexcept { return tick_; }  // NOLINT(google-explicit-constructor)

  template <std::integral Integer>
  friend constexpr Moment operator+(Moment moment, Integer ticks) noexcept {
    return Moment{moment.tick_ + static_cast<Tick>(ticks)};
  }
  template <std::integral Integer>
  friend constexpr Moment operator+(Integer ticks, Moment moment) noexcept {
    return moment + ticks;
  }
  template <std::integral Integer>
  friend constexpr Moment operator-(Moment moment, Integer ticks) noexcept {
    return Moment{moment.tick_ - static_cast<Tick>(ticks)};
  }

 private:
  Tick tick_ = 0;
};

}  // namespace carillon
