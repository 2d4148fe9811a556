// HierarchicalWheel: Carillon's own timing wheel, for any number of timers over the whole range of 64-bit ticks.
//
// Choose it unless you have a reason not to: schedule, cancel and re-arm are O(1), timers fire exactly at their tick, the next
// wake-up is known at any time, and a jump over empty time costs nothing.
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
// How it works
// ------------
// Time is read as digits (BinaryDigits in geometry.h): level 0 has one slot per tick for the ticks that differ from now() in the
// last digit only, level 1 one slot per 256 ticks for those that differ in the last two, and so on: 8 levels for 64 bits. When the
// hand comes to the start of a slot of a higher level, the slot is *cascaded*: each of its timers moves to a lower level. When it
// comes to a slot of level 0, its timers fire.
//  - Nothing wraps: a slot that holds a timer is always ahead of the hand.
//  - The lowest non-empty level holds the earliest timers, and one bit per slot says which come first.
//  - Timers of one tick stay in the order they came: a slot is cascaded before anything can be scheduled below it.
//
// A slot is an array of pointers (slot.h), so that its timers can be fetched from memory all at once. Re-arming a timer for later
// stores its new expiry and leaves its entry where it is: when the entry comes up, the timer moves on to where it belongs by then.
// Cancelling writes null to the entry. Null entries go when their slot comes up, or are swept before they are many (slot_table.h).
//
// Bounds
// ------
// schedule, cancel, reschedule: O(1). One that makes a slot grow may look at 4 chunks (of 62 entries) to sweep them, a cancel at one.
// next_wakeup: O(1). A jump over empty time: O(1).
// advance, without a limit: O(1) per timer fired, per re-armed timer met and per null entry met, and each timer cascades at most once
// per level. With a limit, it looks at no more than kMoves + limit + 62 entries. A call that ends for that has fired fewer than
// `limit` timers, and next_wakeup() is now(), as if ended by the limit: call again. The default kMoves, 2^20, is some 10 ms of work;
// an owner who must not pause that long chooses less.
// Memory: 16 bytes in the node and 8 in a slot per timer, twice that again at most for null entries, 33 KiB for the empty slots, half
// a chunk (256 bytes) per non-empty slot, and half a megabyte kept for the next peak.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/wheel/geometry.h"
#include "carillon/wheel/slack.h"
#include "carillon/wheel/slot.h"
#include "carillon/wheel/slot_table.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// The contracts are those of TimerSet (timer_set.h). Neither copied nor moved: callbacks keep its address.
template <class Geometry = BinaryDigits<8>, std::size_t kChunkWords = 64, std::size_t kMoves = std::size_t{1} << 20>
class HierarchicalWheel {
 public:
  explicit HierarchicalWheel(Tick start_tick = 0) noexcept : now_(start_tick) {}
  HierarchicalWheel(const HierarchicalWheel&) = delete;
  HierarchicalWheel& operator=(const HierarchicalWheel&) = delete;
  ~HierarchicalWheel() {
    clear([](TimerNode&) noexcept {});
  }

  void schedule(TimerNode& node, Tick expiry) {
    assert(!node.armed() && "schedule() of a timer that is armed: use reschedule()");
    Table::push(slot_with_room(expiry), node, expiry);
    table_.count_in();
  }

  // May fire at any tick of [expiry, expiry + slack]: at the one that is cheapest (slack.h).
  void schedule(TimerNode& node, Tick expiry, Tick slack) { schedule(node, relaxed_expiry(expiry, slack)); }

  bool cancel(TimerNode& node) noexcept {
    if (!node.armed()) return false;
    table_.cancel(node);
    return true;
  }

