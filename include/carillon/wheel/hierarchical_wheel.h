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
//   wheel.schedule(session, wheel.now() + 30'000);
//   ...
//   wheel.reschedule(session, wheel.now() + 30'000);   // a packet came: one store
//   ...
//   wheel.advance(now_ms(), [](carillon::TimerNode& node) { close(static_cast<Session&>(node)); });
//   sleep_until(wheel.next_wakeup());
//
// This is the default, HierarchicalWheel<>. Other geometries make other wheels of it: levels of any
// sizes (levels.h), Linux's five wheels (linux_wheel.h), Kafka's growing ones (kafka_wheel.h), a
// clock (clock_wheel.h), one level only (simple_wheel.h).
//
// How it works
// ------------
// Time is read as digits (BinaryDigits in geometry.h): level 0 has one slot per tick for the ticks
// that differ from now() in the last digit only, level 1 one slot per 256 ticks for those that
// differ in the last two, and so on: 8 levels for 64 bits. When the hand comes to the start of a
// slot of a higher level, the slot is *cascaded*: each of its timers moves to a lower level. When
// it comes to a slot of level 0, its timers fire.
//  - Nothing wraps: a slot that holds a timer is always ahead of the hand.
//  - The lowest non-empty level holds the earliest timers, and one bit per slot says which come
//    first.
//  - Timers of one tick stay in the order they came: a slot is cascaded before anything can be
//    scheduled below it.
//
// A slot is an array of pointers (slot.h), so that its timers can be fetched from memory all at
// once. Re-arming a timer for later stores its new expiry and leaves its entry where it is: when
// the entry comes up, the timer moves on to where it belongs by then. Cancelling writes null to the
// entry. Null entries go when their slot comes up, or are swept before they are many
// (slot_table.h).
//
// Bounds
// ------
// schedule, cancel, reschedule: O(1). One that makes a slot grow may look at 4 chunks (of 62
// entries) to sweep them, a cancel at one. next_wakeup: O(1). A jump over empty time: O(1).
// advance, without a limit: O(1) per timer fired, per re-armed timer met and per null entry met,
// and each timer cascades at most once per level. With a limit, it looks at no more than kMoves +
// limit + 62 entries. A call that ends for that has fired fewer than `limit` timers, and
// next_wakeup() is now(), as if ended by the limit: call again. The default kMoves, 2^20, is some
// 10 ms of work; an owner who must not pause that long chooses less. Memory: 16 bytes in the node
// and 8 in a slot per timer, twice that again at most for null entries, 35 KiB for the empty slots,
// half a chunk (256 bytes) per slot with more than a lone timer, and half a megabyte kept for the
// next peak. With HierarchicalWheel<> wheel(now, Pages::kHuge) the slots lie in pages of 2 MiB
// (pages.h), of which one is kept for the next peak: cancels among a million timers take a
// twentieth to a tenth less.
//
// With other geometries, each advance that has something to do, and each jump, also looks at the
// bits of each level (geometry.h), O(levels).
#pragma once

#include <algorithm>
#include <cstddef>

#include "carillon/wheel/detail/slot_wheel.h"
#include "carillon/wheel/geometry.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// The contracts are those of TimerSet (timer_set.h), for expiries up to now() + kLongestDelay:
// 2^64-1 in the default. What lies beyond is refused with std::out_of_range. Neither copied nor
// moved: callbacks keep its address.
template <class Geometry = BinaryDigits<8>, std::size_t kChunkWords = 64,
          std::size_t kMoves = std::size_t{1} << 20>
