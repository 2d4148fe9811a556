// HierarchicalWheel: Carillon's own timing wheel, for any number of timers over the whole range of
// 64-bit ticks.
//
// Choose it unless you have a reason not to: schedule, cancel and re-arm are O(1), timers fire
// exactly at their tick, the next wake-up is known at any time, and a jump over empty time costs
// nothing.
//
//   struct Session : carillon::TimerNode { std::string user; };
//
//   carillon::HierarchicalWheel<> wheel(now_ms());
//   wheel.schedule_after(session, 30'000);
//   ...
//   wheel.reschedule_after(session, 30'000);   // a packet came; this costs one store
//   ...
//   wheel.advance(now_ms(), [](carillon::TimerNode& node) { close(static_cast<Session&>(node)); });
//   sleep_until(wheel.next_wakeup());
//
// This is the default, HierarchicalWheel<>. Other geometries make other wheels of this class:
// levels of any sizes (levels.h), Linux's five wheels (linux_wheel.h), Kafka's growing ones
// (kafka_wheel.h), a clock (clock_wheel.h), one level only (simple_wheel.h).
//
// Where to read on
// ----------------
// advance() and the firing of timers: detail/advance_and_fire.h, which also says how the files of a
// wheel fit together. schedule() and reschedule(): detail/slot_wheel.h. This file: levels,
// cascades, and which slot comes next.
//
// How it works
// ------------
// A tick is a number with 8 digits to base 256, one per level (BinaryDigits in geometry.h). Level 0
// has one slot per tick, for the ticks that differ from now() in the last digit only. Level 1 has
// one slot per 256 ticks, for the ticks that differ in the last two digits; and so on, 8 levels for
// 64 bits. When the hand (now()) comes to the start of a slot of a higher level, the slot is
// *cascaded*: each of its timers moves to a lower level. When the hand comes to a slot of level 0,
// the timers of the slot fire.
//  - Nothing wraps: a slot that holds a timer is always ahead of the hand.
//  - The lowest non-empty level holds the earliest timers. One bit per slot finds its first
//    non-empty slot.
//  - Timers of one tick stay in the order in which they were scheduled, because a slot is cascaded
//    before any timer can be scheduled into the slots below it.
//
// A slot is an array of entries, which are pointers to timers (detail/slot.h), so that its timers
// can be fetched from memory all at once. Re-arming a timer for later stores its new expiry, and
// leaves its entry in its old slot. When that slot comes up, the timer moves to the slot in which
// it belongs by then. Cancelling a timer writes null to its entry. Null entries are dropped when
// their slot comes up, or swept out before they are many (detail/slot_table.h).
//
// Bounds
// ------
//  - schedule, cancel, reschedule: O(1). A call that makes a slot grow may sweep 4 chunks of 62
//    entries, a cancel one chunk.
//  - next_wakeup: O(1).
//  - advance over empty time, however long: O(1).
//  - advance without a limit: O(1) per timer fired, per re-armed timer met and per null entry met.
//    Each timer cascades at most once per level.
//  - advance with a limit reads at most kEntryBudget + limit + 62 entries. If that bound ends a
//    call, fewer than `limit` timers have fired and next_wakeup() is now(), as after a call that
//    the limit has ended: call again. The default kEntryBudget, 2^20, is about 10 ms of work.
//    Choose a smaller one if the owner must not pause that long.
//  - Memory: 16 bytes in the node and 8 in a slot per timer, and at most twice the 8 for null
//    entries. 35 KiB for the empty slots, half a chunk (256 bytes) per slot with more than a lone
//    timer, and half a megabyte that is kept for the next peak.
//  - With HierarchicalWheel<> wheel(now, WheelPages::kHuge), the slots lie in pages of 2 MiB
//    (pages.h), one of which is kept for the next peak. Cancels among a million timers take 5 to
//    10 % less.
//  - With other geometries, each advance that has something to do, and each jump over empty time,
//    also reads the bits of each level (geometry.h): O(levels).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "carillon/wheel/detail/slot_wheel.h"
#include "carillon/wheel/geometry.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// The contracts are those of TimerSet (timer_set.h), for expiries up to now() + kLongestDelay,
// which is 2^64-1 ticks in the default. A later expiry is refused with std::out_of_range. A wheel
// can be neither copied nor moved: callbacks keep its address.
template <class Geometry = BinaryDigits<8>, std::size_t kChunkWords = 64,
          std::size_t kEntryBudget = std::size_t{1} << 20>
