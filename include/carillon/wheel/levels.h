// WheelLevels: the geometry (geometry.h) of a wheel with levels of any sizes, like those of a
// clock, of Linux or of Kafka.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "carillon/wheel/slot_position.h"
#include "carillon/wheel/timer_node.h"

namespace carillon {

// On which level a timer goes. The hand of a level is the slot that now() lies in on that level.
enum class SlotPlacement {
  // The highest level on which the expiry lies in another slot than the hand, as one reads a clock.
  kDigit,
  // The lowest level that covers more ticks than the delay, expiry - now() (Linux).
  kDistance,
  // The lowest level on which the expiry is less than a whole round of slots ahead of the hand
  // (Kafka).
  kSlotsAhead,
};

// WheelLevels<SlotPlacement::kDigit, 60, 60, 24, 30> is a clock of seconds, minutes, hours and
// days, if a tick is a second. Sizes are numbers of slots, lowest level first. A slot of level 0 is
// one tick wide, a slot of level n as wide as a whole round of level n - 1. The slot of a tick on a
// level is tick / width of a slot, modulo the level's size: so the hand meets the slots of a level
// one after the other, and begins anew after the last. The wheel takes delays shorter than a round
// of its top level (2^64 ticks at most).
//
// Wrapping does no harm. On its level, a timer is at least one slot ahead of the hand, and at most
// as many slots as the level has. So a slot never holds timers of two rounds. A timer in the hand's
// own slot comes up when the hand comes round to that slot.
//
// Order within a tick. With kDigit, a timer cannot be placed below a slot before the hand has
// reached that slot and emptied it: first come is first served. With the other placements, a timer
// that was scheduled early waits on a high level while others of the same tick are placed directly
// below. So a slot has a queue for each level on which its timers can have been placed first, their
// *origin*, and the queue with the highest origin fires first. For one tick the origin falls as
// time goes by, so a timer with a higher origin was scheduled earlier.
template <SlotPlacement kPlacement, std::size_t... kSizes>
struct WheelLevels {
  static_assert(sizeof...(kSizes) >= 1 && ((kSizes >= 2) && ...),
                "a wheel has levels, and a level has 2 slots or more");

  static constexpr unsigned kLevels = sizeof...(kSizes);
  static constexpr std::size_t kSlots = (kSizes + ...);
  static constexpr std::array<std::size_t, kLevels> kSize{kSizes...};

  // Ticks per slot of each level, and behind them ticks per round of the top level. A width beyond
  // 2^64-1 is stored as 2^64-1.
  static constexpr std::array<Tick, kLevels + 1> kWidth = [] {
    std::array<Tick, kLevels + 1> width{1};
    for (unsigned level = 0; level < kLevels; ++level) {
      const bool fits = width[level] <= std::numeric_limits<Tick>::max() / kSize[level];
      width[level + 1] = fits ? width[level] * kSize[level] : std::numeric_limits<Tick>::max();
    }
    return width;
  }();
  static_assert(kLevels == 1 || kWidth[kLevels - 1] != std::numeric_limits<Tick>::max(),
                "the slots of the top level are wider than 2^64 ticks: leave it out");

  static constexpr Tick kLongestDelay =
      kWidth[kLevels] == std::numeric_limits<Tick>::max() ? kWidth[kLevels] : kWidth[kLevels] - 1;

  // How many queues each slot of a level has.
  static constexpr std::size_t queues_per_slot(unsigned level) noexcept {
    return kPlacement == SlotPlacement::kDigit ? 1 : kLevels - level;
  }

  static constexpr std::array<std::size_t, kLevels + 1> kFirstQueue = [] {
    std::array<std::size_t, kLevels + 1> first{};
    for (unsigned level = 0; level < kLevels; ++level)
      first[level + 1] = first[level] + kSize[level] * queues_per_slot(level);
    return first;
  }();

  static constexpr std::size_t kQueues = kFirstQueue[kLevels];
  static constexpr std::size_t kQueuesPerTick = queues_per_slot(0);
  static constexpr bool kInOrder = false;
  static constexpr std::size_t kLoneSlots = 0;

