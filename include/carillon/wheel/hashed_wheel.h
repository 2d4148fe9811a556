// HashedWheel: one wheel with rounds, for delays of any length, as in Netty, Dubbo and Akka.
//
// Choose it to compare, or if most timers are cancelled before the hand comes to them and delays
// are a few rounds at most: scheduling is one store, and nothing ever cascades. The default
// (hierarchical_wheel.h) does not look at a timer before its time; this one looks at all timers of
// a slot whenever one of them is due.
//
//   carillon::HashedWheel<8> wheel(2);
//   wheel.schedule(timer, 2 + 10);       // slot 4: 12 modulo 8
//   wheel.rounds(timer);                 // 1: it fires when the hand comes to slot 4 the second time
//
// How it works
// ------------
// A timer goes into slot `expiry modulo kSlots`; kSlots is the count asked for, rounded up to a
// power of two. Its *rounds* are how often the hand passes that slot before. When the hand comes to
// a slot at which a timer is due, the slot is read once: what expires at that tick fires, the rest
// stays, in its order.
//
// Each slot knows a lower bound of its earliest expiry. So the hand passes by slots in which all
// have rounds left, and a jump over many turns goes from one expiry to the next, in order: all
// contracts of TimerSet (timer_set.h) hold. (Netty walks through each slot at each turn, to count
// rounds down, and fires in the order of the slots.)
//
// Scheme 6 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), section
// 6.1.2.
//
// Bounds
// ------
// schedule, cancel, reschedule, next_wakeup: O(1). advance: for each tick at which a timer fires,
// or was to fire before it was cancelled or re-armed, O(timers of its slot) once, and a look at the
// slots between it and the next such tick, O(kSlots) at most. A jump over empty time, however long:
// O(kSlots). With a limit, it looks at no more than kMoves + limit + 62 entries, as said in
// hierarchical_wheel.h. Memory: 24 bytes per slot; the rest as said there.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "carillon/wheel/detail/slot_wheel.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// The table's queues are the slots and, while the hand is about to come to a slot, two more: one
// for what expires there, and one for what stays.
template <std::size_t kRequestedSlots = 512, std::size_t kChunkWords = 64,
          std::size_t kMoves = std::size_t{1} << 20>
