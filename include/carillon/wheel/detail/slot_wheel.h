// SlotWheel: schedule(), reschedule() and the questions that all wheels answer in the same way. A
// timer stands in a slot, and each slot is one queue, or several, of the wheel's table.
//
// advance() and the firing of timers: advance_and_fire.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/require.h"
#include "carillon/wheel/detail/advance_and_fire.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/slack.h"
#include "carillon/wheel/slot_position.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Base of the class Wheel, which has, beside what AdvanceAndFire asks for,
//   kLongestDelay
//       The largest expiry - now() that it takes.
//   std::size_t queue_for(hand, expiry, origin) const
//       The queue in which a timer goes, in the terms of geometry.h.
//   void occupied(queue, expiry) noexcept
//       Is called when an empty queue is about to get an entry, for that expiry.
//   void pushing(queue, expiry) noexcept
//       Is called when any queue is about to get an entry, for that expiry.
//   SlotPosition position_of(queue, expiry) const
//       The slot in which a timer of that expiry sits if it stands in `queue`.
template <class Wheel, std::size_t kQueues, std::size_t kChunkWords, std::size_t kEntryBudget,
          std::size_t kLoneSlots = 0>
class SlotWheel : public AdvanceAndFire<Wheel, kQueues, kChunkWords, kEntryBudget, kLoneSlots> {
  using Base = AdvanceAndFire<Wheel, kQueues, kChunkWords, kEntryBudget, kLoneSlots>;

 public:
  // Throws std::out_of_range, with nothing changed, if expiry - now() is more than
  // Wheel::kLongestDelay.
  void schedule(TimerNode& node, Moment expiry) {
    if (node.armed()) [[unlikely]]
      return move(node, expiry);
    Table::put(entry_for(expiry), node, expiry);
    table_.count_in();
  }

  // The timer may fire at any tick of [expiry, expiry + slack] within the wheel's range. The wheel
  // chooses the cheapest (slack.h).
  void schedule(TimerNode& node, Moment expiry, Tick slack) {
    if constexpr (bounded()) {
      const Tick last = last_tick();
      if (expiry <= last) slack = std::min(slack, last - expiry);
    }
    schedule(node, Moment{relaxed_expiry(expiry, slack)});
  }

  // Throws as schedule() does. REQUIRES: if the timer is armed, this wheel has armed it.
  void reschedule(TimerNode& node, Moment expiry) {
    if (!node.armed()) return schedule(node, expiry);
    CARILLON_REQUIRE_DEBUG(table_.holds(node), node.expiry());
    // A timer that is due is not left where it stands: it would fire among those that still are.
    if (expiry >= node.expiry() && node.expiry() > now_) {
      refuse_beyond_range(expiry);
      Access::expiry(node) = expiry;
      return;
    }
    TimerNode** const entry = entry_for(expiry);
    *Access::entry(node) = nullptr;
    Table::put(entry, node, expiry);
  }

  // The slot in which `node` sits; none if it is due at now(). A timer that was re-armed for later
  // may still sit in its old slot. REQUIRES: this wheel has armed it. O(chunks): meant for displays
  // and debugging.
  std::optional<SlotPosition> position(const TimerNode& node) const noexcept {
    CARILLON_REQUIRE(node.armed(), node.expiry());
    CARILLON_REQUIRE_DEBUG(table_.holds(node), node.expiry());
    for (std::size_t queue = table_.next_time_slot(0); queue < kQueues;
         queue = table_.next_time_slot(queue + 1)) {
      if (queue == table_.arrived()) continue;
      if (table_.lone(queue) == &node) return wheel().position_of(queue, node.expiry());
      for (ChunkType* chunk = table_[queue].front(); chunk != nullptr; chunk = chunk->next) {
        TimerNode** const entry = Access::entry(node);
        if (entry >= chunk->begin() && entry < chunk->end())
          return wheel().position_of(queue, node.expiry());
      }
    }
    return std::nullopt;
  }