class HierarchicalWheel
    : public detail::SlotWheel<HierarchicalWheel<Geometry, kChunkWords, kEntryBudget>,
                               Geometry::kQueues, kChunkWords, kEntryBudget, Geometry::kLoneSlots> {
  using Base = detail::SlotWheel<HierarchicalWheel, Geometry::kQueues, kChunkWords, kEntryBudget,
                                 Geometry::kLoneSlots>;

 public:
  static constexpr Tick kLongestDelay = Geometry::kLongestDelay;
  static constexpr std::size_t kSlots = Geometry::kSlots;  // all levels together
  static constexpr unsigned kLevels = Geometry::kLevels;

  explicit HierarchicalWheel(Tick start_tick = 0, WheelPages pages = WheelPages::kDefault) noexcept
      : Base(start_tick, pages) {}
  ~HierarchicalWheel() {
    this->clear([](TimerNode&) noexcept {});
  }

  // How many levels there are. If the geometry is not kInOrder: how many a timer has needed so far.
  unsigned levels() const noexcept { return levels_; }

  // Adds the timers of each level to `timers`; those that are due at now() count on level 0. It
  // reads whole slots, from slot `from` of all levels on, until it has read `most` entries or more.
  // Returns the slot to go on with, or none if it has come to the end:
  //
  //   std::array<std::size_t, Wheel::kLevels> timers{};
  //   for (std::optional<std::size_t> next = 0; next;) {
  //     next = wheel.count_levels(timers, *next, 100'000);  // and then serve others
  //   }
  //
  // A timer that moves between two calls may be counted twice, or not at all. A timer that was
  // re-armed for later counts where it still stands. O(entries read): some 0.5 ms for a million.
  std::optional<std::size_t> count_levels(std::array<std::size_t, kLevels>& timers,
                                          std::size_t from, std::size_t most) const noexcept {
    for (std::size_t entries = 0; from < Table::kSlots && entries < most; ++from) {
      const auto slot = table_.count(from);
      timers[from < Geometry::kQueues ? Geometry::level(from) : 0] += slot.timers;
      entries += slot.entries;
    }
    return from < Table::kSlots ? std::optional(from) : std::nullopt;
  }

  void check_invariants() const;

 private:
  friend Base;
  friend typename Base::AdvanceAndFire;
  using Base::next_;
  using Base::now_;
  using Base::table_;
  using typename Base::Table;
  using typename Base::WorkType;
  using Event = detail::Event;

  static std::size_t queue_for(Tick hand, Tick expiry, unsigned origin) noexcept {
    return Geometry::queue(hand, expiry, origin);
  }

  void occupied(std::size_t queue, Tick expiry) noexcept {
    next_ = std::min(next_, Geometry::start_around(expiry, queue));
    if constexpr (!Geometry::kInOrder) levels_ = std::max(levels_, Geometry::level(queue) + 1);
  }

  static void pushing(std::size_t, Tick) noexcept {}

  static SlotPosition position_of(std::size_t queue, Tick) noexcept {
    return Geometry::position(queue);
  }

  // The start of the first non-empty slot ahead of the hand.
  Event next_event() const noexcept {
    if (cascading_ != 0) return {now_ + 1, cascading_, true};
    if (table_.no_time_slot()) return {};
    if constexpr (Geometry::kInOrder) {
      const std::size_t queue = table_.first_time_slot();
      return {Geometry::start(now_, queue), queue, true};
    } else {
      return first_event_of_all_levels();
    }
  }

  // The same for levels that are not in order. If several slots start at one tick, returns that of
  // the highest level.
  Event first_event_of_all_levels() const noexcept {
    Event first;
    for (unsigned level = 0; level < levels_; ++level) {
      // No slot of this level, or of those above, starts by then.
      if (first.exists && Geometry::slot_end(level, now_) > first.tick) break;
      const std::size_t queue = first_queue_of(level);
      if (queue == Geometry::kQueues) continue;
      const Tick start = Geometry::start(now_, queue);
      if (start <= first.tick) first = {start, queue, true};
    }
    return first;
  }

  // The first queue with entries on `level`, ahead of the hand; kQueues if there is no such queue.
  std::size_t first_queue_of(unsigned level) const noexcept {
    const std::size_t end = Geometry::kFirstQueue[level + 1];
    const std::size_t ahead = table_.next_time_slot(Geometry::queue_after(level, now_));
    if (ahead < end) return ahead;
    const std::size_t round = table_.next_time_slot(Geometry::kFirstQueue[level]);
    return round < end ? round : Geometry::kQueues;
  }

  // Cascades each queue that starts at the event's tick: several queues of one slot, and slots of
  // several levels, may start together. Returns false if work.spend() stopped it.
  bool approach(const Event& event, WorkType& work) {
    if (Geometry::level(event.queue) == 0) return true;
    if constexpr (Geometry::kInOrder) return cascade(event, work);
    for (Event next = event;
         next.exists && next.tick == event.tick && Geometry::level(next.queue) > 0;
         next = next_event()) {
      if (!cascade(next, work)) return false;
    }
    return true;
  }

  // Moves the timers of event.queue, whose slot starts at event.tick, to the levels below. Until
  // that is done, the hand stays one tick before it: all timers due by then have fired, and a timer
  // that is scheduled into the queue meanwhile joins its end, and so keeps its turn. Returns false
  // if work.spend() stopped it; the next call goes on.
  bool cascade(const Event& event, WorkType& work) {
    this->hold_before(event.tick);
    cascading_ = event.queue;
    const unsigned origin = Geometry::origin(event.queue);
    const bool done = this->read_queue(event.queue, work, [&](TimerNode** entry) {
      TimerNode& node = **entry;
      if (!put_alone(node, event.tick)) this->place(node, event.tick, origin);
      *entry = nullptr;
    });
    if (done) cascading_ = 0;
    return done;
  }

  // The short way for a timer that goes to an empty slot of level 0. Returns false if it does not.
  bool put_alone(TimerNode& node, Tick hand) noexcept {
    if constexpr (Geometry::kLoneSlots == 0) {
      return false;
    } else {
      const Tick expiry = node.expiry();
      return (hand ^ expiry) < Geometry::kLoneSlots &&
             table_.put_alone(expiry % Geometry::kLoneSlots, node);
    }
  }

  void arrive(Tick tick) noexcept {
    const std::size_t first = Geometry::tick_queue(tick);
    if constexpr (Geometry::kLoneSlots != 0) return table_.arrive(first);
    for (std::size_t queue = first; queue < first + Geometry::kQueuesPerTick; ++queue)
      table_.make_due(queue);
  }

  void emptied() noexcept { cascading_ = 0; }

  // Invariants
  //  - a slot that holds entries is ahead of the hand. For the levels below that of cascading_, the
  //    hand counts as being at now_ + 1;
  //  - no timer is in a slot that starts after its expiry;
  //  - next_ <= the start of every non-empty slot.

  // The queue, starting at now_ + 1, that has been cascaded in part; 0 if no queue has.
  std::size_t cascading_ = 0;
  unsigned levels_ = Geometry::kInOrder ? Geometry::kLevels : 1;
};