  static constexpr std::size_t queue(Tick hand, Tick expiry, unsigned origin = 0) noexcept {
    const unsigned level = level_of(hand, expiry);
    const std::size_t first = kFirstQueue[level] + slot(level, expiry) * queues_per_slot(level);
    return kPlacement == SlotPlacement::kDigit ? first
                                               : first + (kLevels - 1 - std::max(level, origin));
  }

  static constexpr unsigned origin(std::size_t queue) noexcept {
    if (kPlacement == SlotPlacement::kDigit) return 0;
    const unsigned on = level(queue);
    return kLevels - 1 - static_cast<unsigned>((queue - kFirstQueue[on]) % queues_per_slot(on));
  }

  static constexpr std::size_t tick_queue(Tick tick) noexcept {
    return slot(0, tick) * queues_per_slot(0);
  }

  static constexpr unsigned level(std::size_t queue) noexcept {
    unsigned level = 0;
    while (queue >= kFirstQueue[level + 1]) ++level;
    return level;
  }

  static constexpr SlotPosition position(std::size_t queue) noexcept {
    const unsigned on = level(queue);
    return {on, (queue - kFirstQueue[on]) / queues_per_slot(on)};
  }

  static constexpr Tick start(Tick hand, std::size_t queue) noexcept {
    const auto [on, at] = position(queue);
    const std::size_t ahead = (at + kSize[on] - slot(on, hand)) % kSize[on];
    return (hand / kWidth[on] + (ahead == 0 ? kSize[on] : ahead)) * kWidth[on];
  }

  static constexpr Tick start_around(Tick tick, std::size_t queue) noexcept {
    const Tick width = kWidth[level(queue)];
    return tick / width * width;
  }

  // The slot of `tick` on `level`.
  static constexpr std::size_t slot(unsigned level, Tick tick) noexcept {
    return tick / kWidth[level] % kSize[level];
  }

  // The first tick behind the slot of `tick` on `level`. At the end of time it wraps, to a tick
  // before `tick`.
  static constexpr Tick slot_end(unsigned level, Tick tick) noexcept {
    return (tick / kWidth[level] + 1) * kWidth[level];
  }

  // The queue behind the hand's own slot: the search for the next queue of `level` starts there.
  static constexpr std::size_t queue_after(unsigned level, Tick hand) noexcept {
    return kFirstQueue[level] + (slot(level, hand) + 1) % kSize[level] * queues_per_slot(level);
  }

 private:
  static constexpr unsigned level_of(Tick hand, Tick expiry) noexcept {
    if constexpr (kPlacement == SlotPlacement::kDigit) {
      unsigned level = kLevels - 1;
      while (level > 0 && expiry / kWidth[level] == hand / kWidth[level]) --level;
      return level;
    } else {
      unsigned level = 0;
      while (level < kLevels - 1 && !in_reach(level, hand, expiry)) ++level;
      return level;
    }
  }

  static constexpr bool in_reach(unsigned level, Tick hand, Tick expiry) noexcept {
    if constexpr (kPlacement == SlotPlacement::kDistance) return expiry - hand < kWidth[level + 1];
    return expiry / kWidth[level] - hand / kWidth[level] < kSize[level];
  }
};

namespace detail {

// How many levels of kSize slots it takes to reach 2^64 ticks.
template <std::size_t kSize>
constexpr std::size_t levels_for_all_ticks() noexcept {
  std::size_t levels = 1;
  for (Tick last = std::numeric_limits<Tick>::max() / kSize; last > 0; last /= kSize) ++levels;
  return levels;
}

template <SlotPlacement kPlacement, std::size_t kSize, std::size_t... kIndex>
WheelLevels<kPlacement, (static_cast<void>(kIndex), kSize)...> equal_levels(
    std::index_sequence<kIndex...>);

}  // namespace detail

// As many levels of kSize slots as it takes to reach 2^64 ticks. EqualLevels<SlotPlacement::kDigit,
// 10> reads ticks as decimal numbers.
template <SlotPlacement kPlacement, std::size_t kSize>
using EqualLevels = decltype(detail::equal_levels<kPlacement, kSize>(
    std::make_index_sequence<detail::levels_for_all_ticks<kSize>()>()));

}  // namespace carillon