  // Calls visit(const TimerNode&, std::optional<SlotPosition>) for each pending timer. REQUIRES: it
  // does not call the wheel. O(n).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t queue = 0; queue < Table::kSlots; ++queue) {
      const bool due = queue >= kQueues || queue == table_.arrived();
      const auto show = [&](const TimerNode& node) {
        visit(node, due ? std::nullopt : std::optional(wheel().position_of(queue, node.expiry())));
      };
      if (const TimerNode* lone = table_.lone(queue)) show(*lone);
      for (ChunkType* chunk = table_[queue].front(); chunk != nullptr; chunk = chunk->next) {
        for (TimerNode** entry = chunk->begin(); entry != table_[queue].end_of(chunk); ++entry) {
          if (*entry != nullptr) show(**entry);
        }
      }
    }
  }

  // From now on no operation allocates while at most `timers` are pending. Throws std::bad_alloc.
  void reserve(std::size_t timers) { table_.reserve(timers); }

  // Bytes allocated beside the wheel object itself.
  std::size_t allocated_bytes() const noexcept { return table_.bytes(); }

 protected:
  using Base::next_;
  using Base::now_;
  using Base::table_;
  using typename Base::Access;
  using typename Base::ChunkType;
  using typename Base::SlotType;
  using typename Base::Table;

  SlotWheel(Tick start_tick, WheelPages pages) noexcept : Base(start_tick, pages) {}
  ~SlotWheel() = default;

 private:
  friend Base;

  // Apart, so that it takes no registers from schedule().
  [[gnu::noinline, gnu::cold]] void move(TimerNode& node, Moment expiry) {
    reschedule(node, expiry);
  }

  static constexpr bool bounded() noexcept {
    return Wheel::kLongestDelay != std::numeric_limits<Tick>::max();
  }

  Wheel& wheel() noexcept { return static_cast<Wheel&>(*this); }
  const Wheel& wheel() const noexcept { return static_cast<const Wheel&>(*this); }

  // A new entry for a timer that the owner schedules for `expiry`; the caller fills it at once. May
  // sweep, and so move any entry.
  TimerNode** entry_for(Tick expiry) {
    if (expiry <= now_) [[unlikely]]
      return this->overdue_entry();
    refuse_beyond_range(expiry);
    const std::size_t queue = wheel().queue_for(now_, expiry, 0);
    SlotType& slot = table_[queue];
    if (slot.needs_chunk()) [[unlikely]]
      return grow(queue, expiry);
    wheel().pushing(queue, expiry);
    return slot.take();
  }

  [[gnu::noinline]] TimerNode** grow(std::size_t queue, Tick expiry) {
    const auto added = table_.grow(queue);
    if (added.was_empty) wheel().occupied(queue, expiry);
    wheel().pushing(queue, expiry);
    return added.entry;
  }

 protected:
  // Moves a timer to the queue in which it belongs when the hand is at `hand`; its old entry stays
  // as it is. REQUIRES: its expiry is not before `hand`.
  void place(TimerNode& node, Tick hand, unsigned origin = 0) {
    CARILLON_REQUIRE_DEBUG(node.expiry() >= hand, node.expiry(), hand);
    const std::size_t queue = wheel().queue_for(hand, node.expiry(), origin);
    push_to(queue, node);
  }

  // Moves a timer to the end of `queue`; its old entry stays as it is.
  void push_to(std::size_t queue, TimerNode& node) {
    const Tick expiry = node.expiry();
    SlotType& slot = table_[queue];
    if (slot.needs_chunk()) [[unlikely]]
      return extend(queue, node);
    wheel().pushing(queue, expiry);
    Table::put(slot.take(), node, expiry);
  }

 private:
  [[gnu::noinline]] void extend(std::size_t queue, TimerNode& node) {
    const auto added = table_.extend(queue);
    if (added.was_empty) wheel().occupied(queue, node.expiry());
    wheel().pushing(queue, node.expiry());
    Table::put(added.entry, node, node.expiry());
  }

  // All timers that wait are in the table.
  template <class Sink>
  static void clear_waiting(Sink&) noexcept {}

  void refuse_beyond_range(Tick expiry) const {
    if constexpr (bounded()) {
      if (expiry > now_ && expiry - now_ > Wheel::kLongestDelay) [[unlikely]]
        throw_beyond_range(expiry);
    }
  }

  // The last tick that a timer can be scheduled for at now().
  Tick last_tick() const noexcept {
    const Tick end = std::numeric_limits<Tick>::max();
    return Wheel::kLongestDelay > end - now_ ? end : now_ + Wheel::kLongestDelay;
  }

  [[noreturn, gnu::noinline, gnu::cold]] void throw_beyond_range(Tick expiry) const {
    CARILLON_THROW std::out_of_range("carillon: expiry " + std::to_string(expiry) +
                                     " is beyond the range of the wheel: at tick " +
                                     std::to_string(now_) + " it takes expiries up to " +
                                     std::to_string(last_tick()) + " (" +
                                     std::to_string(Wheel::kLongestDelay) + " ticks ahead)");
  }
};

}  // namespace carillon::detail