class HashedWheel
    : public detail::SlotWheel<HashedWheel<kRequestedSlots, kChunkWords, kMoves>,
                               std::bit_ceil(kRequestedSlots) + 2, kChunkWords, kMoves> {
  using Base =
      detail::SlotWheel<HashedWheel, std::bit_ceil(kRequestedSlots) + 2, kChunkWords, kMoves>;

 public:
  static_assert(kRequestedSlots >= 1, "a wheel has slots");
  static constexpr std::size_t kSlots = std::bit_ceil(kRequestedSlots);
  static constexpr Tick kLongestDelay = detail::kNever;  // any

  explicit HashedWheel(Tick start_tick = 0, Pages pages = Pages::kDefault) noexcept
      : Base(start_tick, pages) {}
  ~HashedWheel() {
    this->clear([](TimerNode&) noexcept {});
  }

  // How many times the hand comes to the slot of `node` before the time at which it fires.
  // REQUIRES: it is armed.
  Tick rounds(const TimerNode& node) const noexcept {
    return node.expiry() > now_ ? (node.expiry() - now_ - 1) / kSlots : 0;
  }

  static constexpr std::size_t slot_of(const TimerNode& node) noexcept {
    return slot(node.expiry());
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
  using Stop = detail::Stop;

  static constexpr std::size_t kArriving = kSlots;  // what expires at now_ + 1
  static constexpr std::size_t kStaying = kSlots + 1;
  static constexpr std::size_t kQueues = kSlots + 2;

  static constexpr std::size_t slot(Tick tick) noexcept { return tick % kSlots; }

  static std::size_t queue_for(Tick, Tick expiry, unsigned) noexcept { return slot(expiry); }

  void occupied(std::size_t queue, Tick) noexcept { earliest_[queue] = detail::kNever; }

  void pushing(std::size_t queue, Tick expiry) noexcept {
    earliest_[queue] = std::min(earliest_[queue], expiry);
    next_ = std::min(next_, expiry);
  }

  SlotPosition position_of(std::size_t queue, Tick) const noexcept {
    return {0, queue < kSlots ? queue : reading_};
  }

  // The slot with the earliest expiry. Within one turn of the hand, that is the first slot which is
  // due in this turn.
  Stop next_stop() const noexcept {
    if (reading_ != kNone) return {now_ + 1, reading_, true};
    Stop first;
    const std::size_t behind_hand = slot(now_) + 1;
    if (!due_within_a_turn(behind_hand, kSlots, first)) due_within_a_turn(0, behind_hand, first);
    return first;
  }

  bool due_within_a_turn(std::size_t begin, std::size_t end, Stop& first) const noexcept {
    for (std::size_t queue = table_.next_time_slot(begin); queue < end;
         queue = table_.next_time_slot(queue + 1)) {
      if (first.exists && earliest_[queue] >= first.tick) continue;
      first = {earliest_[queue], queue, true};
      if (first.tick - now_ <= kSlots) return true;
    }
    return false;
  }

  // Reads the slot. Until that is done the hand stays one tick before, and what is scheduled into
  // the slot meanwhile joins its end.
  bool approach(const Stop& stop, WorkType& work) {
    this->hold_before(stop.tick);
    reading_ = stop.queue;
    const bool done = this->read_queue(stop.queue, work, [&](TimerNode** entry) {
      const Tick expiry = (*entry)->expiry();
      const std::size_t queue = expiry == stop.tick          ? kArriving
                                : slot(expiry) == stop.queue ? kStaying
                                                             : slot(expiry);
      this->push_to(queue, **entry);
      *entry = nullptr;
    });
    if (!done) return false;
    if (!table_[kStaying].empty()) earliest_[stop.queue] = earliest_[kStaying];
    table_.append(kStaying, stop.queue);
    reading_ = kNone;
    return true;
  }

  void arrive(Tick) noexcept { table_.make_due(kArriving); }

  void emptied() noexcept { reading_ = kNone; }

  static constexpr std::size_t kNone = kSlots;

  // Invariants
  //  - now() < earliest_ <= the expiry of every timer of a slot that is not empty, and next_ is not
  //    after it;
  //  - kArriving and kStaying are empty unless a slot is being read.
  std::size_t reading_ = kNone;  // the slot of now_ + 1 that has been read in part; kNone: none
  std::array<Tick, kQueues>
      earliest_{};  // valid where a queue is not empty; a multiple of kSlots away from the slot's number
};

template <std::size_t kRequestedSlots, std::size_t kChunkWords, std::size_t kMoves>
void HashedWheel<kRequestedSlots, kChunkWords, kMoves>::check_invariants() const {
  Base::check_invariants();
  for (std::size_t queue = table_.next_time_slot(0); queue < kQueues;
       queue = table_.next_time_slot(queue + 1)) {
    Base::require(queue < kSlots || reading_ != kNone, "timers are between two slots");
    Base::require(earliest_[queue] > now_, "the hand has passed the earliest timer of a slot");
    Base::require(next_ <= earliest_[queue],
                  "the next wake-up is after the earliest timer of a slot");
    Base::require(queue >= kSlots || slot(earliest_[queue]) == queue,
                  "the earliest timer of a slot belongs elsewhere");
    const auto& timers = table_[queue];
    for (auto* chunk = timers.front(); chunk != nullptr; chunk = chunk->next) {
      for (TimerNode** entry = chunk->begin(); entry != timers.end_of(chunk); ++entry) {
        const bool later = *entry == nullptr || (*entry)->expiry() >= earliest_[queue];
        Base::require(later, "a timer expires before the earliest of its slot");
      }
    }
  }
}

static_assert(TimerSet<HashedWheel<>>);

}  // namespace carillon
