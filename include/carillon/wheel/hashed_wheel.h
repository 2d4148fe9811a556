// HashedWheel: one wheel with rounds, for delays of any length, as in Netty, Dubbo and Akka.
//
// Choose it to compare, or if most timers are cancelled before the hand comes to them and delays
// are a few rounds at most: scheduling is one store, and nothing ever cascades. Its price: whenever
// one timer of a slot is due, it reads all timers of the slot. The default (hierarchical_wheel.h)
// does not read a timer before its time.
//
//   carillon::HashedWheel<8> wheel(2);
//   wheel.schedule(timer, wheel.now() + 10);  // slot 4: 12 modulo 8
//   wheel.rounds(timer);  // 1: fires when the hand comes to slot 4 the second time
//
// How it works
// ------------
// A timer goes into slot `expiry modulo kSlots`; kSlots is the count asked for, rounded up to a
// power of two. Its *rounds* are how often the hand passes that slot before the timer fires. When
// the hand comes to a slot with a timer that is due, the slot is read once: the timers of that tick
// fire, the others stay, in their order.
//
// Each slot knows a lower bound of its earliest expiry. So the hand passes by slots in which all
// timers have rounds left, and a jump over many rounds goes from one expiry to the next, in order:
// all contracts of TimerSet (timer_set.h) hold. (Netty walks through each slot in each round, to
// count rounds down, and fires in the order of the slots.) advance() and the firing of timers:
// detail/advance_and_fire.h.
//
// Scheme 6 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), section
// 6.1.2.
//
// Bounds
// ------
//  - schedule, cancel, reschedule, next_wakeup: O(1).
//  - advance: O(timers of the slot) for each tick at which a timer fires, or would have fired
//    without being cancelled or re-armed. From there to the next such tick it reads the slots
//    between: O(kSlots) at most.
//  - advance over empty time, however long: O(kSlots).
//  - advance with a limit reads at most kEntryBudget + limit + 62 entries, as in
//    hierarchical_wheel.h.
//  - Memory: 24 bytes per slot; the rest as in hierarchical_wheel.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "carillon/require.h"
#include "carillon/wheel/detail/slot_wheel.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// Each slot is one queue of the table. There are two more queues, for the moment before the hand
// comes to a slot: one for its timers that expire then, and one for those that stay.
template <std::size_t kRequestedSlots = 512, std::size_t kChunkWords = 64,
          std::size_t kEntryBudget = std::size_t{1} << 20>
class HashedWheel
    : public detail::SlotWheel<HashedWheel<kRequestedSlots, kChunkWords, kEntryBudget>,
                               std::bit_ceil(kRequestedSlots) + 2, kChunkWords, kEntryBudget> {
  using Base =
      detail::SlotWheel<HashedWheel, std::bit_ceil(kRequestedSlots) + 2, kChunkWords, kEntryBudget>;

 public:
  static_assert(kRequestedSlots >= 1, "a wheel has slots");
  static constexpr std::size_t kSlots = std::bit_ceil(kRequestedSlots);
  static constexpr Tick kLongestDelay = detail::kNever;  // any

  explicit HashedWheel(Tick start_tick = 0, WheelPages pages = WheelPages::kDefault) noexcept
      : Base(start_tick, pages) {}
  ~HashedWheel() {
    this->clear([](TimerNode&) noexcept {});
  }

  // How many times the hand comes to the slot of `node` before the time at which it fires.
  // REQUIRES: it is armed.
  Tick rounds(const TimerNode& node) const noexcept {
    CARILLON_REQUIRE(node.armed(), node.expiry());
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
  using Event = detail::Event;

  static constexpr std::size_t kArriving = kSlots;  // the timers that expire at now_ + 1
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

  // The slot with the earliest expiry. If any slot is due within one round of the hand, that is the
  // first of them.
  Event next_event() const noexcept {
    if (reading_ != kNone) return {now_ + 1, reading_, true};
    Event first;
    const std::size_t behind_hand = slot(now_) + 1;
    if (!due_within_a_turn(behind_hand, kSlots, first)) due_within_a_turn(0, behind_hand, first);
    return first;
  }

  // Looks at the slots from `begin` to `end`. Sets `first` to the earliest of them and what it was
  // before. Returns true if that is at most a round ahead, which makes it the earliest of all.
  bool due_within_a_turn(std::size_t begin, std::size_t end, Event& first) const noexcept {
    for (std::size_t queue = table_.next_time_slot(begin); queue < end;
         queue = table_.next_time_slot(queue + 1)) {
      if (first.exists && earliest_[queue] >= first.tick) continue;
      first = {earliest_[queue], queue, true};
      if (first.tick - now_ <= kSlots) return true;
    }
    return false;
  }

  // Moves the timers of the slot to kArriving or kStaying; a timer that was re-armed moves to the
  // slot of its new tick. Until that is done, the hand stays one tick before event.tick, and a
  // timer that is scheduled into the slot meanwhile joins its end.
  bool approach(const Event& event, WorkType& work) {
    this->hold_before(event.tick);
    reading_ = event.queue;
    const bool done = this->read_queue(event.queue, work, [&](TimerNode** entry) {
      const Tick expiry = (*entry)->expiry();
      const std::size_t queue = expiry == event.tick          ? kArriving
                                : slot(expiry) == event.queue ? kStaying
                                                              : slot(expiry);
      this->push_to(queue, **entry);
      *entry = nullptr;
    });
    if (!done) return false;
    if (!table_[kStaying].empty()) earliest_[event.queue] = earliest_[kStaying];
    table_.append(kStaying, event.queue);
    reading_ = kNone;
    return true;
  }

  void arrive(Tick) noexcept { table_.make_due(kArriving); }

  void emptied() noexcept { reading_ = kNone; }

  static constexpr std::size_t kNone = kSlots;

  // Invariants
  //  - if a slot is not empty, now() < earliest_ <= the expiry of each of its timers, and
  //    next_ <= earliest_;
  //  - kArriving and kStaying are empty unless a slot is being read.
  std::size_t reading_ = kNone;  // the slot of now_ + 1 that has been read in part; kNone: none
  // Per queue, a tick of its slot: the lower bound of its expiries. Valid if it is not empty.
  std::array<Tick, kQueues> earliest_{};
};

template <std::size_t kRequestedSlots, std::size_t kChunkWords, std::size_t kEntryBudget>
void HashedWheel<kRequestedSlots, kChunkWords, kEntryBudget>::check_invariants() const {
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