template <class Geometry, std::size_t kChunkWords, std::size_t kEntryBudget>
void HierarchicalWheel<Geometry, kChunkWords, kEntryBudget>::check_invariants() const {
  Base::check_invariants();
  for (std::size_t queue = table_.next_time_slot(0); queue < Geometry::kQueues;
       queue = table_.next_time_slot(queue + 1)) {
    if (queue == table_.arrived()) continue;
    const bool below = Geometry::level(queue) < Geometry::level(cascading_);
    const Tick start = Geometry::start(Geometry::kInOrder && below ? now_ + 1 : now_, queue);
    Base::require(start > now_, "a slot that holds timers is not ahead of the hand");
    Base::require(next_ <= start,
                  "the next wake-up is after the start of a slot that holds timers");
    if (const TimerNode* lone = table_.lone(queue)) {
      Base::require(lone->expiry() >= start, "a timer is in a slot that begins after its expiry");
    }
    const auto& slot = table_[queue];
    for (auto* chunk = slot.front(); chunk != nullptr; chunk = chunk->next) {
      for (TimerNode** entry = chunk->begin(); entry != slot.end_of(chunk); ++entry) {
        const bool ahead = *entry == nullptr || (*entry)->expiry() >= start;
        Base::require(ahead, "a timer is in a slot that begins after its expiry");
      }
    }
    Base::require(Geometry::level(queue) < levels_,
                  "a timer is on a level that was not needed yet");
  }
}

static_assert(TimerSet<HierarchicalWheel<>>);

}  // namespace carillon