  void reschedule(TimerNode& node, Tick expiry) {
    if (!node.armed()) return schedule(node, expiry);
    if (expiry >= node.expiry()) {
      Access::expiry(node) = expiry;
      return;
    }
    SlotType& slot = slot_with_room(expiry);
    *Access::entry(node) = nullptr;
    Table::push(slot, node, expiry);
  }

  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    if (to < next_ && to >= now_) {  // the short way: nothing is to be done before next_
      now_ = to;
      return 0;
    }
    return process(to, on_expire, limit);
  }

  std::optional<Tick> next_wakeup() const noexcept { return empty() ? std::nullopt : std::optional<Tick>(next_); }

  Tick now() const noexcept { return now_; }
  std::size_t size() const noexcept { return table_.size(); }
  bool empty() const noexcept { return table_.size() == 0; }

  template <class Sink>
  void clear(Sink&& sink);

  // From now on no operation allocates while at most `timers` are pending. Throws std::bad_alloc.
  void reserve(std::size_t timers) { table_.reserve(timers); }

  // Bytes allocated beside the wheel object itself.
  std::size_t allocated_bytes() const noexcept { return table_.bytes(); }

  void check_invariants() const;

 private:
  using Access = detail::NodeAccess;
  using Table = detail::SlotTable<Geometry::kSlots, kChunkWords>;
  using ChunkType = typename Table::ChunkType;
  using SlotType = typename Table::SlotType;

  static constexpr Tick kNever = std::numeric_limits<Tick>::max();  // as next_: nothing before the end of time

  // The start of the first non-empty slot ahead of the hand.
  struct Stop {
    Tick tick = kNever;
    std::size_t slot = 0;
    bool exists = false;
  };

  // What one advance has done and may still do.
  struct Work {
    std::size_t limit;
    std::size_t looks;  // entries
    std::size_t fired = 0;

    explicit Work(std::size_t fire_limit)
        : limit(fire_limit), looks(fire_limit > kNoLimit - kMoves ? kNoLimit : kMoves + fire_limit) {}

    bool look(std::size_t entries) noexcept {
      if (looks == 0) return false;
      if (looks != kNoLimit) looks -= std::min(looks, entries);
      return true;
    }
  };

  // While it lives, the slots are being read and the owner called back.
  struct Busy {
    HierarchicalWheel& wheel;
    Busy(HierarchicalWheel& busy_wheel, bool clearing) noexcept : wheel(busy_wheel) {
      wheel.busy_ = true;
      wheel.table_.keep_still(true, clearing);
    }
    ~Busy() {
      wheel.busy_ = false;
      wheel.table_.keep_still(false, false);
    }
  };

  // --- scheduling

  // The slot where what the owner schedules for `expiry` belongs, with room for it. May sweep, and so move any entry.
  SlotType& slot_with_room(Tick expiry) {
    if (expiry <= now_) [[unlikely]]
      return overdue_with_room();
    const std::size_t index = Geometry::slot(now_, expiry);
    SlotType& slot = table_[index];
    if (slot.needs_chunk()) [[unlikely]]
      grow(index, expiry);
    return slot;
  }

  [[gnu::noinline]] void grow(std::size_t index, Tick expiry) {
    if (table_.grow(index)) next_ = std::min(next_, Geometry::start(expiry, index));
  }

  [[gnu::noinline]] SlotType& overdue_with_room() {
    SlotType& overdue = table_[Table::kOverdue];
    if (overdue.needs_chunk()) table_.grow(Table::kOverdue);
    next_ = now_;
    return overdue;
  }

  // Puts a timer that the wheel moves by itself where it belongs when the hand is at `hand`. REQUIRES: its expiry is not before.
  void place(TimerNode& node, Tick hand) {
    const Tick expiry = node.expiry();
    const std::size_t index = Geometry::slot(hand, expiry);
    SlotType& slot = table_[index];
    if (slot.needs_chunk()) [[unlikely]]
      extend(index, expiry);
    Table::push(slot, node, expiry);
  }

  [[gnu::noinline]] void extend(std::size_t index, Tick expiry) {
    if (table_.extend(index)) next_ = std::min(next_, Geometry::start(expiry, index));
  }

  // --- advancing

  template <class OnExpire>
  [[gnu::noinline]] std::size_t process(Tick to, OnExpire& on_expire, std::size_t limit) {
    refuse_when_busy("advance");
    if (to < now_) [[unlikely]]
      throw_past(to);
    const Busy busy(*this, false);
    table_.leave_to_reader(Table::kDue);
    if (to == now_) table_.make_due(Table::kOverdue);
    Work work(limit);
    while (fire_due(on_expire, work) && move_on(to, work)) {
    }
    return work.fired;
  }

  // Fires what is due at now(), and moves on what has been re-armed. False: stopped by a bound.
  template <class OnExpire>
  bool fire_due(OnExpire& on_expire, Work& work) {
    SlotType& due = table_[Table::kDue];
    while (!due.empty()) {
      ChunkType* chunk = due.front();
      TimerNode** const end = due.end_of(chunk);
      if (!work.look(static_cast<std::size_t>(end - chunk->begin()))) return false;
      detail::prefetch_timers(chunk->begin(), end);
      for (TimerNode** entry = chunk->begin(); entry != end; ++entry) {
        TimerNode* node = *entry;
        if (node == nullptr) continue;
        if (node->expiry() > now_) {
          place(*node, now_);
          *entry = nullptr;
          continue;
        }
        if (work.fired == work.limit) return false;
        table_.take_out(entry);
        ++work.fired;
        on_expire(*node);
      }
      table_.drop_front(Table::kDue);
      table_.sweep_if_sparse();
    }
    return true;
  }

  // Moves the hand to the next tick with something to do, or to `to` if there is none before. True: something is due there.
  bool move_on(Tick to, Work& work) {
    const bool overdue = !table_[Table::kOverdue].empty();
    const Stop stop = next_stop();
    next_ = overdue ? now_ : stop.tick;
    if (now_ == to) return false;
    const Tick tick = overdue ? now_ + 1 : stop.tick;
    if (tick > to || !(overdue || stop.exists)) {
      now_ = to;
      return false;
    }
    const bool at_stop = stop.exists && stop.tick == tick;
    if (at_stop && Geometry::level(stop.slot) > 0 && !cascade(stop, work)) return false;
    now_ = next_ = tick;
    table_.make_due(Table::kOverdue);
    if (at_stop) table_.make_due(Geometry::slot(tick, tick));
    return true;
  }

  Stop next_stop() const noexcept {
    if (cascading_ != 0) return {now_ + 1, cascading_, true};
    if (table_.no_time_slot()) return {};
    const std::size_t slot = table_.first_time_slot();
    return {Geometry::start(now_, slot), slot, true};
  }

  // Moves the timers of the slot that begins at stop.tick to the levels below. Until that is done the hand stays one tick before: all
  // that was due by then has fired, and what is scheduled into the slot meanwhile joins its end and keeps its turn. False: stopped by
  // the bound; the next call goes on.
  bool cascade(const Stop& stop, Work& work) {
    now_ = next_ = stop.tick - 1;
    cascading_ = stop.slot;
    SlotType& slot = table_[stop.slot];
    table_.leave_to_reader(stop.slot);
    while (!slot.empty()) {
      ChunkType* chunk = slot.front();
      TimerNode** const end = slot.end_of(chunk);
      if (!work.look(static_cast<std::size_t>(end - chunk->begin()))) return false;
      detail::prefetch_timers(chunk->begin(), end);
      for (TimerNode** entry = chunk->begin(); entry != end; ++entry) {
        TimerNode* node = *entry;
        if (node == nullptr) continue;
        place(*node, stop.tick);
        *entry = nullptr;
      }
      table_.drop_front(stop.slot);
    }
    table_.set_empty(stop.slot);
    cascading_ = 0;
    return true;
  }

  void refuse_when_busy(const char* operation) const {
    if (busy_) [[unlikely]]
      throw_busy(operation);
  }

  [[noreturn, gnu::noinline, gnu::cold]] static void throw_busy(const char* operation) {
    throw std::logic_error(std::string("carillon: ") + operation + "() was called from inside on_expire or clear()");
  }

  [[noreturn, gnu::noinline, gnu::cold]] void throw_past(Tick to) const {
    throw std::invalid_argument("carillon: advance(" + std::to_string(to) + ") would go back: the wheel is at tick " +
                                std::to_string(now_) + ", and `to` must not be before that");
  }

  // Invariants
  //  - the slots of the levels that hold entries are ahead of the hand, which for the levels below that of cascading_ is at now_ + 1;
  //  - no timer is in a slot that begins after its expiry;
  //  - next_ <= the start of every non-empty slot, and next_ == now_ while `due` or `overdue` has entries;
  //  - while busy_, next_ == now_, so that a nested advance() never takes the short way.
  Tick now_;
  Tick next_ = kNever;         // nothing is to be done before it
  std::size_t cascading_ = 0;  // the slot beginning at now_ + 1 that has been cascaded in part; 0: none
  bool busy_ = false;          // inside advance() or clear()
  Table table_;
};