class HierarchicalWheel
    : public detail::SlotWheel<HierarchicalWheel<Geometry, kChunkWords, kMoves>, Geometry::kQueues,
                               kChunkWords, kMoves, Geometry::kLonePlaces> {
  using Base = detail::SlotWheel<HierarchicalWheel, Geometry::kQueues, kChunkWords, kMoves,
                                 Geometry::kLonePlaces>;

 public:
  static constexpr Tick kLongestDelay = Geometry::kLongestDelay;
  static constexpr std::size_t kSlots = Geometry::kSlots;  // of all levels

  explicit HierarchicalWheel(Tick start_tick = 0, Pages pages = Pages::kDefault) noexcept
      : Base(start_tick, pages) {}
  ~HierarchicalWheel() {
    this->clear([](TimerNode&) noexcept {});
  }

  // How many levels there are. Of a geometry that does not cover all levels in order, those that a
  // timer has needed so far.
  unsigned levels() const noexcept { return levels_; }

  void check_invariants() const;

 private:
  friend Base;
  friend typename Base::AdvanceAndFire;
  using Base::next_;
  using Base::now_;
  using Base::table_;
  using typename Base::Table;
  using typename Base::WorkType;
  using Stop = detail::Stop;

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
  Stop next_stop() const noexcept {
    if (cascading_ != 0) return {now_ + 1, cascading_, true};
    if (table_.no_time_slot()) return {};
    if constexpr (Geometry::kInOrder) {
      const std::size_t queue = table_.first_time_slot();
      return {Geometry::start(now_, queue), queue, true};
    } else {
      return first_stop_of_all_levels();
    }
  }

  // Of those which begin at one tick the one of the highest level.
  Stop first_stop_of_all_levels() const noexcept {
    Stop first;
    for (unsigned level = 0; level < levels_; ++level) {
      if (first.exists && Geometry::slot_end(level, now_) > first.tick)
        break;  // no slot of this level begins by then
      const std::size_t queue = first_queue_of(level);
      if (queue == Geometry::kQueues) continue;
      const Tick start = Geometry::start(now_, queue);
      if (start <= first.tick) first = {start, queue, true};
    }
    return first;
  }

  // The first queue with entries on `level`, beginning behind the hand; kQueues if there is none.
  std::size_t first_queue_of(unsigned level) const noexcept {
    const std::size_t end = Geometry::kFirstQueue[level + 1];
    const std::size_t ahead = table_.next_time_slot(Geometry::queue_after(level, now_));
    if (ahead < end) return ahead;
    const std::size_t round = table_.next_time_slot(Geometry::kFirstQueue[level]);
    return round < end ? round : Geometry::kQueues;
  }

  // Cascades what begins at the stop. Several queues of one slot, and slots of several levels, may
  // begin together.
  bool approach(const Stop& stop, WorkType& work) {
    if (Geometry::level(stop.queue) == 0) return true;
    if constexpr (Geometry::kInOrder) return cascade(stop, work);
    for (Stop next = stop; next.exists && next.tick == stop.tick && Geometry::level(next.queue) > 0;
         next = next_stop()) {
      if (!cascade(next, work)) return false;
    }
    return true;
  }

  // Moves the timers of a queue, whose slot begins at stop.tick, to the levels below. Until that is
  // done the hand stays one tick before: all that was due by then has fired, and what is scheduled
  // into the queue meanwhile joins its end and keeps its turn. False: stopped by the bound; the
  // next call goes on.
  bool cascade(const Stop& stop, WorkType& work) {
    this->hold_before(stop.tick);
    cascading_ = stop.queue;
    const unsigned origin = Geometry::origin(stop.queue);
    const bool done = this->read_queue(stop.queue, work, [&](TimerNode** entry) {
      TimerNode& node = **entry;
      if (!put_alone(node, stop.tick)) this->place(node, stop.tick, origin);
      *entry = nullptr;
    });
    if (done) cascading_ = 0;
    return done;
  }

  // The short way for what goes to a slot of level 0 in which nothing stands.
  bool put_alone(TimerNode& node, Tick hand) noexcept {
    if constexpr (Geometry::kLonePlaces == 0) {
      return false;
    } else {
      const Tick expiry = node.expiry();
      return (hand ^ expiry) < Geometry::kLonePlaces &&
             table_.put_alone(expiry % Geometry::kLonePlaces, node);
    }
  }

  void arrive(Tick tick) noexcept {
    const std::size_t first = Geometry::tick_queue(tick);
    if constexpr (Geometry::kLonePlaces != 0) return table_.arrive(first);
    for (std::size_t queue = first; queue < first + Geometry::kQueuesPerTick; ++queue)
      table_.make_due(queue);
  }

  void emptied() noexcept { cascading_ = 0; }

  // Invariants
  //  - the slots of the levels that hold entries are ahead of the hand, which for the levels below
  //    that of cascading_ is at now_ + 1;
  //  - no timer is in a slot that begins after its expiry;
  //  - next_ <= the start of every non-empty slot.
  std::size_t cascading_ =
      0;  // the queue beginning at now_ + 1 that has been cascaded in part; 0: none
  unsigned levels_ = Geometry::kInOrder ? Geometry::kLevels : 1;
};

template <class Geometry, std::size_t kChunkWords, std::size_t kMoves>
void HierarchicalWheel<Geometry, kChunkWords, kMoves>::check_invariants() const {
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