template <class Geometry, std::size_t kChunkWords, std::size_t kMoves>
template <class Sink>
void HierarchicalWheel<Geometry, kChunkWords, kMoves>::clear(Sink&& sink) {
  refuse_when_busy("clear");
  const Busy busy(*this, true);
  next_ = now_;
  for (std::size_t index = 0; index < Table::kSlots; ++index) {
    SlotType& slot = table_[index];
    if (slot.empty()) continue;
    while (!slot.empty()) {
      TimerNode** const end = slot.end_of(slot.front());
      for (TimerNode** entry = slot.front()->begin(); entry != end; ++entry) {
        TimerNode* node = *entry;
        if (node == nullptr) continue;
        table_.take_out(entry);
        sink(*node);
      }
      table_.drop_front(index);
    }
    if (index < Geometry::kSlots) table_.set_empty(index);
  }
  if (table_.holds_chunks()) return;  // the sink has scheduled timers
  next_ = kNever;
  cascading_ = 0;
}

template <class Geometry, std::size_t kChunkWords, std::size_t kMoves>
void HierarchicalWheel<Geometry, kChunkWords, kMoves>::check_invariants() const {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("carillon: HierarchicalWheel is broken: ") + what);
  };
  table_.check_invariants();
  require(next_ >= now_, "the next wake-up has passed");
  for (const std::size_t queue : {Table::kOverdue, Table::kDue}) {
    require(table_[queue].empty() || next_ == now_, "something is due, and the next wake-up is not now");
  }
  for (std::size_t index = 0; index < Geometry::kSlots; ++index) {
    const SlotType& slot = table_[index];
    if (slot.empty()) continue;
    const Tick start = Geometry::start(Geometry::level(index) < Geometry::level(cascading_) ? now_ + 1 : now_, index);
    require(start > now_, "a slot that holds timers is not ahead of the hand");
    require(next_ <= start, "the next wake-up is after the start of a slot that holds timers");
    for (ChunkType* chunk = slot.front(); chunk != nullptr; chunk = chunk->next) {
      for (TimerNode** entry = chunk->begin(); entry != slot.end_of(chunk); ++entry) {
        require(*entry == nullptr || (*entry)->expiry() >= start, "a timer is in a slot that begins after its expiry");
      }
    }
  }
}

static_assert(TimerSet<HierarchicalWheel<>>);

}  // namespace carillon
